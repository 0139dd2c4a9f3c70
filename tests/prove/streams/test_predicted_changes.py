"""Predictions beside the coordinator of the simulated world, whose ties fall in an order that no prediction knows."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from streamapp.core.facts.ids import Ordinal, ProcessId, TaskId
from streamapp.core.facts.seeding import seeded_process_id
from streamapp.simulator.forecast.outcome import Outcome
from tests.model.forecast.apps import UID
from tests.model.forecast.streams_apps import Layout, a_streams_table, digits, predicted
from tests.prove.group import Member
from tests.prove.streams.broker_assignor import deal_by_broker
from tests.prove.streams.truth import Share

CHANGES = 25
FEWEST_RIGHT = 0.99
"""Of all tasks. Ways are a sample: with many ties one can fall as in none of those that were played."""
TASKS = tuple(TaskId(0, number) for number in range(9))


@dataclass
class Coordinator:
    """The targets of a group, by member; each call is one epoch."""

    order: str
    standbys: int
    members: dict[str, tuple[int, ProcessId]]
    targets: dict[str, Share]

    def deal(self) -> None:
        """Assign anew."""
        known = [a_member(name, process) for name, (_, process) in sorted(self.members.items())]
        before = {name: one for name, one in self.targets.items() if name in self.members}
        self.targets = deal_by_broker(TASKS, known, before, self.standbys, self.order)

    def join(self, pod: int, threads: int) -> None:
        """The threads of a pod join, one after the other."""
        for thread in range(threads):
            name = f"{self.order}-{pod}-{thread}-{len(self.targets)}"
            self.members[name] = (pod, seeded_process_id(UID, Ordinal(pod)))
            self.deal()

    def leave(self, pod: int, chance: random.Random) -> None:
        """They leave, in any order."""
        going = sorted(name for name, (at, _) in self.members.items() if at == pod)
        chance.shuffle(going)
        for name in going:
            del self.members[name]
            self.deal()

    def owners(self) -> dict[TaskId, int]:
        """The pod of each task."""
        return {task: self.members[name][0] for name, one in self.targets.items() for task in one.active}

    def layout(self) -> Layout:
        """As a prediction sees it."""
        found: dict[int, list[tuple[str, str]]] = {}
        for name, (pod, _) in sorted(self.members.items()):
            share = self.targets[name]
            found.setdefault(pod, []).append((digits(share.active), digits(share.standby)))
        return found


def a_member(name: str, process: ProcessId) -> Member:
    return Member(name, None, "10.0.0.1", process, has_assignment=True)


def changes(chance: random.Random) -> Iterator[tuple[Outcome, Mapping[TaskId, int]]]:
    """What was predicted, and where every task ended."""
    for number in range(CHANGES):
        pods, threads, standbys = chance.randint(2, 4), chance.randint(1, 2), chance.randint(0, 1)
        group = Coordinator(f"order {number}", standbys, {}, {})
        for pod in range(pods):
            group.join(pod, threads)
        to = chance.choice([size for size in (pods - 2, pods - 1, pods + 1, pods + 2) if size >= 1])
        found = predicted(a_streams_table(group.layout(), standbys=standbys), to)
        for pod in range(pods, to):
            group.join(pod, threads)
        for pod in reversed(range(to, pods)):
            group.leave(pod, chance)
        yield found, group.owners()


def test_tasks_end_where_they_were_predicted() -> None:
    right = wrong = certain = 0
    for found, owners in changes(random.Random(7)):  # noqa: S311 (draws changes)
        assert found.ways is not None
        for task, pod in owners.items():
            is_right = pod in found.places[task]
            right, wrong = right + is_right, wrong + (not is_right)
            certain += task not in found.ways.uncertain
    assert right / (right + wrong) >= FEWEST_RIGHT, (right, wrong)
    assert certain / (right + wrong) > 0.5
