"""Phrases that several screens share."""

from datetime import timedelta

from streamapp.api.v1alpha1.status import LastStep
from streamapp.cli.model.app_view import Never
from streamapp.cli.text import durations

LABELS = 11
"""Columns of the labels at the left of a screen."""


def counted(number: int, noun: str) -> str:
    """Write `1 task`, `2 tasks`, `1,000 tasks`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def about_left(left: timedelta | Never | None) -> str:
    """The time left, as a phrase."""
    match left:
        case None:
            return "unknown"
        case Never():
            return "never at this rate"
        case _:
            return f"about {durations.short(left)}" if left else "any moment"


def downtime_text(step: LastStep) -> str:
    """How long a task did not run: a range, since the operator reads the group only at intervals."""
    if step.downtime_max is None:
        return "unknown"
    return downtime_range(step.downtime_max - (step.downtime_uncertainty or timedelta(0)), step.downtime_max)


def downtime_range(at_least: timedelta, at_most: timedelta) -> str:
    """One duration, or two with `to` between them."""
    if at_least == at_most:
        return durations.fine(at_most)
    return f"{durations.fine(at_least)} to {durations.fine(at_most)}"
