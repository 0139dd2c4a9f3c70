"""What charts draw: plain values for each chart of a page, the newest of them where there are too many. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from typing import Any, Final

from streamapp.analytics.report.amounts import duration, unit
from streamapp.analytics.report.facts import App, curve
from streamapp.analytics.report.tables import Row, millis, shown

Drawn = list[dict[str, Any]]
PHASES: Final = ("grant", "hold", "schedule", "start", "join", "drain", "restore", "probe", "settle")
MOST_REASONS: Final = 7
OTHER: Final = "other reasons"
BARS: Final = 40
"""Rows of a chart with one row for each step: more cannot be read."""


@dataclass(frozen=True, slots=True)
class Series:
    """The data of all charts of an application."""

    data: dict[str, Drawn] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    """Of those whose unit depends on the data."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Rows that are not drawn, the oldest, by data."""

    def put(self, name: str, rows: Drawn, most: int) -> None:
        """Keep the last ones, which are the newest."""
        self.data[name] = rows[-most:]
        if len(rows) > most:
            self.left_out[name] = len(rows) - most


def series(app: App, reasons: Sequence[str], most: int) -> Series:
    """All data of one application; `reasons` have colours of their own, at most `most` rows are kept of each."""
    found = Series()
    found.put("replicas", _replicas(app.rows["s_decision_interval"]), most)
    found.put("holds", _holds(app.rows["s_decision_interval"], reasons), most)
    steps = sorted(app.rows["s_scale_episode"], key=lambda row: row["t_event"])
    _in_unit(found, "gaps", _gaps(app), ("low", "high"), min(most, BARS))
    _in_unit(found, "phases", _phases(steps[-BARS:]), ("from", "to"), most)
    if len(steps) > BARS:
        found.left_out["phases"] = len(steps) - BARS
    found.put("rates", _rates(app), most)
    found.put("stints", _stints(app), most)
    _in_unit(found, "blame", _blame(app, reasons), ("held",), min(most, BARS))
    found.put("skew", _skew(app.rows["s_assignment_interval"]), most)
    found.put("autoscaler", _autoscaler(app), most)
    found.put("rebalances", _rebalances(app), most)
    _in_unit(found, "survival", survival_rows(steps), ("after",), most)
    return found


def _in_unit(found: Series, name: str, rows: Drawn, fields: tuple[str, ...], most: int) -> None:
    word, seconds = unit(max((row[one] or 0.0 for row in rows for one in fields), default=0.0))
    for row in rows:
        row |= {one: None if row[one] is None else round(row[one] / seconds, 4) for one in fields}
    found.units[name] = word
    found.put(name, rows, most)


def _wished(row: Row) -> tuple[Any, ...]:
    return row["desired"], row["granted"], row["actual"], row["ready"]


def _replicas(decisions: Iterable[Row]) -> Drawn:
    """One row for each change, one at each end; an empty one where nothing was recorded in between."""
    rows = sorted(decisions, key=lambda row: row["t_start"])
    found: Drawn = []
    for row, after in zip_longest(rows, rows[1:]):
        values = dict(zip(("desired", "granted", "actual", "ready"), _wished(row), strict=True))
        if not found or any(found[-1].get(name) != value for name, value in values.items()):
            found.append({"t": millis(row["t_start"]), **values})
        if after is None or after["t_start"] > row["t_end"]:
            found.append({"t": millis(row["t_end"]), **values})
            if after is not None:
                found.append({"t": millis(row["t_end"]) + 1, **dict.fromkeys(values)})
    return found


def _holds(decisions: Iterable[Row], reasons: Sequence[str]) -> Drawn:
    """Times of holding for one reason."""
    found: Drawn = []
    for row in sorted(decisions, key=lambda row: row["t_start"]):
        if not row["hold_id"]:
            continue
        one = {"from": millis(row["t_start"]), "to": millis(row["t_end"]), "hold": row["hold_id"]}
        told = {"why": row["reason"], "reason": named(row["reason"], reasons)}
        if (
            found
            and found[-1]["to"] == one["from"]
            and (found[-1]["hold"], found[-1]["why"])
            == (
                one["hold"],
                told["why"],
            )
        ):
            found[-1]["to"] = one["to"]
        else:
            found.append(one | told)
    return found


def named(reason: str, reasons: Sequence[str]) -> str:
    """The reason if it has a colour of its own."""
    return reason if reason in reasons else OTHER


def label(step: Row) -> str:
    """A step as its row in a chart is called."""
    return f"{step['t_event']:%m-%d %H:%M:%S}  {step['from_replicas']} → {step['to_replicas']}"


def _gaps(app: App) -> Drawn:
    """From what each step's gap took at least to what it took at most."""
    return [
        {
            "step": label(cost.row),
            "low": 0.0 if cost.gap_error_s is None else max(0.0, cost.gap_s - cost.gap_error_s),
            "high": cost.gap_s,
            "told": cost.gap,
        }
        for cost in app.steps
        if cost.gap_s is not None
    ]


def _phases(steps: Sequence[Row]) -> Drawn:
    found: Drawn = []
    for step in steps:
        spent, began = dict(step["phases"] or {}), 0.0
        for phase in PHASES:
            if spent.get(phase):
                row = {"step": label(step), "from": began, "to": began + spent[phase], "phase": phase}
                found.append(row | {"told": duration(spent[phase]), "outcome": step["outcome"]})
                began += spent[phase]
    return found


def _rates(app: App) -> Drawn:
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


def _stints(app: App) -> Drawn:
    rows = (row for row in app.rows["s_learner_stint"] if row["gross_rate"] is not None)
    return [
        {
            "sub": row["task"].split("_")[0],
            "rate": round(row["gross_rate"], 1),
            "task": row["task"],
            "pod": row["ordinal"],
            "grade": row["grade"],
            "at": shown(row["t_start"]),
        }
        for row in sorted(rows, key=lambda row: row["t_start"])
    ]


def culprit(task: str | None, ordinal: int | None) -> str:
    """Whom a hold waited for: the task, and the pod with its best copy."""
    if task is None:
        return "no task named"
    return f"task {task}" + (f", pod {ordinal}" if ordinal is not None else ", no copy")


def _blame(app: App, reasons: Sequence[str]) -> Drawn:
    sums: dict[tuple[str, str], float] = {}
    for row in app.rows["g_hold_blame"]:
        at = culprit(row["task"], row["ordinal"]), named(row["reason"], reasons)
        sums[at] = sums.get(at, 0.0) + row["blame_s"]
    rows = sorted(sums.items(), key=lambda one: one[1])
    return [{"what": what, "reason": why, "held": held, "told": duration(held)} for (what, why), held in rows]


def _skew(assignments: Iterable[Row]) -> Drawn:
    """Each layout's largest number of stateful tasks per thread over the mean one, as `g_skew_daily` averages it."""
    layouts: dict[Any, list[Row]] = {}
    for row in assignments:
        layouts.setdefault(row["t_start"], []).append(row)
    found: Drawn = []
    for start in sorted(layouts):
        members = layouts[start]
        tasks = sum(row["stateful_active"] for row in members)
        if not tasks:
            continue
        loads = [row["stateful_active"] / max(row["threads"], 1) for row in members]
        one = {
            "imbalance": round(max(loads) * len(loads) / sum(loads), 4),
            "share": round(max(row["stateful_active"] for row in members) / tasks, 4),
            "members": len(members),
        }
        found.append({"t": millis(start), **one})
        found.append({"t": millis(max(row["t_end"] for row in members)), **one})
    return _without_repeats(found)


def _without_repeats(rows: Drawn) -> Drawn:
    """Without points that a line through their neighbours has anyway."""
    if len(rows) < 3:
        return rows
    keep = [rows[0]]
    for (before, here), after in zip(pairwise(rows), rows[2:], strict=False):
        if not before["imbalance"] == here["imbalance"] == after["imbalance"]:
            keep.append(here)
    return [*keep, rows[-1]]


def _autoscaler(app: App) -> Drawn:
    kinds = {"events": "changes", "reversals": "taken back", "flap_pairs": "flaps", "wasted_events": "wasted"}
    rows = sorted(app.rows["g_autoscaler_daily"], key=lambda row: row["dt"])
    return [{"day": row["dt"], "kind": word, "n": row[name]} for row in rows for name, word in kinds.items()]


def _rebalances(app: App) -> Drawn:
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
