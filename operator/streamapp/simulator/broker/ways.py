"""The ways in which a change of a streams group can go, as far as the group does not show it.

Ties fall by Java's hash tables, so by the IDs of members, which those that join do not have yet. Nobody knows in which
order the threads of a pod join or leave, how many of them one assignment takes together, which patch release a broker
has, and what members will have reported by then.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from itertools import product
from typing import TypeVar

from streamapp.core.assignors.sticky import BrokerRelease

NAMINGS = 12
FEWEST_WAYS = 6
MOST_DEALT = 100_000
"""Tasks times assignments over all ways: a few seconds."""

T = TypeVar("T")


class Order(Enum):
    """How members that come or go together reach the broker."""

    TOGETHER = "one assignment takes all of them"
    FORWARD = "one by one"
    BACKWARD = "one by one, the last first"
    HALVES = "the first half, then the other one"


@dataclass(frozen=True, slots=True)
class Way:
    """One way."""

    release: BrokerRelease
    naming: int
    """0: the true names; else names that fall elsewhere in hash tables. It also chooses how copies rank."""
    order: Order

    def name(self, name: str) -> str:
        """What a member or a process is called in this way."""
        return name if self.naming == 0 else sha256(f"{self.naming}/{name}".encode()).hexdigest()[:22]

    def rank(self, text: str) -> int:
        """A number that is as good as drawn."""
        return int.from_bytes(sha256(f"{self.naming}/{text}".encode()).digest()[:4])

    def batches(self, members: Sequence[T]) -> list[Sequence[T]]:
        """The members that each assignment takes, in order."""
        match self.order:
            case Order.TOGETHER:
                return [members]
            case Order.FORWARD:
                return [[one] for one in members]
            case Order.BACKWARD:
                return [[one] for one in reversed(members)]
            case Order.HALVES:
                half = (len(members) + 1) // 2
                return [members[:half], members[half:]]


def ways(releases: Sequence[BrokerRelease], together: int, dealt: int) -> tuple[Way, ...]:
    """Every way, or those that differ least from the first one, where all of them would take too long.

    Args:
        releases: Those that the broker can have.
        together: The most members that come or go at once.
        dealt: Tasks times assignments that one way takes.
    """
    orders = list(Order)[: min(len(Order), max(1, 2 * together - 1))]
    every = sorted(
        product(enumerate(releases), enumerate(range(NAMINGS)), enumerate(orders)),
        key=lambda one: sum(number for number, _ in one),
    )
    most = max(FEWEST_WAYS, MOST_DEALT // max(1, dealt))
    return tuple(Way(release, naming, order) for (_, release), (_, naming), (_, order) in every[:most])
