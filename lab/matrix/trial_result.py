"""What came of one trial. Values, and how they are written as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lab.matrix.cells import Cell


class Verdict(StrEnum):
    """How it ended."""

    DRAINED = "drained"
    STEPPED_ASIDE = "stepped aside"
    """As it had to."""
    FAILED = "failed"


@dataclass(frozen=True)
class RuntimeInfo:
    """What one of the agents said of its JVM, and the JVM itself."""

    java: str
    streams: str
    """The version that Kafka Streams says it has; empty where it does not."""
    loader: str
    """The class of the loader that has loaded Kafka Streams; empty where the JVM did not say."""
    assignor: str
    """The class in force; empty where none is."""
    aside: str
    """Why ours is not at work, with the kind; empty where it is."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Settings that the agent gave another default."""
    asides: tuple[str, ...] = ()
    """All that the agent does not do here, with the reason."""


@dataclass(frozen=True)
class Gaps:
    """Worst gaps in seconds; None: nothing was measured."""

    quiet: float | None
    """Of all partitions, before anybody was told anything."""
    moved: float | None
    """Of those whose task moved, from the announcement until the process was empty."""
    others: float | None
    """Of the others in the same time."""
    stop: float | None
    """Of all partitions, from SIGTERM on."""
    drain_by_partition: Mapping[int, float | None] = field(default_factory=dict)
    stop_by_partition: Mapping[int, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Drain:
    """One process was emptied and stopped."""

    moved: int
    """Tasks with state that it had."""
    learned_after: float
    """Seconds from the announcement until a survivor had a copy of each that had caught up."""
    drained_after: float
    """Until it held nothing, and all tasks were at work elsewhere."""
    triggered_rebalances: int
    stopped_after: float
    """Seconds from SIGTERM to the end of the process."""
    exit_code: int
    left: bool | None
    """Whether it had given up its place in the group some seconds later; None: the group was not stable then."""
    moved_at_stop: int
    """Tasks with state that changed their process although the one that stopped held none."""
    rounds: tuple[Mapping[str, Any], ...]
    """What the assignor said at the end of the last assignment that it made, in each process where it made one."""
    gaps: Gaps
    lost: int | None
    """Inputs without an output, or counted too low; None where the outputs do not tell."""
    doubled: int | None


@dataclass(frozen=True)
class TrialResult:
    """Of one cell."""

    cell: Cell
    verdict: Verdict
    runtime: RuntimeInfo | None = None
    drain: Drain | None = None
    note: str = ""
    """Why it failed, or what else a reader should know."""

    def to_json(self) -> dict[str, Any]:
        """Give everything as `json.dump` takes it."""
        return {
            "launcher": self.cell.launcher.value,
            "release": self.cell.release,
            "streams": self.cell.streams,
            "injected_by": self.cell.variable,
            "settings": dict(self.cell.settings),
            "expected": "drained" if self.cell.aside is None else f"aside: {self.cell.aside.value}",
            "verdict": self.verdict.value,
            "found": None if self.runtime is None else dict(vars(self.runtime)),
            "drain": None if self.drain is None else {**vars(self.drain), "gaps": dict(vars(self.drain.gaps))},
            "note": self.note,
        }
