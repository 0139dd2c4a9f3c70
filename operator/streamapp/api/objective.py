"""The budget of downtime that `spec.objective.availability` leaves: one for status, metrics and pipeline.

Pure. Called by the spec, the controller's ledger and the report.
"""

import calendar
from decimal import Decimal
from functools import lru_cache
from typing import Final

DAY_SECONDS: Final = 86_400


@lru_cache(maxsize=256)
def budget_share(availability: str | float) -> float:
    """The share of task-seconds that can be lost; `availability` is a percentage, for example `99.9`."""
    return float(1 - Decimal(str(availability)) / 100)


def budget_seconds(availability: str | float, tasks: int, month: str) -> float:
    """The task-seconds that can be lost in a calendar month.

    Args:
        availability: percentage of the task-seconds in which tasks must run.
        tasks: how many tasks the application has.
        month: in UTC, for example `2026-11`.
    """
    year, number = map(int, month.split("-"))
    return budget_share(availability) * tasks * calendar.monthrange(year, number)[1] * DAY_SECONDS
