"""The data of each chart of a page: plain values, the newest if there are too many. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise, zip_longest
from math import ceil
from typing import Any, Final

from streamapp.analytics.report.advice.volumes import compared, is_slow
from streamapp.analytics.report.amounts import duration, unit
from streamapp.analytics.report.facts import ReportedApp, curve
from streamapp.analytics.report.rows import Row
from streamapp.analytics.report.tables import STAYS, millis, shown
from streamapp.analytics.report.timeline.events import marks

Drawn = list[dict[str, Any]]
PHASES: Final = ("grant", "hold", "schedule", "start", "join", "drain", "restore", "probe", "settle")
MOST_REASONS: Final = 7
OTHER: Final = "other reasons"
BARS: Final = 40
"""Rows of a chart with one row for each step: more cannot be read."""
STRIP_TASKS: Final = 48
"""Tasks of a strip: more cannot be read."""
STRIP_ROWS: Final = 1_200


@dataclass(frozen=True, slots=True)
class Series:
    """The data of all charts of an application."""

    data: dict[str, Drawn] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    """Of charts whose unit depends on the data."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Number of old rows that are not drawn."""

    def put(self, name: str, rows: Drawn, most: int) -> None:
        """Keep the newest rows, which are the last."""
        self.data[name] = rows[-most:]
        if len(rows) > most:
            self.left_out[name] = len(rows) - most


def series(app: ReportedApp, reasons: Sequence[str], most: int) -> Series:
    """All data of one application; `reasons` have colours of their own, at most `most` rows are kept of each."""
    drawn = Series()
    decisions = app.rows["s_decision_interval"]
    drawn.put("replicas", _replicas(decisions), most)
    drawn.put("holds", _holds(decisions, reasons), most)
    drawn.put("marks", [{"t": millis(one.at), "kind": one.kind, "text": one.text} for one in marks(app.rows)], most)
    _put_strip(drawn, app, STRIP_ROWS)
    drawn.put("budget", _budget(app), most)
    steps = sorted(app.rows["s_scale_episode"], key=lambda row: row["t_event"])
    _in_unit(drawn, "gaps", _gaps(app), ("low", "high"), min(most, BARS))
    _in_unit(drawn, "phases", _phases(steps[-BARS:]), ("from", "to"), most)
    if len(steps) > BARS:
        drawn.left_out["phases"] = len(steps) - BARS
    _in_unit(drawn, "downtime", _downtime(app), ("stood",), most)
    drawn.put("rates", _rates(app), most)
    drawn.put("stints", _stints(app), most)
    _in_unit(drawn, "blame", _blame(app, reasons), ("held",), min(most, BARS))
    drawn.put("skew", _skew(app.rows["s_assignment_interval"]), most)
    drawn.put("autoscaler", _autoscaler(app), most)
    drawn.put("rebalances", _rebalances(app), most)
    _in_unit(drawn, "survival", survival_rows(steps), ("after",), most)
    return drawn


def _put_strip(drawn: Series, app: ReportedApp, most: int) -> None:
    """Who ran each task, of the tasks that stood or moved most; as many as can be read."""
    stays, stood = app.rows[STAYS], app.rows["s_outage"]
    since = min((row["t_start"] for row in stays), default=None)
    seen = [row for row in stood if since is not None and row["t_end"] >= since]
    weight: Counter[str] = Counter(row["task"] for row in stays)
    for row in seen:
        weight[row["task"]] += 1 + round(row["at_most_s"] or 0)
    tasks = {task for task, _ in sorted(weight.items(), key=lambda item: (-item[1], item[0]))[:STRIP_TASKS]}
    rows = [
        {
            "task": row["task"],
            "pod": "pod unknown" if row["ordinal"] is None else f"pod {row['ordinal']}",
            "from": millis(row["t_start"]),
            "to": millis(row["t_end"]),
        }
        for row in sorted(stays, key=lambda row: row["t_start"])
        if row["task"] in tasks
    ]
    # The axis has the order of the rows, and tasks are numbers.
    rows = sorted(rows[-most:], key=lambda row: [*map(int, row["task"].split("_"))])
    drawn.put("stays", rows, most)
    if len(weight) > len(tasks):
        drawn.left_out["stays"] = len(weight) - len(tasks)
    gaps = [
        {
            "task": row["task"],
            "from": millis(row["t_stop"]),
            "to": millis(row["t_end"]),
            "cause": row["cause"],
            "text": duration(row["at_most_s"]),
        }
        for row in sorted(seen, key=lambda row: row["t_stop"])
        if row["task"] in tasks
    ]
    drawn.put("stood", gaps, most)


def _budget(app: ReportedApp) -> Drawn:
    """The used part of each month's budget, day by day."""
    drawn: Drawn = []
    for month in app.months:
        used = 0.0
        for row in sorted(app.rows["g_downtime_daily"], key=lambda row: row["dt"]):
            if month.budget_s and row["dt"].startswith(month.month):
                used += row["at_most_s"]
                known = {"day": row["dt"], "t": _of_day(row["dt"]), "month": month.month}
                drawn.append({**known, "used": round(used / month.budget_s, 6), "text": duration(used)})
    return drawn


def _of_day(day: str) -> int:
    return millis(datetime.fromisoformat(day).replace(tzinfo=UTC))


def _in_unit(drawn: Series, name: str, rows: Drawn, fields: tuple[str, ...], most: int) -> None:
    word, seconds = unit(max((row[key] or 0.0 for row in rows for key in fields), default=0.0))
    for row in rows:
        row |= {key: None if row[key] is None else round(row[key] / seconds, 4) for key in fields}
    drawn.units[name] = word
    drawn.put(name, rows, most)


def _counts(row: Row) -> tuple[Any, ...]:
    return row["desired"], row["granted"], row["actual"], row["ready"]


def _replicas(decisions: Iterable[Row]) -> Drawn:
    """One row for each change, one at each end, and an empty one before a time without a record."""
    rows = sorted(decisions, key=lambda row: row["t_start"])
    drawn: Drawn = []
    for row, after in zip_longest(rows, rows[1:]):
        values = dict(zip(("desired", "granted", "actual", "ready"), _counts(row), strict=True))
        if not drawn or any(drawn[-1].get(name) != value for name, value in values.items()):
            drawn.append({"t": millis(row["t_start"]), **values})
        if after is None or after["t_start"] > row["t_end"]:
            drawn.append({"t": millis(row["t_end"]), **values})
            if after is not None:
                drawn.append({"t": millis(row["t_end"]) + 1, **dict.fromkeys(values)})
    return drawn


def _holds(decisions: Iterable[Row], reasons: Sequence[str]) -> Drawn:
    """The times of each hold with one reason."""
    drawn: Drawn = []
    for row in sorted(decisions, key=lambda row: row["t_start"]):
        if not row["hold_id"] and row["verdict"] != "Hold":
            continue
        span = {"from": millis(row["t_start"]), "to": millis(row["t_end"]), "hold": row["hold_id"] or ""}
        last = drawn[-1] if drawn else {}
        if (last.get("to"), last.get("hold"), last.get("why")) == (span["from"], span["hold"], row["reason"]):
            last["to"] = span["to"]
        else:
            drawn.append(span | {"why": row["reason"], "reason": named(row["reason"], reasons)})
    return drawn


def named(reason: str, reasons: Sequence[str]) -> str:
    """The reason, or `OTHER` if the reason has no colour of its own."""
    return reason if reason in reasons else OTHER


def label(step: Row) -> str:
    """The name of a step in a chart."""
    return f"{step['t_event']:%m-%d %H:%M:%S}  {step['from_replicas']} → {step['to_replicas']}"


def _gaps(app: ReportedApp) -> Drawn:
    """The gap of each step, from its least to its greatest length."""
    return [
        {
            "step": label(cost.row),
            "t": millis(cost.row["t_event"]),
            "low": 0.0 if cost.gap_error_s is None else max(0.0, cost.gap_s - cost.gap_error_s),
            "high": cost.gap_s,
            "text": cost.gap,
        }
        for cost in app.steps
        if cost.gap_s is not None
    ]


def _downtime(app: ReportedApp) -> Drawn:
    """Task-seconds without processing by day and cause, at most."""
    rows = sorted(app.rows["g_downtime_daily"], key=lambda row: row["dt"])
    return [
        {"day": row["dt"], "t": _of_day(row["dt"]), "cause": cause, "stood": seconds, "text": duration(seconds)}
        for row in rows
        for cause, seconds in dict(row["by_cause"] or {}).items()
    ]


def _phases(steps: Sequence[Row]) -> Drawn:
    drawn: Drawn = []
    for step in steps:
        spent, began = dict(step["phases"] or {}), 0.0
        for phase in PHASES:
            if spent.get(phase):
                row = {
                    "step": label(step),
                    "t": millis(step["t_event"]),
                    "from": began,
                    "to": began + spent[phase],
                    "phase": phase,
                }
                drawn.append(row | {"text": duration(spent[phase]), "outcome": step["outcome"]})
                began += spent[phase]
    return drawn


def _rates(app: ReportedApp) -> Drawn:
    rows = (row for row in app.rows["g_restore_profile"] if row["scope"] == "subtopology")
    return [
        {
            "sub": row["subtopology"],
            "p10": row["rate_p10"],
            "p50": row["rate_p50"],
            "p90": row["rate_p90"],
            "n": row["n_stints"],
        }
        for row in sorted(rows, key=lambda row: int(row["subtopology"]))
    ]


def _stints(app: ReportedApp) -> Drawn:
    rows = (row for row in app.rows["s_learner_stint"] if row["gross_rate"] is not None)
    sick = {name for name, cases in compared(app.rows["g_restore_profile"], "volume").items() if is_slow(cases)}
    slow = {row["ordinal"]: row["volume"] for row in app.rows["s_pod_interval"] if row["volume"] in sick}
    return [
        {
            "sub": row["task"].split("_")[0],
            "t": millis(row["t_start"]),
            "rate": round(row["gross_rate"], 1),
            "task": row["task"],
            "pod": row["ordinal"],
            "grade": row["grade"],
            "where": slow.get(row["ordinal"], ""),
            "at": shown(row["t_start"]),
        }
        for row in sorted(rows, key=lambda row: row["t_start"])
    ]


def blocker(task: str | None, ordinal: int | None) -> str:
    """The task that blocked a scale-down, and the pod with the best copy of that task."""
    if task is None:
        return "no task named"
    return f"task {task}" + (f", pod {ordinal}" if ordinal is not None else ", no copy")


def _blame(app: ReportedApp, reasons: Sequence[str]) -> Drawn:
    sums: dict[tuple[str, str], float] = {}
    for row in app.rows["g_hold_blame"]:
        at = blocker(row["task"], row["ordinal"]), named(row["reason"], reasons)
        sums[at] = sums.get(at, 0.0) + row["blame_s"]
    rows = sorted(sums.items(), key=lambda item: item[1])
    return [{"what": what, "reason": why, "held": held, "text": duration(held)} for (what, why), held in rows]


def _skew(assignments: Iterable[Row]) -> Drawn:
    """The imbalance of each assignment, which `g_skew_daily` averages."""
    layouts: dict[Any, list[Row]] = {}
    for row in assignments:
        layouts.setdefault(row["t_start"], []).append(row)
    drawn: Drawn = []
    for start in sorted(layouts):
        members = layouts[start]
        tasks = sum(row["stateful_active"] for row in members)
        if not tasks:
            continue
        threads = [max(row["threads"], 1) for row in members]
        busiest = max(ceil(row["stateful_active"] / own) for row, own in zip(members, threads, strict=True))
        values = {
            "imbalance": round(busiest / ceil(tasks / sum(threads)), 4),
            "share": round(max(row["stateful_active"] for row in members) / tasks, 4),
            "members": len(members),
        }
        drawn.append({"t": millis(start), **values})
        drawn.append({"t": millis(max(row["t_end"] for row in members)), **values})
    return _without_repeats(drawn)


def _without_repeats(rows: Drawn) -> Drawn:
    """Drop points that lie between two equal neighbours."""
    if len(rows) < 3:
        return rows
    keep = [rows[0]]
    for (before, here), after in zip(pairwise(rows), rows[2:], strict=False):
        if not before["imbalance"] == here["imbalance"] == after["imbalance"]:
            keep.append(here)
    return [*keep, rows[-1]]


def _autoscaler(app: ReportedApp) -> Drawn:
    kinds = {"events": "changes", "reversals": "taken back", "flap_pairs": "flaps", "wasted_events": "wasted"}
    rows = sorted(app.rows["g_autoscaler_daily"], key=lambda row: row["dt"])
    return [
        {"day": row["dt"], "t": _of_day(row["dt"]), "kind": word, "n": row[name]}
        for row in rows
        for name, word in kinds.items()
    ]


def _rebalances(app: ReportedApp) -> Drawn:
    rows = sorted(app.rows["s_rebalance"], key=lambda row: row["ts"])
    return [
        {
            "t": millis(row["ts"]),
            "moved": row["tasks_moved"],
            "back": row["moved_back"],
            "members": row["members"],
            "joined": row["members_joined"],
            "left": row["members_left"],
        }
        for row in rows
    ]


def survival_rows(episodes: Sequence[Row]) -> Drawn:
    """The curves of both directions."""
    words = {"up": "scale-up", "down": "scale-down"}
    return [
        {"way": words[way], "after": point.seconds, "left": round(point.share, 6), "censored": point.censored}
        for way in words
        for point in curve(episodes, way)
    ]
