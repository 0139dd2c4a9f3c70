"""The names of things: tasks, processes, ordinals and partitions.

Everything else in the core speaks in these; this module imports nothing of ours.
"""

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import NamedTuple, NewType
from uuid import UUID

Ordinal = NewType("Ordinal", int)
"""The index of a pod in its StatefulSet, from 0."""

_TASK = re.compile(r"([0-9]+)_([0-9]+)", re.ASCII)


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int


class TaskId(NamedTuple):
    """A sub-topology and a partition; ordered and printed as Kafka Streams does, `0_3`.

    A tuple, since it is the key of most mappings and is hashed half a million times in the decision about a large
    application.
    """

    subtopology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"

    @classmethod
    def parse(cls, text: str) -> "TaskId":
        """Read `0_3`; ValueError for anything else, names of named topologies included."""
        match = _TASK.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is no task id of the form 0_3")
        return cls(int(match[1]), int(match[2]))


@total_ordering
@dataclass(frozen=True, slots=True)
class ProcessId:
    """The identity of one Kafka Streams process, kept in its state directory.

    Ordered as Java's `UUID.compareTo` orders, by two signed halves (`8…` before `1…`), since the stock assignor deals
    tasks in that order.
    """

    value: UUID

    def __str__(self) -> str:
        return str(self.value)

    def __hash__(self) -> int:
        """Hash the number: process IDs are keys of many mappings, and a UUID hashes it by another call."""
        return hash(self.value.int)

    def __lt__(self, other: "ProcessId") -> bool:
        return self._signed_halves() < other._signed_halves()

    def _signed_halves(self) -> tuple[int, int]:
        halves = self.value.bytes[:8], self.value.bytes[8:]
        return int.from_bytes(halves[0], signed=True), int.from_bytes(halves[1], signed=True)

    @classmethod
    def parse(cls, text: str) -> "ProcessId":
        """Read the usual text form of a UUID; ValueError for anything else."""
        return cls(UUID(text))
