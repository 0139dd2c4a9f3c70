"""Tables written by hand, without Spark: a demo of eight minutes with two applications and three steps."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamapp.analytics.bronze.ingest import bronze
from streamapp.analytics.build import DEFINITIONS, gold, silver
from streamapp.analytics.tables.bronze_schemas import QUARANTINE
from streamapp.analytics.tables.derived_schemas import KEY
from streamapp.analytics.tables.store import Store, Version

DAY, RUN = "2026-11-21", "by-hand"
NASTY = "<script>alert(1)</script>|"
Rows = Mapping[str, Sequence[Mapping[str, Any]]]


def at(seconds: float) -> datetime:
    """A time of the demo."""
    return datetime(2026, 11, 21, 10, tzinfo=UTC) + timedelta(seconds=seconds)


def write(store: Store, tables: Rows, version: Version | None = None) -> Version:
    """Put rows of one day into a layer, each with `dt` or of the day of the demo; what a row leaves out is null."""
    version = version or Version(definitions=DEFINITIONS, built_from={DAY: (RUN,)})
    for table, rows in tables.items():
        names = store.schemas[table].names
        by_day: dict[str, list[Mapping[str, Any]]] = {}
        for row in rows:
            by_day.setdefault(row.get("dt", DAY), []).append(row)
        for day, of_day in by_day.items():
            folder = store.folder / table / f"run={RUN}" / f"dt={day}"
            folder.mkdir(parents=True)
            columns = {name: [row.get(name) for row in of_day] for name in names}
            pq.write_table(pa.table(columns), folder / "part-0.parquet")
        days = dict.fromkeys(by_day, (RUN,))
        version = version.with_table(table, days, {f"{RUN}/{day}": len(one) for day, one in by_day.items()})
    return store.commit(version)


def _of(app: str, **values: Any) -> dict[str, Any]:
    return dict(zip(KEY, ("lab", "demo", app, f"uid of {app}"), strict=True)) | values


def _episode(app: str, start: float, took: float, replicas: tuple[int, int], **more: Any) -> dict[str, Any]:
    direction = "up" if replicas[1] > replicas[0] else "down"
    phases = {"grant": 1.0, "restore": took - 1.0} if direction == "up" else {"hold": took - 5.0, "drain": 5.0}
    told = {"from_replicas": replicas[0], "to_replicas": replicas[1], "direction": direction, "actor": "USER"}
    counts = {"moved_tasks": 3, "rebalances": 1, "restored": 500_000, "steps": 1, "lost_lines": 0}
    ends = {"outcome": "converged", "convergence_s": took, "observed_s": took, "phases": phases}
    times = {"event_id": f"{app}/{start}", "t_event": at(start), "t_end": at(start + took)}
    return _of(app, **{**told, **counts, **ends, **times, **more})


def _decisions(app: str) -> list[dict[str, Any]]:
    def one(start: float, end: float, wished: tuple[int, int, int], reason: str, hold: str = "") -> dict[str, Any]:
        numbers = dict(zip(("desired", "granted", "actual"), wished, strict=True)) | {"ready": wished[2]}
        return _of(app, t_start=at(start), t_end=at(end), reason=reason, hold_id=hold, **numbers)

    return [
        one(0, 60, (2, 2, 2), "Steady"),
        one(60, 120, (3, 3, 2), "Growing"),
        one(120, 240, (3, 3, 3), "Steady"),
        one(240, 290, (2, 3, 3), "LearnersCatchingUp", "h1"),
        one(290, 300, (2, 3, 3), "FactsStale", "h1"),
        one(300, 480, (2, 2, 2), "Steady"),
    ]


def demo_silver(first: str, second: str) -> Rows:
    """Silver of the demo."""
    watched = {first: 480.0, second: 420.0}
    seen = [_of(app, t_first=at(0), t_last=at(480), lines=900, watched_s=seconds) for app, seconds in watched.items()]
    copies = {"task": "0_1", "ordinal": 1, "process_id": "b", "role": "LEARNER", "end_reason": "caught_up"}
    return {
        "s_seen": seen,
        "s_config": [_of(first, valid_from=at(0), application_id="counter", tasks=4, scale_down_policy="Hold")],
        "s_decision_interval": _decisions(first),
        "s_scale_episode": [
            _episode(first, 60, 70, (2, 3)),
            _episode(first, 240, 65, (3, 2), worst_gap_s=1.25, worst_gap_err_s=0.25),
            _episode(second, 300, 180, (2, 3), outcome="open", convergence_s=None),
        ],
        "s_downtime": [
            _of(first, source="step", hold_id="h1", t_stop=at(300), t_resume=at(304), downtime_s=1.25, err_s=0.25)
        ],
        "s_hold_interval": [
            _of(first, hold_id="h1", reason="LearnersCatchingUp", task="0_1", ordinal=1, share_s=30.0, hold_s=60.0),
            _of(first, hold_id="h1", reason="LearnersCatchingUp", task="0_3", ordinal=0, share_s=20.0, hold_s=60.0),
            _of(first, hold_id="h1", reason="FactsStale", share_s=10.0, hold_s=60.0),
        ],
        "s_learner_stint": [
            _of(first, **copies, t_start=at(70), t_end=at(100), gross_rate=25_000.0, restored=500_000, grade="A"),
            _of(first, **copies, t_start=at(245), t_end=at(250), grade="D"),
        ],
        "s_assignment_interval": [
            _of(first, t_start=at(0), t_end=at(480), process_id=who, ordinal=n, stateful_active=tasks, threads=1)
            for n, (who, tasks) in enumerate((("a", 3), ("b", 1)))
        ],
        "s_rebalance": [
            _of(first, epoch=2, ts=at(110), members=3, members_joined=1, members_left=0, tasks_moved=3, moved_back=0)
        ],
    }


DOWNTIME: dict[str, Any] = {"tasks": 4, "task_s": 1920.0, "n": 2, "at_least_s": 1.5, "at_most_s": 2.25, "open": 0}
DOWNTIME |= {"availability": 99.9, "by_cause": {"scale": 2.0, "crash": 0.25}, "worst_s": 1.25, "worst_task": "0_1"}


def demo_gold(first: str) -> Rows:
    """Gold of the demo: only the first application has all of it."""
    rates = {"n_stints": 1, "rate_p10": 25_000.0, "rate_p50": 25_000.0, "rate_p90": 25_000.0, "updated": at(70)}
    rates |= {"rate_mean": 25_000.0, "rate_learned": 25_000.0}
    blame = {"critical_n": 1, "holds": 1, "sole_s": 0.0}
    return {
        "g_hold_blame": [
            _of(first, reason="LearnersCatchingUp", task="0_1", ordinal=1, blame_s=50.125, **blame),
            _of(first, reason="FactsStale", blame_s=10.0, **blame),
        ],
        "g_downtime_daily": [_of(first, **DOWNTIME)],
        "g_convergence_daily": [
            _of(first, direction=way, n=1, n_converged=1, n_censored=0, km_p50=took, km_p90=took, slo_met=True)
            for way, took in (("up", 70.0), ("down", 65.0))
        ],
        "g_restore_profile": [_of(first, scope="subtopology", subtopology="0", **rates)],
        "g_skew_daily": [_of(first, max_share=0.75, imbalance=1.5 + 1 / 3, gini=0.25, seen_s=480.0, bad_s=480.0)],
        "g_autoscaler_daily": [
            _of(first, events=2, reversals=1, flap_pairs=1, wasted_events=0, wasted_slots=0, replica_h=0.31)
        ],
        "g_churn_daily": [_of(first, rebalances=1, tasks_moved=3, moved_back=0, pid_changes=0, ghost_members=0)],
    }


def demo(root: Path, first: str = "counter") -> None:
    """The tables of the demo, with three layers."""
    own = {"v": 1, "cluster": "lab", "ts": at(0), "recorder": "r", "seq": 0, "mark": "STARTED"}
    mark = own | {"operator_version": "0.1.0"}
    write(bronze(root), {"b_recorder": [mark], QUARANTINE: [{"raw": "{", "rule": "unparsable"}]}, Version())
    write(silver(root), demo_silver(first, "second"))
    write(gold(root), demo_gold(first))
