"""What one process of the operator saw of the group, and when; which two looks a removal may rest on."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from streamapp.core.facts.ids import TaskId

FRESH = 10.6
"""Seconds that a look at the group may be old when it is judged: its description comes before its end."""
APART = 9.5
"""Two readings lie at least so far apart: 10 s between their ends, as seen by a poll of half a second."""
APART_BY_AGENTS = 2.5
"""The same for two words of the agents."""


@dataclass(frozen=True, slots=True)
class Look:
    """The truth at the moment when one process looked at the group."""

    at: float
    generation: int
    is_stable: bool
    good: Mapping[TaskId, frozenset[tuple[int, str, float]]]
    """Where each task has a good copy: ordinal, container, and from when on the world said so."""
    held: Mapping[int, frozenset[TaskId]]
    """What each ordinal was given, by the brokers' word."""
    members: frozenset[int]
    """Ordinals that are listed, dead or alive."""
    identities_hold: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Floors:
    """What a user asks of the pods that stay."""

    copies: int
    zones: int
    zone_of: str
    """The zone of each ordinal, a letter each."""
    is_tight: bool
    """No pod has memory for another task."""

    def are_missed(self, places: AbstractSet[int], staying: AbstractSet[int]) -> bool:
        """Whether these places of a task are too few; it takes no memory anew where all who stay have it already."""
        known = {self.zone_of[ordinal : ordinal + 1] for ordinal in places} if self.zones else set()
        return (self.is_tight and not staying <= places) or len(places) < self.copies or len(known) < self.zones


@dataclass(slots=True)
class Seen:
    """What one process was told, and when."""

    looks: deque[Look] = field(default_factory=lambda: deque(maxlen=90))
    app_is_stale: bool = False
    """Whether the server that last told of the StreamApp was behind."""
    containers: frozenset[str] | None = None
    """The containers that run, as last told; None where that was out of date."""
    ordinals: frozenset[int] = frozenset()
    """Of the pods as last told."""
    statefulset_at: float = 0.0
    """When it was last told of the StatefulSet."""
    ready: frozenset[int] | None = None
    """Of the pods as last told: those that are ready and stay; None where that was out of date, or not asked for."""
    undescribed_at: float = float("-inf")
    """When brokers told it last that they cannot describe the group."""
    heard_at: float = 0.0
    """When agents answered it last."""
    passed_at: float | None = None
    """When its first pass had come to the status."""


def fitting_pairs(
    looks: Sequence[Look], judged_at: float, *, by_agents: bool, asks_copies: bool = True
) -> list[tuple[Look, Look]]:
    """Looks that were fresh at the judgement or came later, each with one before it that fits.

    Of another join; but where agents speak, what each look shows is the present, so that no join lies between. Nor
    where a user lets the pods go without copies: joins show how far these are.
    """
    stable = [look for look in looks if look.is_stable]
    apart = APART_BY_AGENTS if by_agents else APART
    return [
        (later, earlier)
        for later in stable
        if judged_at - later.at <= FRESH
        for earlier in stable
        if apart <= later.at - earlier.at <= 125
        and (by_agents or not asks_copies or earlier.generation != later.generation)
    ]


def smallest(lost: Iterable[set[str]]) -> set[str]:
    """The first of the smallest; nothing is smaller than nothing."""
    least: set[str] | None = None
    for one in lost:
        if least is None or len(one) < len(least):
            least = one
        if not least:
            break
    return least or set()
