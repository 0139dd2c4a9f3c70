"""What the rules of advice look at: the rows of one application, and what several rules ask of them. Pure."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from statistics import median

from streamapp.analytics.report.facts import newest_settings
from streamapp.analytics.report.rows import AppRows, Row


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of one application."""

    rows: AppRows
    days: int
    """UTC days on which the application was seen."""

    @property
    def config(self) -> Row:
        """The newest settings; empty if none is known."""
        return newest_settings(self.rows)

    @property
    def name(self) -> str:
        """The name of the StreamApp, or a placeholder."""
        return str(next((row["app"] for row in self.rows["s_seen"]), None) or "NAME")

    @property
    def autoscaler(self) -> str:
        """The name of an autoscaler at work, or a placeholder."""
        return next((row["name"] for row in self.rows["s_autoscaler_interval"] if row["is_active"]), "NAME")

    @property
    def tasks(self) -> int:
        """Tasks that keep state, or all of them; 0 if unknown."""
        return len(self.config.get("stateful_tasks") or ()) or self.config.get("tasks") or 0

    @property
    def threads(self) -> int:
        """Threads of a pod, in the median; 0 if unknown."""
        told = [row["threads"] for row in self.rows["s_assignment_interval"] if row["threads"]]
        return int(median(told)) if told else 0

    @property
    def end(self) -> datetime | None:
        """The last line of the application."""
        return max((row["t_last"] for row in self.rows["s_seen"]), default=None)

    def hours_by_pods(self) -> Mapping[int, float]:
        """Hours by the number of pods there were."""
        hours: dict[int, float] = defaultdict(float)
        for row in self.rows["s_decision_interval"]:
            if row["actual"]:
                hours[row["actual"]] += spent(row) / 3600
        return hours


def spent(row: Row) -> float:
    """Seconds of an interval."""
    seconds: float = (row["t_end"] - row["t_start"]).total_seconds()
    return seconds


def enough(tasks: int, pods: int, threads: int) -> int:
    """The fewest pods whose busiest thread has no more tasks than with `pods`."""
    return ceil(tasks / ceil(tasks / (pods * threads)) / threads)


def next_that_pays(tasks: int, pods: int, threads: int) -> int | None:
    """The fewest pods whose busiest thread has fewer tasks than with `pods`; None if it has one already."""
    busiest = ceil(tasks / (pods * threads))
    return ceil(tasks / (busiest - 1) / threads) if busiest > 1 else None
