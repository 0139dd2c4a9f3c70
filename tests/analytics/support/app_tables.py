"""The tables of one application by hand, or as silver would make them of the generator's story, without Spark."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import quantiles
from typing import Any

import numpy as np
import pyarrow as pa

from streamapp.analytics.report.rows import AppRows
from streamapp.analytics.synthetic.fleet import DAY, Fleet, SyntheticApp, volume
from streamapp.analytics.synthetic.story import Story
from streamapp.analytics.tables.derived_schemas import GOLD, SILVER

Rows = Sequence[Mapping[str, Any]]
START = datetime(2026, 11, 1, tzinfo=UTC)
SCHEMAS = {**SILVER, **GOLD}
STINTS = 8
"""Of each volume in each subtopology."""


def rows_of(tables: Mapping[str, Rows], days: int) -> AppRows:
    """The tables of one application; what a row leaves out is null."""
    seen = [
        {"dt": f"2026-11-{day + 1:02d}", "t_last": START + timedelta(days=day + 1) - timedelta(seconds=1)}
        for day in range(days)
    ]
    given: dict[str, Rows] = {"s_seen": seen, **tables}
    return AppRows(
        {
            table: pa.table(
                {name: pa.array([row.get(name) for row in given.get(table, ())]) for name in (*schema.names, "dt")}
            )
            for table, schema in SCHEMAS.items()
        }
    )


def profile(app: SyntheticApp, seed: int) -> Rows:
    """The rates of each volume as the generator draws them, summed up as gold does."""
    rng = np.random.default_rng([seed, app.index])
    rows: list[dict[str, Any]] = []
    for ordinal in range(5):
        for sub in range(2):
            drawn = app.speed(sub, ordinal) * rng.lognormal(0, 0.05, STINTS)
            row = {"scope": "volume", "subtopology": str(sub), "task": None, "volume": volume(app, ordinal)}
            rows.append({**row, "n_stints": STINTS, "rate_p50": quantiles(drawn, n=2)[0]})
    return rows


def steps(app: SyntheticApp) -> Rows:
    return [
        {
            "t_event": START + timedelta(seconds=at),
            "from_replicas": old,
            "to_replicas": new,
            "direction": "up" if new > old else "down",
            "actor": "HPA",
        }
        for at, old, new in app.events
    ]


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def lasting(lines: Sequence[tuple[float, dict[str, Any]]], end: float) -> list[dict[str, Any]]:
    """Lines as states that last until the next one, with columns for fields."""
    ordered = sorted(lines, key=lambda line: line[0])
    return [
        {"t_start": at(since), "t_end": at(until), **{snake(name): value for name, value in fields.items()}}
        for (since, fields), (until, _) in pairwise([*ordered, (end, {})])
    ]


def snake(name: str) -> str:
    return re.sub("([A-Z])", r"_\1", name).lower()


def volume_days(pods: Rows) -> Rows:
    """What lay on each volume, on the days on which a pod used it."""
    used = [row for row in pods if not row.get("is_gone")]
    names = ("volume", "ordinal", "state_bytes", "free_bytes", "requested_bytes")
    days = {
        (row["volume"], day): {**{name: row[name] for name in names}, "dt": f"2026-11-{day:02d}"}
        for row in used
        for day in range(row["t_start"].day, row["t_end"].day + 1)
    }
    return [row for _, row in sorted(days.items())]


def raises(app: SyntheticApp, lines: Sequence[tuple[float, str, dict[str, Any]]], end: float) -> Rows:
    """Raises with what the changelogs took before and after, where at least ten minutes with one number lie there."""
    points = sorted((when, fields["slots"]) for when, kind, fields in lines if kind == "changelogs")
    settled = sorted(when for when, kind, fields in lines if kind == "decision" and fields.get("converged"))
    found = []
    for (begins, old, new), (turn, *_) in pairwise([*app.events, (end, 0, 0)]):
        over = next((when for when in settled if begins < when < turn), None)
        if new < old or over is None:
            continue
        row = {"t_event": at(begins), "actor": "HPA", "from_replicas": old, "to_replicas": new}
        row |= {"pod_h": (new - old) * (turn - over) / 3600}
        back, step = [p for p in points if p[0] <= begins - 600], [p for p in points if begins <= p[0] <= over]
        far = next((p for p in points if p[0] >= over + 600), None)
        first_of_next = next((p for p in points if p[0] >= turn), far)
        before = _rise(back[-1], step[0]) if back and step else None
        after = _rise(step[-1], far) if far and step and far == min(far, first_of_next or far) else None
        found.append({**row, "rate_before": before, "rate_after": after})
    return found


def _rise(earlier: tuple[float, int], later: tuple[float, int]) -> float:
    return (later[1] - earlier[1]) / (later[0] - earlier[0])


def played(fleet: Fleet, app: SyntheticApp) -> dict[str, Rows]:
    """What silver makes of the story of an application, but for its samples."""
    story = Story(fleet, app, np.random.default_rng([fleet.seed, app.index, 1]))
    story.tell()
    end = fleet.days * DAY

    def of(kind: str) -> list[tuple[float, dict[str, Any]]]:
        return [(when, fields) for when, is_of, fields in story.lines if is_of == kind]

    pods: list[dict[str, Any]] = []
    for ordinal in {fields["ordinal"] for _, fields in of("pod")}:
        pods += lasting([line for line in of("pod") if line[1]["ordinal"] == ordinal], end)
    decisions = lasting(of("decision"), end)
    for row in decisions:
        row["furthest_lag"] = next((one["lag"] for one in row.get("blocking", ())), None)
    config = [{"valid_from": START, **{snake(name): value for name, value in of("config")[0][1].items()}}]
    return {
        "s_decision_interval": decisions,
        "s_pod_interval": pods,
        "s_autoscaler_interval": lasting(of("autoscaler"), end),
        "s_config": [{**row, "lag_limit": row["acceptable_recovery_lag"]} for row in config],
        "s_assignment_interval": [{"threads": 1}],
        "s_scale_episode": steps(app),
        "g_restore_profile": profile(app, fleet.seed),
        "g_volume_daily": volume_days(pods),
        "g_raise": raises(app, story.lines, end),
    }
