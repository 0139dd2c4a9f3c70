"""An application with `group.protocol=streams` on a real broker: scaled down, killed, and its group left as it was.

The group has no standbys: the operator raises them for the scale-down and puts them back. Nothing in the StreamApp says
which protocol the application uses.
"""

import asyncio
import time
from collections.abc import Iterator

import pytest

from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.faults import kill_container, restarts
from lab.scenarios.observed_app import ObservedApp, remove_all, start_all, unique_name
from lab.scenarios.stream_app import ON_DEMAND
from streamapp.controller.apps.kafka_group import KafkaGroup
from streamapp.core.facts.group import GroupDescription, StandbySetting, StandbySettingUnread
from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.settings import read_settings

pytestmark = [pytest.mark.lab, pytest.mark.timeout(420)]

KEYS = 120_000
"""Twenty thousand a task: more than the 10,000 records that a copy may lag."""
SECONDS_AND_NOT_THE_SESSION_TIMEOUT = 15.0
UNSET = StandbySetting(0, is_set=False)


@pytest.fixture(scope="module")
def one(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[ObservedApp]:  # noqa: ARG001 (it must run)
    """Deploy it with three pods under load."""
    settings = {"STREAMS_GROUP_PROTOCOL": "streams", "EXACTLY_ONCE": "true"}
    made = DemoApplication(unique_name("streams"), settings, KEYS, 100, "t-streams-protocol", cpu_request="20m")
    remove_all(kubectl, bootstrap, [made])
    observed = ObservedApp.of(kubectl, bootstrap, made)
    start_all({observed: 3}, lambda _: ON_DEMAND)
    yield observed
    remove_all(kubectl, bootstrap, [made])


def described(one: ObservedApp) -> GroupDescription:
    """Read the group as the operator does."""

    async def read() -> GroupDescription:
        name = one.app.application.application_id
        group = KafkaGroup(KafkaCluster(read_settings(one.bootstrap, {}), name), name, "", deadline_seconds=10)
        try:
            found = (await group.describe()).group
        finally:
            group.close()
        assert isinstance(found, GroupDescription), found
        return found

    return asyncio.run(read())


def standbys(one: ObservedApp) -> StandbySetting | StandbySettingUnread:
    group = described(one)
    assert group.streams is not None
    return group.streams.standbys


def worst_gap(one: ObservedApp, began: int) -> float:
    """The longest wait of any partition since then, in seconds, which it prints."""
    worst = one.worst_gap_since(began)
    print(f"worst gap {worst:.2f} s")  # noqa: T201 (a figure for the reader)
    return worst


def test_the_operator_sees_tasks_that_run_and_no_copy(one: ObservedApp) -> None:
    group = described(one)
    assert group.streams is not None
    assert (group.streams.broker_release, group.streams.standbys) == ("4.2", UNSET)
    assert [member.assignment.standby for member in group.members if member.assignment] == [frozenset()] * 3
    assert one.app.condition("Converged")["status"] == "True"


@pytest.mark.guarantee(1)
def test_a_pod_goes_behind_standbys_that_were_asked_for_and_the_group_is_left_as_it_was(one: ObservedApp) -> None:
    began = one.clock()
    one.app.scale(2)
    wait_until("standbys asked for", lambda: standbys(one) == StandbySetting(1, is_set=True), 90)
    one.app.wait_until_converged(2)
    assert one.steps()[0] == (3, 2)
    assert worst_gap(one, began) < SECONDS_AND_NOT_THE_SESSION_TIMEOUT
    wait_until("standbys put back", lambda: standbys(one) == UNSET, 60)
    wait_until("nothing on record", lambda: "standbys" not in one.record(), 60)


def test_a_scale_down_that_is_called_off_leaves_the_group_as_it_was(one: ObservedApp) -> None:
    assert one.seconds_until_granted(3) < 3
    one.app.wait_until_converged(3)
    one.app.scale(2)
    wait_until("a raise on record", lambda: "standbys" in one.record(), 90)
    one.app.scale(3)
    wait_until("standbys put back", lambda: standbys(one) == UNSET and "standbys" not in one.record(), 90)
    assert one.app.granted() == 3


def test_tasks_of_a_killed_pod_do_not_wait_for_the_session_timeout(one: ObservedApp) -> None:
    one.app.wait_until_converged(3)
    time.sleep(25)  # its members must have been seen for a while
    began = one.clock()
    killed = one.pod(2)
    kill_container(killed)
    wait_until("restarted", lambda: restarts(one.pod(2)) > restarts(killed), 60)
    one.app.wait_until_converged(3)
    time.sleep(5)
    assert worst_gap(one, began) < 2 * SECONDS_AND_NOT_THE_SESSION_TIMEOUT


def test_no_record_was_lost_or_doubled(one: ObservedApp) -> None:
    counts = one.counts()
    assert (counts.nothing_lost, counts.undercounted) == (True, 0)
    assert (counts.doubled, counts.overcounted) == (0, 0)
