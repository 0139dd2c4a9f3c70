"""Cuts a gap into parts at the moments of a move, and sums moves up. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from tests.benchmarks.handover.stamps import STAMPS

PARTS = (
    "before the revoke",
    "revoke and commit",
    "until the owner rejoins",
    "until all have joined",
    "join and sync",
    "out of the state updater",
    "restore the rest",
    "until the thread sees it",
    "first fetch and output",
)
"""Between two moments each: the first input that waits, the stamps, the output that ends the gap."""


@dataclass(frozen=True)
class CutGap:
    """The gap of one moved partition."""

    way: str
    kind: str
    turn: int
    partition: int
    seconds: float
    parts: tuple[float, ...] | None
    """Seconds by part, which add up to the gap; None if the logs do not show every moment."""

    def to_json(self) -> dict[str, object]:
        """Give it for a file."""
        cut = None if self.parts is None else dict(zip(PARTS, self.parts, strict=True))
        return {
            "way": self.way,
            "kind": self.kind,
            "turn": self.turn,
            "partition": self.partition,
            "gap_s": self.seconds,
            "parts_s": cut,
        }


def cut(start_ms: int, end_ms: int, stamps: Mapping[str, int]) -> tuple[float, ...] | None:
    """Cut [start, end] at the stamps; None if one is missing.

    A stamp that lies outside, or earlier than the stamp before it, cuts nothing off.
    """
    if any(name not in stamps for name in STAMPS):
        return None
    edges = [start_ms]
    for name in STAMPS:
        edges.append(min(max(stamps[name], edges[-1]), end_ms))
    edges.append(end_ms)
    return tuple((later - earlier) / 1000 for earlier, later in pairwise(edges))


@dataclass(frozen=True)
class Summary:
    """All gaps of one way and kind."""

    way: str
    kind: str
    gaps: tuple[float, ...]
    parts: tuple[float, ...] | None
    """Mean by part, of those that could be cut; they add up to their mean gap."""
    quiet: float
    """Longest gap of a partition that stayed, meanwhile."""

    @property
    def middle(self) -> float:
        """The median gap."""
        return median(self.gaps)


def summarised(found: Sequence[CutGap], quiet: Mapping[tuple[str, str], float]) -> list[Summary]:
    """Sum up by way and kind, in the order in which they came."""
    keys = list(dict.fromkeys((one.way, one.kind) for one in found))
    return [_summary([one for one in found if (one.way, one.kind) == key], key, quiet) for key in keys]


def _summary(found: Sequence[CutGap], key: tuple[str, str], quiet: Mapping[tuple[str, str], float]) -> Summary:
    known = [one.parts for one in found if one.parts is not None]
    means = tuple(sum(column) / len(known) for column in zip(*known, strict=True)) if known else None
    return Summary(*key, tuple(one.seconds for one in found), means, quiet.get(key, 0.0))
