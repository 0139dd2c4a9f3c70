"""The operator's own ledger of downtime says what the pipeline makes of the same passes."""

import gzip
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamapp.analytics.bronze.ingest import Ingest, bronze
from streamapp.analytics.build import Build
from streamapp.analytics.progress import Stages
from streamapp.flightrecord.changes import FlightLog, Look
from streamapp.flightrecord.outages import Outage, OutageLog
from streamapp.flightrecord.schema import to_line
from tests.analytics.conftest import NOW
from tests.analytics.support.reading import records
from tests.support.watched import Watched

pytestmark = [pytest.mark.analytics, pytest.mark.timeout(900)]

HEAD = {"cluster": "lab", "namespace": "n", "app": "ledger", "uid": "u", "recorder": "r"}
EVERY = 5.0


def story() -> list[Look]:
    """Twenty minutes: a crash, a rollout of one pod, a scale-down and up, an eviction, a move, and a silent agent."""
    app = Watched()
    looks: list[Look] = []

    def watch(seconds: float, silent: tuple[int, ...] = ()) -> None:
        for _ in range(round(seconds / EVERY)):
            looks.append(app.look(EVERY * len(looks), silent))

    watch(100)
    app.restart(1)
    app.restoring = frozenset({2, 3})
    watch(20)
    app.restoring = frozenset()
    watch(100)
    app.replace_pod(2, "counter-newer")
    watch(100)
    gone = app.pods.pop(2)
    app.wish(2, EVERY * len(looks) - 1)
    app.owned = {0: (0, 1, 4), 1: (2, 3, 5)}
    watch(15)
    app.is_converged = True
    watch(120)
    app.wish(3, EVERY * len(looks) - 1)
    app.pods[2] = gone
    app.replace_pod(2)
    app.owned = {0: (0, 1), 1: (2, 3), 2: (4, 5)}
    watch(15)
    app.is_converged = True
    watch(120)
    app.replace_pod(0)
    app.restoring = frozenset({1})
    watch(30)
    app.restoring = frozenset()
    watch(100)
    app.owned = {0: (0, 1, 5), 1: (2, 3), 2: (4,)}
    watch(100, silent=(2,))
    app.jvms[1] += 1
    watch(200)
    return looks


def test_the_operator_and_the_pipeline_count_the_same_downtime(spark: SparkSession, tmp_path: Path) -> None:
    looks, told, ledger = story(), FlightLog(HEAD), OutageLog()
    lines = [line for look in looks for line in told.lines(look)]
    outages: list[Outage] = []
    task_seconds = 0.0
    for look in looks:
        looked = ledger.look(look)
        outages += looked.outages
        task_seconds += looked.task_seconds
    record = tmp_path / "record"
    record.mkdir()
    texts = (to_line(line.model_copy(update={"seq": number})) for number, line in enumerate(lines))
    (record / "record.jsonl.gz").write_bytes(gzip.compress(b"\n".join(texts) + b"\n"))
    root = tmp_path / "tables"
    Ingest(spark, bronze(root), Stages(), NOW).run([record])
    Build(spark, root, Stages()).run()
    (day,) = [row for row in records(root, "g_downtime_daily") if row["app"] == "ledger"]
    by_cause: dict[str, float] = {}
    for one in outages:
        by_cause[one.cause.value] = by_cause.get(one.cause.value, 0.0) + one.at_most.total_seconds()
    assert set(by_cause) == {"crash", "rollout", "scale", "eviction", "rebalance", "unknown"}
    assert dict(day["by_cause"]) == pytest.approx(by_cause)
    assert day["n"] == len(outages)
    assert day["at_most_s"] == pytest.approx(sum(one.at_most.total_seconds() for one in outages))
    assert day["at_least_s"] == pytest.approx(sum(one.at_least.total_seconds() for one in outages))
    assert day["worst_s"] == pytest.approx(max(one.at_most.total_seconds() for one in outages))
    assert day["task_s"] == pytest.approx(task_seconds, rel=0.03)
