"""Plays of random groups end, and no task is ever active twice."""

from random import Random

import pytest

from streamapp.core.facts.ids import TaskId
from streamapp.simulator.learner.draft import Announcement, LearnerSettings
from streamapp.simulator.rounds import Assignor, Pace, learner_assignor, play, stock_assignor
from streamapp.simulator.stock import StockSettings
from streamapp.simulator.world import Instance, Rates, World
from tests.model import cases

PACE = Pace(rates=Rates(restore=float(cases.END)), is_triggered=True, most_rounds=200)
STANDBYS = (0, 1, 2)
GROUPS = 40


def world(case: cases.Case) -> World:
    """The group of a case; a task that two processes claim belongs to the first."""
    tasks = tuple(cases.tasks_of(case))
    ends = {task.id: float(cases.END) for task in tasks if task.is_stateful}
    instances, taken = [], set[TaskId]()
    for client in cases.clients_of(case):
        actives = client.actives - taken
        taken |= actives
        positions = {task: ends[task] for task in actives if task in ends}
        positions |= {task: ends[task] - min(max(0, client.lags[task]), cases.END) for task in client.copies}
        instances.append(
            Instance(
                process=client.process,
                threads=client.threads,
                actives=actives,
                standbys=client.copies - actives,
                positions=positions,
            )
        )
    return World(tasks=tasks, ends=ends, instances={one.process: one for one in instances})


ASSIGNORS = [
    *(stock_assignor(StockSettings(num_standby_replicas=standbys)) for standbys in STANDBYS),
    *(learner_assignor(LearnerSettings(standbys=standbys), Announcement()) for standbys in STANDBYS),
]


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_every_play_ends_with_each_task_active_once(assignor: Assignor) -> None:
    random = Random(7)  # noqa: S311 - the same groups in every run
    for _ in range(GROUPS):
        group = world(cases.stock_case(random))
        played = play(group, assignor, PACE)
        assert played.is_over
        for one in played.rounds:
            assert len(one.owners()) == sum(len(placed.actives) for placed in one.given.values())
        assert played.world.owners().keys() == {task.id for task in group.tasks}
