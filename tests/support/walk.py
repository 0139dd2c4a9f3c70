"""A walk from pass to pass: what is decided is done at once, until nothing changes any more."""

from dataclasses import replace
from typing import Protocol, Self, TypeVar

from streamapp.core.actions.decision import Decision, GrantReplicas
from streamapp.core.facts.hold_record import HoldRecord

MOST_PASSES = 40
"""More than any walk needs: a restart, a removal, an announcement and a record for each pod."""


class Walked(Protocol):
    """One state of a world; each pass leads to the next."""

    @property
    def of_a_pass(self) -> tuple[object, ...]:
        """What a pass can change, without the clock and the counter that move at each write."""

    def decide(self) -> Decision:
        """What is decided here."""

    def after(self, decision: Decision) -> Self:
        """What the world is when all of that is done."""


World = TypeVar("World", bound=Walked)


def walk(world: World) -> tuple[World, Decision]:
    """Go on until nothing changes any more; the last state, and what is decided there.

    Raises:
        AssertionError: It never ends.
    """
    for _ in range(MOST_PASSES):
        decision = world.decide()
        following = world.after(decision)
        if following.of_a_pass == world.of_a_pass:
            return world, decision
        world = following
    raise AssertionError(f"no end after {MOST_PASSES} passes: {world}")


def kept_after(step: GrantReplicas) -> HoldRecord | None:
    """The record when the step has ended: that of a hold goes on."""
    record = step.record if isinstance(step.record, HoldRecord) else None
    return None if record is None or record.hold is None else replace(record, step=None)
