"""The model beside a group that runs: the group as the model's values, and what the model answers to its members.

Nothing may write while processes change, so that every lag is exact.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from lab.errors import LabError
from streamapp.core.assignors.group import RUNNING, ClientState, Placement, Task
from streamapp.core.facts.ids import ProcessId, TaskId
from streamapp.kafka.group.groups import DecodedGroup
from streamapp.simulator.rounds import Assignor, Play, moved
from streamapp.simulator.world import Instance, World
from streamapp.wire.assignment import DecodedAssignment
from streamapp.wire.subscription import DecodedSubscription, PositionSum

_TIMEOUT_SECONDS = 20
Layout = Mapping[ProcessId, Placement]


@dataclass(frozen=True)
class ModelledGroup:
    """One application whose only sub-topology has a store."""

    assignor: Assignor
    ends: Mapping[TaskId, float]
    """The ends of the tasks' changelogs."""

    def world(self, reading: DecodedGroup) -> World:
        """The group in the values of the model; every member must have joined with running tasks."""
        instances: dict[ProcessId, Instance] = {}
        for subscription, assignment in _joined(reading):
            info, actives = subscription.info, frozenset(assignment.active)
            positions = {
                task: float(said.offsets) if isinstance(said, PositionSum) else self.ends[task]
                for task, said in info.positions.items()
            }
            known = instances.get(info.process_id, Instance(process=info.process_id, threads=0))
            instances[info.process_id] = replace(
                known,
                threads=known.threads + 1,
                actives=known.actives | actives,
                standbys=(known.standbys | frozenset(assignment.standby)) - known.actives - actives,
                positions={**positions, **known.positions, **{task: self.ends[task] for task in actives}},
            )
        return World(tasks=tuple(map(Task, sorted(self.ends))), ends=self.ends, instances=instances)

    def answer_to(self, reading: DecodedGroup) -> Layout:
        """What the model answers to the members as they joined, less what another process must give up first."""
        lags: dict[ProcessId, dict[TaskId, int]] = {}
        threads: dict[ProcessId, int] = {}
        before: dict[TaskId, ProcessId] = {}
        held: dict[ProcessId, frozenset[TaskId]] = {}
        for subscription, _ in _joined(reading):
            info = subscription.info
            held[info.process_id] = held.get(info.process_id, frozenset()) | info.positions.keys()
            own = lags.setdefault(info.process_id, {task: round(end) for task, end in self.ends.items()})
            for task, said in info.positions.items():
                own[task] = round(self.ends[task]) - said.offsets if isinstance(said, PositionSum) else RUNNING
            threads[info.process_id] = threads.get(info.process_id, 0) + 1
            before |= {TaskId(0, owned.partition): info.process_id for owned in subscription.owned_partitions}
        owned = {one: frozenset(task for task, owner in before.items() if owner == one) for one in lags}
        clients = [
            ClientState(process=one, threads=threads[one], actives=owned[one], copies=held[one] - owned[one], lags=own)
            for one, own in lags.items()
        ]
        wanted = self.assignor([Task(task) for task in sorted(self.ends)], clients).assignment
        owner = wanted.owners()
        waiting = {task for task, process in before.items() if owner[task] != process}
        return {
            process: Placement(placed.actives - waiting, placed.standbys | (placed.actives & waiting))
            for process, placed in wanted.placements.items()
        }


@dataclass(frozen=True)
class PredictedChange:
    """A change of a group that was predicted before it was made."""

    before: World
    predicted: Play
    seen: Sequence[Layout]
    answers: Sequence[Layout]
    """What the model answers to the members as they joined for each layout that was seen."""

    @property
    def moved(self) -> frozenset[TaskId]:
        """Tasks that ended on another process than before."""
        return moved(self.before.owners(), owners(self.seen[-1]))

    @classmethod
    def of(
        cls, group: ModelledGroup, before: World, predicted: Play, readings: Iterable[DecodedGroup], processes: int
    ) -> "PredictedChange":
        """By the readings in which so many processes are members."""
        own = [one for one in readings if len(layout_of(one)) == processes]
        return cls(before, predicted, [layout_of(one) for one in own], [group.answer_to(one) for one in own])


def _joined(reading: DecodedGroup) -> Iterator[tuple[DecodedSubscription, DecodedAssignment]]:
    """What each member said and was given; LabError for a member that does not show both."""
    for member in reading.members:
        if member.subscription is None or member.assignment is None:
            what = f"group {reading.group_id}: cannot be modelled"
            why = f"member {member.member_id} does not show what it said and was given"
            raise LabError(what, why, "read the group once it is stable")
        yield member.subscription, member.assignment


def changelog_ends(bootstrap: str, topic: str, partitions: int) -> dict[TaskId, float]:
    """The end of each task's changelog."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "ends"})
    try:
        return {
            TaskId(0, number): float(consumer.get_watermark_offsets(TopicPartition(topic, number), _TIMEOUT_SECONDS)[1])
            for number in range(partitions)
        }
    finally:
        consumer.close()


def layout_of(reading: DecodedGroup) -> Layout:
    """What each process has."""
    found: dict[ProcessId, Placement] = {}
    for member in reading.members:
        if member.subscription is None or member.assignment is None:
            continue
        process = member.subscription.info.process_id
        known = found.get(process, Placement())
        found[process] = Placement(
            known.actives | frozenset(member.assignment.active), known.standbys | frozenset(member.assignment.standby)
        )
    return found


def owners(layout: Layout) -> dict[TaskId, ProcessId]:
    """The process of each active task."""
    return {task: process for process, placed in layout.items() for task in placed.actives}


def store(predicted: Play, file: Path) -> None:
    """Write a prediction down before anything of the change can be seen."""
    rounds = [
        {
            str(process): [sorted(map(str, placed.actives)), sorted(map(str, placed.standbys))]
            for process, placed in one.given.items()
        }
        for one in predicted.rounds
    ]
    file.write_text(json.dumps(rounds, indent=1))


def shown(layout: Layout) -> str:
    """A layout as a line: `4b61 0_0 0_2 +0_1`, copies with a plus."""
    parts = []
    for process, placed in sorted(layout.items(), key=lambda item: str(item[0])):
        names = [str(task) for task in sorted(placed.actives)] + [f"+{task}" for task in sorted(placed.standbys)]
        parts.append(" ".join([str(process)[:8], *names]))
    return " | ".join(parts)
