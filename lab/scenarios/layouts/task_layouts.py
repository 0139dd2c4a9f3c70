"""Every layout that a group went through: which pod had which task, active or as a copy, recorded while tests act.

Read several times a second by the product's own reader, in a thread of its own. A layout is what the group's leader
assigned; between the two rebalances of a move nobody has the task.
"""

import asyncio
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from lab.errors import LabError
from streamapp.core.facts.group import GroupDescription, GroupState
from streamapp.core.facts.ids import ProcessId, TaskId
from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.errors import KafkaAccessError, StreamsProtocolError
from streamapp.kafka.connection.settings import read_settings
from streamapp.kafka.group.groups import ClassicGroupState, DecodedGroup, read_group
from streamapp.kafka.group.streams_groups import read_streams_group
from streamapp.wire.errors import UndecodableError
from streamapp.wire.members import DecodedMember

PAUSE_SECONDS = 0.1
_DEADLINE_SECONDS = 5.0
_STABLE_SECONDS = 120.0


@dataclass(frozen=True)
class TaskLayout:
    """One stable layout. Pods are told apart by the ordinal in their seeded process ID."""

    at: datetime
    """When it was seen first, by this machine's clock."""
    active: Mapping[int, frozenset[str]]
    copies: Mapping[int, frozenset[str]]
    """Standbys, warm-ups and learners: the bytes do not tell them apart."""

    def owner(self, task: str) -> int | None:
        """The ordinal that has a task active."""
        return next((ordinal for ordinal, tasks in self.active.items() if task in tasks), None)

    def holds_nothing(self, ordinal: int) -> bool:
        """Whether an ordinal has neither an active nor a copy."""
        return not (self.active.get(ordinal) or self.copies.get(ordinal))

    def same_as(self, other: "TaskLayout") -> bool:
        """Whether nothing but the time differs."""
        return (self.active, self.copies) == (other.active, other.copies)


@dataclass(frozen=True)
class Move:
    """An active that changed its owner."""

    task: str
    before: int
    after: int
    """Ordinals."""
    had_copy: bool
    """The new owner was seen with a copy, in the last layout of the former owner or between the two."""
    had_state: bool = True
    """The new owner was seen with the task, active or as a copy, at any time before: what lies on its volume since then
    counts as a copy for Kafka Streams while it is near enough."""


@dataclass
class TaskLayouts:
    """What was seen so far, oldest first; two neighbours always differ."""

    layouts: list[TaskLayout] = field(default_factory=list)
    failure: BaseException | None = None
    """What ended the recording before its time: nothing that is seen here is the latest then."""

    def note(self, layout: TaskLayout) -> None:
        """Add one, if it is another."""
        if not self.layouts or not self.layouts[-1].same_as(layout):
            self.layouts.append(layout)

    def moves(self) -> list["Move"]:
        """Every move of an active, in order."""
        moves: list[Move] = []
        owners: dict[str, int] = {}
        since: dict[str, int] = {}
        for number, layout in enumerate(self.layouts):
            for ordinal, tasks in layout.active.items():
                for task in tasks:
                    if owners.get(task, ordinal) != ordinal:
                        between = self.layouts[since[task] : number]
                        had_copy = any(task in one.copies.get(ordinal, ()) for one in between)
                        had_state = any(
                            task in one.copies.get(ordinal, ()) or task in one.active.get(ordinal, ())
                            for one in self.layouts[:number]
                        )
                        moves.append(Move(task, owners[task], ordinal, had_copy, had_state))
                    owners[task], since[task] = ordinal, number
        return moves

    def at(self, moment: datetime) -> TaskLayout:
        """The last layout that was seen by then."""
        return [one for one in self.layouts if one.at <= moment][-1]

    def shares(self) -> list[int]:
        """How many tasks each pod has active in the newest layout, fewest first."""
        return sorted(map(len, self.layouts[-1].active.values()))


@contextmanager
def layouts(bootstrap: str, application_id: str) -> Iterator[TaskLayouts]:
    """Record the group's layouts until the block is left."""
    found, ends = TaskLayouts(), threading.Event()

    def record() -> None:
        try:
            asyncio.run(_record(bootstrap, application_id, found, ends))
        except BaseException as error:
            found.failure = error
            raise

    thread = threading.Thread(target=record, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        ends.set()
        thread.join(_DEADLINE_SECONDS * 2)


def generation(bootstrap: str, application_id: str) -> int:
    """The newest generation that a member of the stable group was in when it joined last; 0 before the first.

    Each rebalance is one more: the difference of two readings counts them.
    """

    async def read() -> int:
        cluster = KafkaCluster(read_settings(bootstrap, {}), application_id)
        try:
            reading = await read_group(cluster.group, _DEADLINE_SECONDS)
        finally:
            cluster.close()
        generations = [member.subscription.generation for member in reading.members if member.subscription is not None]
        return max((number for number in generations if number is not None), default=0)

    return asyncio.run(read())


def read_stable(bootstrap: str, application_id: str) -> DecodedGroup:
    """The group at the next moment at which it is stable; LabError if none comes."""

    async def read() -> DecodedGroup:
        cluster = KafkaCluster(read_settings(bootstrap, {}), application_id)
        try:
            async with asyncio.timeout(_STABLE_SECONDS):
                while True:
                    with suppress(KafkaAccessError, UndecodableError):
                        reading = await read_group(cluster.group, _DEADLINE_SECONDS)
                        if reading.state is ClassicGroupState.STABLE:
                            return reading
                    await asyncio.sleep(PAUSE_SECONDS / 2)
        finally:
            cluster.close()

    try:
        return asyncio.run(read())
    except TimeoutError as error:
        why = f"it was not stable within {_STABLE_SECONDS:.0f} s"
        raise LabError(f"group {application_id}: cannot be read", why, "look at its members' logs") from error


async def _record(bootstrap: str, application_id: str, layouts_of_group: TaskLayouts, ends: threading.Event) -> None:
    cluster = KafkaCluster(read_settings(bootstrap, {}), application_id)
    try:
        while not ends.is_set():
            with suppress(KafkaAccessError, UndecodableError):
                seen = await _seen(cluster)
                if seen is not None:
                    layouts_of_group.note(seen)
            await asyncio.sleep(PAUSE_SECONDS)
    finally:
        cluster.close()


async def _seen(cluster: KafkaCluster) -> TaskLayout | None:
    """The layout of a stable group of either protocol."""
    try:
        reading = await read_group(cluster.group, _DEADLINE_SECONDS)
    except StreamsProtocolError:
        streams = await read_streams_group(cluster.group, _DEADLINE_SECONDS)
        return None if streams is None else layout_of_streams_group(streams.group)
    if reading.state is not ClassicGroupState.STABLE:
        return None
    return layout_of_classic_group(reading.members, datetime.now(UTC))


def layout_of_classic_group(members: Iterable[DecodedMember], at: datetime) -> TaskLayout:
    """What the members of a classic group were assigned; those without an assignment are left out."""
    return _layout(
        (
            (member.subscription.info.process_id, member.assignment.active, member.assignment.standby)
            for member in members
            if member.subscription is not None and member.assignment is not None
        ),
        at,
    )


def layout_of_streams_group(group: GroupDescription) -> TaskLayout | None:
    """What the members of a group of the streams protocol have, once each has what the broker wants it to have."""
    if group.state is not GroupState.STABLE:
        return None
    return _layout(
        (
            (member.process_id, member.assignment.active, member.assignment.standby)
            for member in group.members
            if member.process_id is not None and member.assignment is not None
        ),
        datetime.now(UTC),
    )


def _layout(members: Iterable[tuple[ProcessId, Iterable[TaskId], Iterable[TaskId]]], at: datetime) -> TaskLayout:
    """Join the actives and the copies of the members of each process."""
    active: dict[int, frozenset[str]] = {}
    copies: dict[int, frozenset[str]] = {}
    for process, actives, standbys in members:
        ordinal = ordinal_of(process)
        active[ordinal] = active.get(ordinal, frozenset()) | frozenset(map(str, actives))
        copies[ordinal] = copies.get(ordinal, frozenset()) | frozenset(map(str, standbys))
    return TaskLayout(at, active, copies)


def ordinal_of(process_id: ProcessId) -> int:
    """The ordinal that a seeded process ID begins with."""
    return int(str(process_id)[:8], 16)
