"""What an assignor keeps from round to round, and what processes do not report one by one, changes no answer."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from streamapp.core.assignors.group import ClientState
from streamapp.simulator.learner.assignment import assign as assign_by_learners
from streamapp.simulator.learner.draft import Announcement, LearnerSettings, Leaving
from streamapp.simulator.stock import Release, StockAssignor, StockSettings, assign
from tests.model import cases

GROUPS = 60


def with_changelogs(clients: Sequence[ClientState]) -> list[ClientState]:
    """The same group, in which a process without state of a task leaves out its lag: the whole changelog."""
    changelogs = dict.fromkeys((task for one in clients for task in one.lags), cases.END)
    return [
        replace(
            one,
            lags={task: lag for task, lag in one.lags.items() if lag != cases.END or task in one.actives | one.copies},
            changelogs=changelogs,
        )
        for one in clients
    ]


@pytest.mark.parametrize("standbys", [0, 1, 2])
def test_a_lag_that_is_left_out_is_the_whole_changelog(standbys: int) -> None:
    random, left_out = Random(3), 0  # noqa: S311 - the same groups in every run
    for _ in range(GROUPS):
        case = cases.stock_case(random)
        limit, release = case["settings"]["acceptableRecoveryLag"], random.choice(list(Release))
        tasks, clients = cases.tasks_of(case), cases.clients_of(case)
        short = with_changelogs(clients)
        left_out += sum(len(one.lags) - len(other.lags) for one, other in zip(clients, short, strict=True))
        stock = StockSettings(release=release, acceptable_recovery_lag=limit, num_standby_replicas=standbys)
        assert assign(tasks, short, stock) == assign(tasks, clients, stock)
        for gone in (0, 1):
            leaving = frozenset(one.process for one in clients[:gone])
            announcement = Announcement(state=Leaving.SET if gone else Leaving.EMPTY, leaving=leaving)
            ours = LearnerSettings(acceptable_lag=limit, standbys=standbys)
            expected = assign_by_learners(tasks, clients, ours, announcement)
            assert assign_by_learners(tasks, short, ours, announcement) == expected
    assert left_out > 10 * GROUPS


@pytest.mark.parametrize("standbys", [0, 1, 2])
def test_what_was_dealt_before_changes_no_later_answer(standbys: int) -> None:
    random = Random(5)  # noqa: S311 - the same groups in every run
    settings = StockSettings(num_standby_replicas=standbys)
    leader = StockAssignor(settings)
    for _ in range(GROUPS):
        case = cases.stock_case(random)
        tasks, clients = cases.tasks_of(case), cases.clients_of(case)
        threaded = [replace(clients[0], threads=clients[0].threads + 1), *clients[1:]]
        empty = [replace(one, lags=dict.fromkeys(one.lags, cases.END)) for one in clients]
        for group in (clients, empty, clients[::-1], threaded, clients[1:] or clients):
            assert leader.assign(tasks, group) == assign(tasks, group, settings)
