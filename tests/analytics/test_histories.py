"""Small histories drawn by hand, and what is true of every history."""

import gzip
import json
import math
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamapp.analytics.bronze.ingest import Ingest, Ingested, bronze
from streamapp.analytics.build import Build, gold
from streamapp.analytics.progress import Stages
from streamapp.flightrecord.schema import RECORD
from tests.analytics.conftest import NOW, Whole
from tests.analytics.support.disorder import NAMESPACE
from tests.analytics.support.reading import records

pytestmark = [pytest.mark.analytics, pytest.mark.timeout(900)]
NOON = datetime(2026, 11, 5, 12, tzinfo=UTC)
TASKS = [f"0_{n}" for n in range(6)]
Lines = list[tuple[float, str, str, dict[str, Any]]]


def config(app: str) -> tuple[float, str, str, dict[str, Any]]:
    told = {"generation": 1, "applicationId": app, "statefulTasks": TASKS, "acceptableRecoveryLag": 100}
    policy = {"stabilizationSeconds": 0.0, "timeoutSeconds": 0.0, "scaleDownPolicy": "Hold"}
    return (-1, app, "config", {**told, **policy})


def decided(at: float, app: str, desired: int, **more: object) -> tuple[float, str, str, dict[str, Any]]:
    counts = dict.fromkeys(("desired", "granted", "actual", "ready"), desired)
    return (at, app, "decision", {"verdict": "Steady", "reason": "Steady", **counts, **more})


def sampled(
    at: float, app: str, ordinal: int, role: str, offset: int | None, state: str | None = None
) -> tuple[float, str, str, dict[str, Any]]:
    known = {name: value for name, value in (("offset", offset), ("state", state)) if value is not None}
    copy = {"task": "0_0", "role": role, "ordinal": ordinal, "processId": f"p{ordinal}", "epoch": 1}
    return (at, app, "sample", {**copy, **known, "endOffset": 1000, "source": "AGENT", "intervalSeconds": 10.0})


def spread() -> Lines:
    held = (TASKS[:4], TASKS[4:5], TASKS[5:])
    holders = [{"processId": f"p{n}", "ordinal": n, "active": own, "threads": 1} for n, own in enumerate(held)]
    layout = {"epoch": 1, "state": "Stable", "holders": holders}
    return [config("spread"), (0, "spread", "group", layout), decided(3600, "spread", 3)]


def read_before_told() -> Lines:
    """A new leader: it has read the group before it tells the configuration, and that before it knows the tasks."""
    app, (_, _, kind, told) = "leads", config("leads")
    held = (["0_0", "0_1", "1_0", "1_1"], ["0_2", "0_3", "1_2", "1_3"])
    holders = [{"processId": f"p{n}", "ordinal": n, "active": own, "threads": 1} for n, own in enumerate(held)]
    layout = {"epoch": 1, "state": "Stable", "holders": holders}
    unknown, known = {**told, "statefulTasks": []}, {**told, "statefulTasks": ["0_0", "0_1", "0_2"]}
    lines = [(0.0, app, "group", layout), (0.5, app, kind, unknown), (9.0, app, kind, known)]
    return [*lines, decided(3600, app, 2)]


def superseded() -> Lines:
    app = "superseded"
    return [
        (0, app, "scale", {"oldReplicas": 2, "newReplicas": 4, "actor": "HPA", "generation": 2}),
        decided(1, app, 4, converged=False),
        (60, app, "scale", {"oldReplicas": 4, "newReplicas": 3, "actor": "HPA", "generation": 3}),
        decided(70, app, 3, granted=4, actual=4, converged=False),
        decided(120, app, 3, actual=4, converged=False),
        decided(150, app, 3, converged=False),
        decided(200, app, 3, converged=True),
    ]


def learning() -> Lines:
    """One copy catches up, falls behind and catches up again; one makes no way and is lost; an active restores.

    The last one loses its state on its way, and begins anew.
    """
    app = "learning"
    twice = [(0, 100), (10, 400), (20, 700), (30, 950), (40, 500), (50, 700), (60, 1000)]
    return [
        config(app),
        *[sampled(at, app, 1, "STANDBY", offset) for at, offset in twice],
        *[sampled(10.0 * n, app, 2, "LEARNER", 300) for n in range(5)],
        *[sampled(10.0 * n, app, 3, "STANDBY", at) for n, at in enumerate((0, 300, 600, 0, 400, 800, 1000))],
        sampled(0, app, 0, "ACTIVE", 200, "RESTORING"),
        sampled(10, app, 0, "ACTIVE", 600, "RESTORING"),
        sampled(20, app, 0, "ACTIVE", None, "RUNNING"),
        decided(3600, app, 3),
    ]


def identity() -> Lines:
    ghost = {"epoch": 1, "state": "Stable", "holders": [{"processId": "p9", "active": TASKS, "threads": 1}]}
    pods = [
        (at, "identity", "pod", {"ordinal": 0, "podUid": f"u{n}", "processId": f"p{n}", "volume": "v"})
        for n, at in enumerate((0, 100))
    ]
    return [*pods, (0, "identity", "group", ghost), decided(3600, "identity", 1)]


def held() -> Lines:
    app, hold = "held", {"verdict": "Hold", "reason": "LearnersCatchingUp", "holdId": "h", "granted": 3}
    a, b = {"task": "0_0", "ordinal": 1}, {"task": "0_1", "ordinal": 0}
    return [
        decided(0, app, 2, **{**hold, "blocking": [a, b], "blockingCount": 2}),
        decided(10, app, 2, **{**hold, "blocking": [a], "blockingCount": 1}),
        decided(400, app, 2, **{**hold, "reason": "ReadingsPending"}),
        decided(410, app, 2),
        decided(3600, app, 2),
    ]


def handed_over() -> Lines:
    """A growth during which another replica of the operator takes the lead and begins its record with all it sees."""
    app, second = "handed-over", {"recorder": "s"}
    small = [{"processId": f"p{n}", "ordinal": n, "active": TASKS[3 * n : 3 * n + 3], "threads": 1} for n in range(2)]
    large = [{"processId": f"p{n}", "ordinal": n, "active": TASKS[2 * n : 2 * n + 2], "threads": 1} for n in range(3)]
    wish = {"newReplicas": 3, "actor": "USER", "generation": 2}

    def gap(at: float, task: str, most: float, stood: float) -> tuple[float, str, str, dict[str, Any]]:
        last = (NOON + timedelta(seconds=at - most)).isoformat().replace("+00:00", "Z")
        told = {"task": task, "ordinal": 2, "processId": "p2", "lastRanAt": last, "stoodSeconds": stood}
        return (at, app, "gap", {**told, "source": "AGENT", **second})

    return [
        (0, app, "group", {"epoch": 1, "state": "Stable", "holders": small}),
        (10, app, "scale", {**wish, "oldReplicas": 2}),
        decided(11, app, 3, actual=2, converged=False),
        (20, app, "scale", {**wish, **second}),
        (20, app, "group", {"epoch": 2, "state": "Stable", "holders": small, **second}),
        decided(21, app, 3, converged=False, **second),
        (40, app, "group", {"epoch": 3, "state": "Stable", "holders": large, **second}),
        gap(41, "0_4", 2, 0.5),
        gap(42, "0_5", 1.5, 1),
        decided(50, app, 3, converged=True, **second),
        gap(51, "0_3", 3, 2.5),
        gap(60, "0_5", 5, 0),
    ]


def told_at_joins() -> Lines:
    """A standby without an agent: at each of four joins it says how far it is, and is seen in between."""
    app = "joins"
    said = [sampled(at, app, 1, "STANDBY", offset) for at, offset in ((0, 100), (60, 500), (200, 800), (260, 1000))]
    seen = [sampled(at, app, 1, "STANDBY", None) for at in (30, 100, 150, 230)]
    return [config(app), *[(*one[:3], {**one[3], "source": "GROUP"}) for one in (*said, *seen)], decided(3600, app, 3)]


@pytest.fixture(scope="module")
def drawn(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ingested]:
    place = tmp_path_factory.mktemp("histories")
    # Characters that Spark takes for patterns, that it encodes, and that it does not; a copy that has only begun.
    record = place / "dt=2026-11-05 [1] {a,b} jürgen+100%"
    record.mkdir()
    (place / "link").symlink_to(record)
    texts = []
    lines = sorted(
        (
            *spread(),
            *read_before_told(),
            *superseded(),
            *learning(),
            *identity(),
            *held(),
            *handed_over(),
            *told_at_joins(),
        ),
        key=lambda line: line[0],
    )
    for seq, (at, app, kind, fields) in enumerate(lines):
        ts = (NOON + timedelta(seconds=at)).isoformat().replace("+00:00", "Z")
        own = {"v": 1, "cluster": "c", "namespace": "n", "app": app, "uid": f"u-{app}", "ts": ts, "recorder": "r"}
        text = json.dumps({**own, "seq": seq, "kind": kind, **fields})
        RECORD.validate_json(text)
        texts.append(text)
    texts.insert(3, '{"kind": "sample", torn')
    texts.append(json.dumps({**json.loads(texts[-1]), "seq": 999, "ts": "2026-11-05T12:59:00Z", "novel": {"a": [1]}}))
    (record / "record.jsonl.gz").write_bytes(gzip.compress(("\n".join(texts) + "\n").encode()))
    (record / "without-lines.jsonl.gz").write_bytes(gzip.compress(b""))
    (record / "begun.jsonl.gz").touch()
    (record / ".draft.jsonl.gz").write_text("torn")
    done = Ingest(spark, bronze(place), Stages(), NOW, most_bad=0.5).run([place / "link"])
    Build(spark, place, Stages()).run()
    return place, done


def of(drawn: tuple[Path, Ingested], table: str, app: str) -> list[dict[str, Any]]:
    return [row for row in records(drawn[0], table) if row["app"] == app]


def test_a_torn_line_is_in_quarantine_with_its_number_and_what_is_new_is_kept(drawn: tuple[Path, Ingested]) -> None:
    root, done = drawn
    assert (done.bad, done.kept, done.doubled, done.files) == (1, done.rows - 1, 0, 2)
    bad = records(root, "b_quarantine")
    assert [(row["rule"], row["line"], row["raw"]) for row in bad] == [("unparsable", 4, '{"kind": "sample", torn')]
    assert bad[0]["file"].endswith("/record.jsonl.gz")
    extras = [dict(row["extra"]) for row in records(root, "b_decision") if row["extra"]]
    assert extras == [{"novel": '{"a":[1]}'}]


def test_four_of_six_tasks_on_one_of_three_processes(drawn: tuple[Path, Ingested]) -> None:
    (row,) = of(drawn, "g_skew_daily", "spread")
    assert (row["max_share"], row["imbalance"]) == pytest.approx((2 / 3, 2.0))
    assert (row["seen_s"], row["bad_s"]) == (3600, 3600)


def test_only_tasks_with_state_count_though_they_are_known_after_the_layout(drawn: tuple[Path, Ingested]) -> None:
    rows = of(drawn, "s_assignment_interval", "leads")
    assert sorted((row["ordinal"], row["active"], row["stateful_active"]) for row in rows) == [(0, 4, 2), (1, 4, 1)]
    (row,) = of(drawn, "g_skew_daily", "leads")
    assert row["max_share"] == pytest.approx(2 / 3)


def test_a_step_that_is_overtaken_counts_as_long_as_it_was_seen(drawn: tuple[Path, Ingested]) -> None:
    up, down = sorted(of(drawn, "s_scale_episode", "superseded"), key=lambda row: row["t_event"])
    assert (up["outcome"], up["observed_s"], up["convergence_s"]) == ("superseded", 60, None)
    assert dict(up["phases"]) == {
        "grant": 1, "schedule": 59, "start": 0, "join": 0, "restore": 0, "probe": 0, "settle": 0,
    }  # fmt: skip
    assert (down["outcome"], down["convergence_s"]) == ("converged", 140)
    assert dict(down["phases"]) == {"hold": 60, "drain": 30, "restore": 0, "probe": 0, "settle": 50}
    days = {row["direction"]: row for row in of(drawn, "g_convergence_daily", "superseded")}
    assert (days["up"]["n_censored"], days["up"]["km_p50"], days["up"]["slo_met"]) == (1, None, None)
    assert (days["down"]["n_censored"], days["down"]["km_p50"], days["down"]["slo_met"]) == (0, 140, True)
    (day,) = of(drawn, "g_autoscaler_daily", "superseded")
    assert (day["events"], day["reversals"], day["flap_pairs"], day["wasted_events"]) == (2, 1, 0, 1)


def test_copies_that_fall_back_are_lost_or_take_over(drawn: tuple[Path, Ingested]) -> None:
    stints = sorted(of(drawn, "s_learner_stint", "learning"), key=lambda row: (row["ordinal"], row["t_start"]))
    told = [(row["ordinal"], row["end_reason"], row["samples"], row["restored"], row["gross_rate"]) for row in stints]
    assert told == [
        (0, "promoted", 2, 400, None),
        (1, "caught_up", 3, 600, 30.0),
        (1, "caught_up", 2, 200, None),
        (2, "lost", 5, 0, 0.0),
        (3, "dropped", 3, 600, 30.0),
        (3, "caught_up", 3, 800, 40.0),
    ]
    (gap,) = of(drawn, "s_downtime", "learning")
    assert (gap["task"], gap["source"], gap["downtime_s"], gap["err_s"]) == ("0_0", "sample", 20, 10)


def test_a_leader_that_takes_over_makes_no_step_breaks_none_and_rebalances_nothing(
    drawn: tuple[Path, Ingested],
) -> None:
    (row,) = of(drawn, "s_scale_episode", "handed-over")
    assert (row["from_replicas"], row["to_replicas"], row["outcome"], row["convergence_s"]) == (2, 3, "converged", 40)
    assert (row["rebalances"], row["moved_tasks"]) == (1, 3)
    (day,) = of(drawn, "g_autoscaler_daily", "handed-over")
    assert day["events"] == 1
    assert [rebalance["epoch"] for rebalance in of(drawn, "s_rebalance", "handed-over")] == [3]


def test_the_gap_of_a_step_is_that_of_its_worst_task_as_a_range(drawn: tuple[Path, Ingested]) -> None:
    (row,) = of(drawn, "s_scale_episode", "handed-over")
    # At most what a task took of which only a part may lie within, at least what one took that lies within wholly.
    assert (row["worst_gap_s"], row["worst_gap_err_s"]) == (3, 2)
    gaps = sorted(of(drawn, "s_downtime", "handed-over"), key=lambda gap: gap["t_resume"])
    told = [(gap["source"], gap["task"], gap["downtime_s"], gap["err_s"]) for gap in gaps]
    assert told == [("gap", "0_4", 2, 1.5), ("gap", "0_5", 1.5, 0.5), ("gap", "0_3", 3, 0.5), ("gap", "0_5", 5, 5)]


def test_what_members_tell_at_joins_alone_has_no_grade_and_no_rate(drawn: tuple[Path, Ingested]) -> None:
    (stint,) = of(drawn, "s_learner_stint", "joins")
    assert (stint["end_reason"], stint["samples"], stint["restored"]) == ("caught_up", 3, 700)
    assert (stint["grade"], stint["gross_rate"], stint["net_rate"]) == (None, None, None)
    assert of(drawn, "g_restore_profile", "joins") == []
    assert {row["completeness"] for row in of(drawn, "g_lag_hourly", "joins")} == {None}


def test_grades_count_the_samples_that_were_to_be_expected(drawn: tuple[Path, Ingested]) -> None:
    grades = {(row["ordinal"], row["samples"]): row["grade"] for row in of(drawn, "s_learner_stint", "learning")}
    assert set(grades.values()) == {"A"}


def test_a_changed_process_id_on_one_volume_and_a_member_without_a_pod(drawn: tuple[Path, Ingested]) -> None:
    (row,) = of(drawn, "g_churn_daily", "identity")
    assert (row["pid_changes"], row["ghost_members"], row["rebalances"]) == (1, 1, 0)


def test_blockers_share_a_hold_and_what_nobody_looked_at_is_unrecorded(drawn: tuple[Path, Ingested]) -> None:
    rows = of(drawn, "s_hold_interval", "held")
    assert {(row["reason"], row["task"], row["share_s"], row["critical"]) for row in rows} == {
        ("LearnersCatchingUp", "0_0", 305, True),
        ("LearnersCatchingUp", "0_1", 5, False),
        ("Unrecorded", None, 90, False),
        ("ReadingsPending", None, 10, False),
    }
    assert {row["hold_s"] for row in rows} == {410}


def test_phases_sum_to_what_a_step_took(whole: Whole) -> None:
    rows = records(whole.root, "s_scale_episode")
    assert {row["outcome"] for row in rows} == {"converged", "cancelled", "superseded", "open"}
    for row in rows:
        assert math.fsum(seconds for _, seconds in row["phases"]) == pytest.approx(row["observed_s"], abs=1e-6)
        assert min(seconds for _, seconds in row["phases"]) >= 0


def test_shares_sum_to_the_hold(whole: Whole) -> None:
    shares: dict[tuple[str, ...], list[float]] = defaultdict(list)
    lengths = {}
    for row in records(whole.root, "s_hold_interval"):
        which = (row["uid"], row["hold_id"], row["dt"])
        shares[which].append(row["share_s"])
        lengths[which] = row["hold_s"]
    assert len(lengths) > 10
    assert {which: math.fsum(of_one) for which, of_one in shares.items()} == pytest.approx(lengths)


def test_sketches_answer_what_the_samples_say(spark: SparkSession, whole: Whole) -> None:
    hours = gold(whole.root).read(spark, whole.built.gold, "g_lag_hourly").where(F.col("namespace") != NAMESPACE)
    merged = hours.groupBy("app", "role").agg(F.expr("kll_merge_agg_bigint(kll)").alias("kll"))
    asked = merged.select("app", "role", F.expr("kll_sketch_get_quantile_bigint(kll, 0.9D)").alias("p90")).collect()
    lags: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in records(whole.root, "b_sample"):
        if row["offset"] is not None and row["namespace"] != NAMESPACE:
            lags[row["app"], row["role"]].append(row["end_offset"] - row["offset"])
    assert {(row["app"], row["role"]) for row in asked} == set(lags)
    for app, role, p90 in asked:
        below = sum(lag <= p90 for lag in lags[app, role]) / len(lags[app, role])
        assert below == pytest.approx(0.9, abs=0.03)
