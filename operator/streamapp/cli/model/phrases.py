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


def are(pods: int) -> str:
    """Write `1 pod is`, `2 pods are`."""
    return f"{counted(pods, 'pod')} {'is' if pods == 1 else 'are'}"


def about_left(left: timedelta | Never | None) -> str:
    """Say how long still, as far as that is known."""
    match left:
        case None:
            return "not known"
        case Never():
            return "never at this speed"
        case _:
            return f"about {durations.short(left)}" if left else "any moment"


def gap_text(step: LastStep) -> str:
    """Say how long a task ran nowhere: as a range, since the operator looks only now and then."""
    if step.downtime_max is None:
        return "not seen"
    if not step.downtime_uncertainty:
        return durations.fine(step.downtime_max)
    return f"{durations.fine(step.downtime_max - step.downtime_uncertainty)} to {durations.fine(step.downtime_max)}"
