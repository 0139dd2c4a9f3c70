"""The streams protocol on each pair of a broker's and a client's release: read, standbys raised, a dead member evicted.

One pair by default, all of them by `make test PART=versions`.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.matrix.broker import Broker
from lab.settings import Settings
from streamapp.core.facts.group import GroupDescription, StandbySetting, StreamsGroup
from streamapp.core.facts.tasks import TaskSet
from tests.brokers.streams_pair import (
    PROCESSES,
    TASKS,
    Pair,
    actives,
    is_settled,
    members_of,
    running_broker,
    running_clients,
    standbys,
)

pytestmark = [pytest.mark.brokers, pytest.mark.timeout(240)]

_PINNED = Settings.from_environment().versions
BROKERS = os.environ.get("STREAMS_BROKERS", _PINNED.broker).split()
CLIENTS = os.environ.get("STREAMS_CLIENTS", _PINNED.streams).split()
SESSION_SECONDS = 45.0
"""After this time the broker would drop a dead member by itself."""


@pytest.fixture(scope="module", params=BROKERS)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Broker]]:
    """Give a broker of each version in turn."""
    with running_broker(request.param, tmp_path_factory.mktemp("broker")) as one:
        yield request.param, one


def streams_of(group: GroupDescription) -> StreamsGroup:
    assert group.streams is not None
    return group.streams


def raised(pair: Pair) -> float:
    """Have one standby of each task; give the seconds until the members have them."""
    before, _ = pair.looked_until(lambda group: is_settled(group, PROCESSES))
    assert (streams_of(before).standbys, standbys(before)) == (StandbySetting(0, is_set=False), [])
    began = time.monotonic()
    pair.asked(lambda one: one.set_standbys(1))
    after, _ = pair.looked_until(lambda group: is_settled(group, PROCESSES) and standbys(group) == sorted(TASKS))
    assert streams_of(after).standbys == StandbySetting(1, is_set=True)
    assert {one.id: actives(one) for one in after.members} == {one.id: actives(one) for one in before.members}
    return time.monotonic() - began


def evicted(pair: Pair) -> float:
    """Kill a process and evict its member; give the seconds until the other members have every task."""
    prefix = pair.kill()
    dead, _ = pair.looked_until(lambda group: len(group.members) == PROCESSES)
    members = members_of(dead, prefix)
    assert len(members) == 1
    began = time.monotonic()
    pair.asked(lambda one: one.evict(members, "a test"))
    pair.looked_until(lambda group: is_settled(group, PROCESSES - 1))
    return time.monotonic() - began


@pytest.mark.parametrize("client", CLIENTS)
def test_a_group_is_read_has_standbys_raised_and_a_dead_member_evicted(
    broker: tuple[str, Broker], client: str, tmp_path: Path
) -> None:
    version, one = broker
    with running_clients(client, one, tmp_path) as pair:
        group, read_seconds = pair.looked_until(lambda found: is_settled(found, PROCESSES))
        assert streams_of(group).broker_release == version.rpartition(".")[0]
        task_set = pair.asked(lambda one: one.task_set())
        assert isinstance(task_set, TaskSet), task_set
        assert {task.id for task in task_set.tasks if task.stateful} == TASKS
        raised_seconds, evicted_seconds = raised(pair), evicted(pair)
        pair.asked(lambda one: one.set_standbys(None))
        pair.looked_until(lambda found: streams_of(found).standbys == StandbySetting(0, is_set=False))
    assert evicted_seconds < SESSION_SECONDS / 2
    print(f"| {version} | {client} | {read_seconds:.1f} | {raised_seconds:.1f} | {evicted_seconds:.1f} |")  # noqa: T201
