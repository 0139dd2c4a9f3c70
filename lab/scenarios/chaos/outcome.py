"""What came of a run of chaos: what was done, how long users waited and after what, and what the counts say. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from lab.meter.counts import CountReport, CountVerdict
from lab.meter.gaps import Gap
from lab.scenarios.chaos.script import Act, Danger

LEAST_GAP_SECONDS = 1.0
"""Shorter gaps are not listed."""
REMEMBERED_MS = 60_000
"""An act is blamed for gaps that begin until so long after its end: a session timeout and some seconds."""
_TOLERANCE_MS = 1_000
"""A gap begins with the first input that waits, which may be a little before the act was noted."""
NOTHING = "nothing"
"""Blamed where nothing had been done to the application for a minute."""


class CameTo(StrEnum):
    """Whether an act was done."""

    DONE = "done"
    SKIPPED = "skipped"
    """There was nothing to strike."""
    FAILED = "failed"
    """The cluster did not take it."""


@dataclass(frozen=True)
class Played:
    """One act, and what came of it."""

    act: Act
    began_ms: int
    ended_ms: int
    came_to: CameTo
    words: str
    """Of the actor, or of what failed."""


@dataclass(frozen=True)
class LongGap:
    """One time for which the users of a partition waited."""

    application: str
    partition: int
    start_ms: int
    seconds: float
    cause: str
    """The latest danger that struck the application before the gap began, or `NOTHING`."""


@dataclass(frozen=True)
class Outcome:
    """All of one run."""

    seed: int
    seconds: float
    """For how long dangers were played."""
    began_at: str
    settled_seconds: float
    """From the last act until every application had converged."""
    played: tuple[Played, ...]
    gaps: tuple[LongGap, ...]
    counts: Mapping[str, CountReport]
    faults: tuple[str, ...]
    """What is wrong at the end, one sentence each; none: the run is good."""

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults

    def of(self, danger: Danger, came_to: CameTo) -> int:
        """Count the acts of a danger that came to this."""
        return sum(one.act.danger is danger and one.came_to is came_to for one in self.played)

    def worst(self, cause: str, application: str) -> float | None:
        """Give the longest gap of an application that is blamed on a danger; None where there is none."""
        found = [gap.seconds for gap in self.gaps if (gap.cause, gap.application) == (cause, application)]
        return max(found, default=None)

    def to_json(self) -> dict[str, Any]:
        """Give everything for a file."""
        counts = {name: report.to_json() for name, report in self.counts.items()}
        return {**asdict(self), "counts": counts}


def long_gaps(application: str, gaps: Mapping[int, Sequence[Gap]], played: Sequence[Played]) -> tuple[LongGap, ...]:
    """Name the cause of each gap of an application."""
    return tuple(
        LongGap(application, partition, gap.start_ms, gap.seconds, cause_of(gap.start_ms, application, played))
        for partition, found in gaps.items()
        for gap in found
    )


def cause_of(start_ms: int, application: str, played: Sequence[Played]) -> str:
    """Give the danger to blame for a gap: the latest that struck the application, or all of them, before it began."""
    before = [
        one
        for one in played
        if one.came_to is CameTo.DONE and one.act.application in {None, application}
        if one.began_ms - _TOLERANCE_MS <= start_ms <= one.ended_ms + REMEMBERED_MS
    ]
    return max(before, key=lambda one: one.began_ms).act.danger.value if before else NOTHING


def count_faults(counts: Mapping[str, CountReport]) -> tuple[str, ...]:
    """Say which promises the counts break, one sentence each."""
    return tuple(
        f"{name}: {report.verdict.value}; {report.inputs:,} inputs, {report.lost:,} lost, {report.doubled:,} doubled"
        for name, report in counts.items()
        if report.verdict is not CountVerdict.KEPT
    )
