"""A refusal: what a gate, or a question that gates ask, answers if it cannot say yes."""

from collections.abc import Sequence
from dataclasses import dataclass

from streamapp.core.evidence.coverage import TaskWait
from streamapp.core.reasons import Reason


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why pods cannot go, or why that is unknown."""

    reason: Reason
    detail: str = ""
    """Which, where, how far: the part that the reason's note leaves out."""
    waits: tuple[TaskWait, ...] = ()
    needs_rebalance: bool = True
    """False if time alone brings what is missing."""


def first_few(things: Sequence[object]) -> str:
    """Name the first few of many."""
    shown = ", ".join(str(thing) for thing in things[:5])
    return shown if len(things) <= 5 else f"{shown} and {len(things) - 5} more"
