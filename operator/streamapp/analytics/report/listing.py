"""The tables under the charts: columns, headings, and cells with their exact values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from streamapp.analytics.gold.daily import SKEWED
from streamapp.analytics.report.amounts import answer, count, duration, hours, rate, ratio, share, size
from streamapp.analytics.report.rows import Row
from streamapp.analytics.report.tables import shown


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    heading: str
    """With the unit, unless the values have it."""
    to_text: Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Listing:
    """The layout of a table."""

    title: str
    under: str
    """The chart above the table."""
    columns: tuple[Column, ...]
    order: tuple[str, ...]
    """Columns that sort the table; if there are too many rows, the last ones stay."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure as text, and its exact value."""

    column: str
    text: str
    value: str


@dataclass(frozen=True, slots=True)
class Listed:
    """A table of a page."""

    table: str
    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left_out: int


def text(value: Any) -> str:
    """The value as text, a dash for none."""
    return "—" if value in (None, "") else str(value)


def _when(value: datetime | None) -> str:
    return shown(value)


def _phases(value: Any) -> str:
    spent = [(name, seconds) for name, seconds in dict(value or {}).items() if seconds]
    return ", ".join(f"{name} {duration(seconds)}" for name, seconds in spent) or "—"


def _shares(value: Any) -> str:
    parts = sorted(dict(value or {}).items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {share(part)}" for name, part in parts if part >= 0.005) or "—"


def _causes(value: Any) -> str:
    parts = sorted(dict(value or {}).items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {duration(seconds)}" for name, seconds in parts) or "—"


def _known(value: int | None) -> str:
    return "—" if value is None else f"{value}"


def _columns(*columns: tuple[str, str, Callable[[Any], str]]) -> tuple[Column, ...]:
    return tuple(Column(*column) for column in columns)


LISTINGS: Final[dict[str, Listing]] = {
    "s_scale_episode": Listing(
        "Steps",
        "phases",
        _columns(
            ("t_event", "desired replicas changed (UTC)", _when),
            ("from_replicas", "from (pods)", count),
            ("to_replicas", "to (pods)", count),
            ("actor", "by", text),
            ("outcome", "outcome", text),
            ("convergence_s", "converged after", duration),
            ("observed_s", "observed for", duration),
            ("worst_gap_s", "longest gap", duration),
            ("phases", "phases", _phases),
            ("critical_task", "last task to catch up", text),
            ("moved_tasks", "tasks moved", count),
            ("rebalances", "rebalances", count),
            ("restored", "restored (slots)", count),
        ),
        ("t_event",),
    ),
    "s_downtime": Listing(
        "Gaps",
        "gaps",
        _columns(
            ("t_stop", "not before (UTC)", _when),
            ("t_resume", "over by (UTC)", _when),
            ("source", "source", text),
            ("task", "task", text),
            ("downtime_s", "gap", duration),
            ("err_s", "error", duration),
            ("hold_id", "hold", text),
        ),
        ("t_resume", "task"),
    ),
    "g_downtime_daily": Listing(
        "Downtime by day",
        "downtime",
        _columns(
            ("dt", "day (UTC)", text),
            ("tasks", "tasks", count),
            ("availability", "objective (%)", text),
            ("task_s", "observed (task-seconds)", count),
            ("n", "times", count),
            ("at_least_s", "stood at least", duration),
            ("at_most_s", "stood at most", duration),
            ("by_cause", "by cause", _causes),
            ("worst_s", "longest", duration),
            ("worst_task", "task", text),
            ("open", "still standing", count),
        ),
        ("dt",),
    ),
    "s_outage": Listing(
        "Times in which a task did not run",
        "downtime",
        _columns(
            ("t_stop", "not before (UTC)", _when),
            ("t_end", "until (UTC)", _when),
            ("task", "task", text),
            ("cause", "cause", text),
            ("at_least_s", "at least", duration),
            ("at_most_s", "at most", duration),
            ("is_open", "still standing", answer),
        ),
        ("t_end", "task"),
    ),
    "g_hold_blame": Listing(
        "Blame by day",
        "blame",
        _columns(
            ("dt", "day (UTC)", text),
            ("reason", "reason", text),
            ("task", "task", text),
            ("ordinal", "pod", _known),
            ("blame_s", "held", duration),
            ("sole_s", "alone", duration),
            ("stuck_s", "came no nearer", duration),
            ("critical_n", "times last", count),
            ("holds", "holds", count),
        ),
        ("dt", "blame_s"),
    ),
    "g_convergence_daily": Listing(
        "Convergence by day",
        "survival",
        _columns(
            ("dt", "day (UTC)", text),
            ("direction", "direction", text),
            ("n", "steps", count),
            ("n_converged", "converged", count),
            ("n_censored", "not observed to end", count),
            ("km_p50", "half within", duration),
            ("km_p90", "90 % within", duration),
            ("km_p99", "99 % within", duration),
            ("slo_met", "aim met", answer),
            ("phase_share", "where the time went", _shares),
        ),
        ("dt", "direction"),
    ),
    "g_restore_profile": Listing(
        "Restore rates (slots/s)",
        "rates",
        _columns(
            ("scope", "of", text),
            ("subtopology", "subtopology", text),
            ("task", "task", text),
            ("volume", "volume", text),
            ("n_stints", "times", count),
            ("rate_p10", "P10", rate),
            ("rate_p50", "median", rate),
            ("rate_p90", "P90", rate),
            ("rate_mean", "recent mean", rate),
            ("rate_learned", "learned", rate),
            ("updated", "last (UTC)", _when),
        ),
        ("scope", "subtopology", "task", "volume"),
    ),
    "g_skew_daily": Listing(
        "Spread by day",
        "skew",
        _columns(
            ("dt", "day (UTC)", text),
            ("max_share", "largest part on one process", share),
            ("imbalance", "busiest over best (ratio)", ratio),
            ("gini", "Gini (ratio)", ratio),
            ("bad_s", f"above {SKEWED:g} for", duration),
            ("seen_s", "observed for", duration),
        ),
        ("dt",),
    ),
    "g_churn_daily": Listing(
        "Rebalances by day",
        "rebalances",
        _columns(
            ("dt", "day (UTC)", text),
            ("rebalances", "rebalances", count),
            ("tasks_moved", "tasks moved", count),
            ("moved_back", "moved back", count),
            ("pid_changes", "changed process IDs", count),
            ("ghost_members", "members without a pod", count),
        ),
        ("dt",),
    ),
    "g_autoscaler_daily": Listing(
        "Changes of the desired replicas by day",
        "autoscaler",
        _columns(
            ("dt", "day (UTC)", text),
            ("events", "changes", count),
            ("reversals", "reversed", count),
            ("flap_pairs", "flaps", count),
            ("wasted_events", "wasted", count),
            ("wasted_slots", "restored for nothing (slots)", count),
            ("replica_h", "pods (h)", hours),
            ("held_replica_h", "held pods (h)", hours),
            ("cannot_act_s", "autoscaler could not act", duration),
            ("below_min_s", "wanted fewer than its minimum", duration),
            ("above_max_s", "wanted more than its maximum", duration),
        ),
        ("dt",),
    ),
    "s_autoscaler_interval": Listing(
        "States of autoscalers",
        "autoscaler",
        _columns(
            ("t_start", "from (UTC)", _when),
            ("t_end", "until (UTC)", _when),
            ("name", "autoscaler", text),
            ("aims_at", "of a", text),
            ("min_replicas", "minimum", _known),
            ("max_replicas", "maximum", _known),
            ("desired_replicas", "wanted", _known),
            ("cannot_act", "could not act", text),
            ("limited_by", "limited by", text),
            ("up_window_seconds", "window up", duration),
            ("down_window_seconds", "window down", duration),
        ),
        ("t_start", "name"),
    ),
    "g_volume_daily": Listing(
        "Volumes by day",
        "rates",
        _columns(
            ("dt", "day (UTC)", text),
            ("volume", "volume", text),
            ("ordinal", "pod", _known),
            ("state_bytes", "largest state", size),
            ("free_bytes", "least free", size),
            ("requested_bytes", "size of the claim", size),
        ),
        ("dt", "volume"),
    ),
}


def exact(value: Any) -> str:
    """The exact value, for programs that read the page."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list | dict):
        return ",".join(f"{name}={part!r}" for name, part in sorted(dict(value).items()))
    return "" if value is None else str(value)


def listed(table: str, rows: Sequence[Row], most: int) -> Listed:
    """The last rows of a table, at most `most`."""
    how = LISTINGS[table]
    ordered = sorted(rows, key=lambda row: tuple((row[name] is not None, row[name]) for name in how.order))
    cells = tuple(
        tuple(Cell(column.name, column.to_text(row[column.name]), exact(row[column.name])) for column in how.columns)
        for row in ordered[-most:]
    )
    headings = tuple(column.heading for column in how.columns)
    return Listed(table, how.title, headings, cells, max(0, len(rows) - most))
