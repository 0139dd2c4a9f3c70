"""What may happen while tasks learn elsewhere: wishes that change, leaders, brokers, JVMs and operators that die.

One application for all tests, in file order, with a state so large that learning takes seconds; each test begins where
the one before ended.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterator

import pytest

from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios import operator_deployment
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.faults import kill_container
from lab.scenarios.layouts.task_layouts import TaskLayout, TaskLayouts, layouts
from lab.scenarios.observed_app import PARTITIONS, ObservedApp, remove_all, start_all, unique_name
from lab.scenarios.predictions import changelog_ends
from lab.scenarios.stream_app import ON_DEMAND
from streamapp.controller.apps.apps import ClusterAccess
from streamapp.controller.apps.kafka_group import connect
from streamapp.core.facts.group import GroupDescription
from tests.lab.agents_door import LEAVING, address, ask, bearer, report
from tests.lab.leading import SAYS_WHO_LEADS, leader
from tests.lab.promises import SESSION_TIMEOUT_SECONDS, require_no_record_lost

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(420)]

ACCEPTABLE_LAG = 1000
SETTINGS = {
    "STREAMS_NUM_STANDBY_REPLICAS": "0",
    # What lies on a volume since some seconds is too old to take over from: every move needs a learner.
    "STREAMS_ACCEPTABLE_RECOVERY_LAG": str(ACCEPTABLE_LAG),
    "JDK_JAVA_OPTIONS": f"-Xmx192m -XX:+UseSerialGC {SAYS_WHO_LEADS}",
}


@pytest.fixture(scope="module")
def one(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[ObservedApp]:  # noqa: ARG001 (it must run)
    """Deploy the application with three pods under load."""
    application = DemoApplication(unique_name("disturbed"), SETTINGS, 1_500_000, 600, "t-disturbed", cpu_request="20m")
    remove_all(kubectl, bootstrap, [application])
    observed = ObservedApp.of(kubectl, bootstrap, application)
    start_all({observed: 3}, lambda _: ON_DEMAND)
    yield observed
    remove_all(kubectl, bootstrap, [application])


@pytest.fixture
def seen(one: ObservedApp) -> Iterator[TaskLayouts]:
    """Record the layouts of one test."""
    with layouts(one.bootstrap, one.app.application.application_id) as found:
        wait_until("a first layout", lambda: bool(found.layouts), 30)
        yield found


def test_a_wish_taken_back_half_way_moves_nothing(one: ObservedApp, seen: TaskLayouts) -> None:
    scale_to_two(one)
    wait_for(seen, "copies on pods that stay", lambda now: any(now.copies.values()))
    one.raise_to(3)
    wait_until("the record is gone", lambda: one.record() == {}, 30)
    one.app.wait_until_converged(3)
    wait_for(seen, "the copies are given up", lambda now: not any(now.copies.values()))
    assert (seen.moves(), one.app.granted()) == ([], 3)


def test_a_second_pod_before_the_first_has_learned_takes_nothing_away_early(
    one: ObservedApp, seen: TaskLayouts
) -> None:
    began = one.clock()
    one.app.scale(4)
    wait_for(seen, "the fourth pod learns", lambda now: bool(now.copies.get(3)))
    one.app.scale(5)
    one.app.wait_until_converged(5)
    wait_for(seen, "five pods share", lambda now: sorted(map(len, now.active.values())) == [1, 1, 1, 1, 2])
    one.app.wait_until_converged(5)
    assert [move for move in seen.moves() if not move.had_copy] == []
    assert one.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS
    one.app.scale(3)
    one.app.wait_until_converged(3)


def test_the_leader_of_the_group_leaves(one: ObservedApp, seen: TaskLayouts) -> None:
    while leader(one) != 2:
        ordinal = leader(one)
        one.delete_pod(ordinal)
        one.app.wait_until_converged(3)
        wait_until("another leader", lambda former=ordinal: leader(one) != former, 60)  # type: ignore[misc]
    wait_for(seen, "two tasks each", shared(3))
    one.app.wait_until_converged(3)
    began, earlier = one.clock(), len(seen.layouts)
    scale_to_two(one)
    one.app.wait_until_converged(2)
    later = TaskLayouts(seen.layouts[earlier - 1 :])
    assert [move for move in later.moves() if not move.had_copy] == []
    assert one.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS
    back_to_three(one, seen)


def test_the_leader_dies_while_tasks_learn(one: ObservedApp, seen: TaskLayouts) -> None:
    began = one.clock()
    scale_to_two(one)
    wait_for(seen, "copies on pods that stay", lambda now: any(now.copies.values()))
    kill_container(one.pod(leader(one)))
    one.app.wait_until_converged(2)
    assert one.steps()[0] == (3, 2)
    assert one.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS
    back_to_three(one, seen)


def test_a_learner_dies_while_it_learns(one: ObservedApp, seen: TaskLayouts) -> None:
    """Started again, it may lead before it has heard who leaves: then nothing moves until it has."""
    scale_to_two(one)
    wait_for(seen, "copies on pods that stay", lambda now: bool(now.copies.get(0)))
    kill_container(one.pod(0))
    time.sleep(1)
    one.app.wait_until_converged(2)
    assert one.steps()[0] == (3, 2)
    back_to_three(one, seen)


def test_the_operator_dies_while_tasks_learn(one: ObservedApp, seen: TaskLayouts) -> None:
    began = one.clock()
    scale_to_two(one)
    wait_for(seen, "copies on pods that stay", lambda now: any(now.copies.values()))
    operator_deployment.kill(one.app.kubectl)
    one.app.wait_until_converged(2)
    assert [move for move in seen.moves() if not move.had_copy] == []
    assert (one.steps()[0], one.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS) == ((3, 2), True)
    back_to_three(one, seen)


def test_without_an_operator_announcements_expire_and_the_pods_work_again(one: ObservedApp, seen: TaskLayouts) -> None:
    """The operator's last word is spoken here in its place: it would have taken the pod before it could be removed."""
    with operator_deployment.absent(one.app.kubectl):
        announce(one, leaving=2, ttl_seconds=60)
        asyncio.run(trigger_rebalance(one))
        wait_for(seen, "what was announced happens", lambda now: now.holds_nothing(2))
        wait_for(seen, "it is forgotten, and every pod works", shared(3))
        assert one.app.granted() == 3
        assert [move for move in seen.moves() if not move.had_state] == []
    one.app.wait_until_converged(3)


def test_eager_takes_over_one_by_one_and_conservative_all_at_once(one: ObservedApp, seen: TaskLayouts) -> None:
    scale_to_two(one)
    one.app.wait_until_converged(2)
    assert sizes_of(seen) == [2]
    back_to_three(one, seen)
    one.patch({"learners": {"rebalance": "Eager"}})
    earlier = len(seen.layouts)
    scale_to_two(one)
    one.app.wait_until_converged(2)
    # Both may be ready at once: eager does not have to take two rebalances, but it never waits.
    assert sum(sizes_of(TaskLayouts(seen.layouts[earlier - 1 :]))) == 2
    one.patch({"learners": {"rebalance": "Conservative"}})
    back_to_three(one, seen)


def test_the_broker_dies_while_tasks_learn(one: ObservedApp, seen: TaskLayouts) -> None:
    scale_to_two(one)
    wait_for(seen, "copies on pods that stay", lambda now: any(now.copies.values()))
    kill_container(one.app.kubectl.json("get", "--namespace", "kafka", "pod/kafka-0"))
    one.app.wait_until_converged(2)
    assert one.steps()[0] == (3, 2)
    back_to_three(one, seen)


def test_through_all_of_this_nothing_was_lost_or_counted_too_low(one: ObservedApp) -> None:
    require_no_record_lost(one)


def wait_for(seen: TaskLayouts, what: str, holds: Callable[[TaskLayout], bool], timeout_seconds: float = 120) -> None:
    """Wait for a layout."""

    def look() -> bool:
        assert seen.failure is None, seen.failure
        return holds(seen.layouts[-1])

    wait_until(what, look, timeout_seconds, interval_seconds=0.05)


def shared(pods: int) -> Callable[[TaskLayout], bool]:
    """Whether all pods have the same number of tasks."""
    return lambda now: sorted(map(len, now.active.values())) == [6 // pods] * pods


def scale_to_two(one: ObservedApp) -> None:
    """Let the third pod leave when what former owners of its tasks have on their volumes is too old to count."""
    topic = one.app.application.changelog_topic
    former = changelog_ends(one.bootstrap, topic, PARTITIONS)

    def is_too_old() -> bool:
        ends = changelog_ends(one.bootstrap, topic, PARTITIONS)
        return all(end - former[task] > ACCEPTABLE_LAG for task, end in ends.items())

    wait_until("what lies on volumes is too old", is_too_old, 180, interval_seconds=1)
    one.app.scale(2)


def back_to_three(one: ObservedApp, seen: TaskLayouts) -> None:
    """Let the third pod come back and get its share."""
    one.app.scale(3)
    one.app.wait_until_converged(3)
    wait_for(seen, "three pods share", shared(3))
    one.app.wait_until_converged(3)


def sizes_of(seen: TaskLayouts) -> list[int]:
    """How many tasks found their new owner in each layout that had such."""
    found = []
    for number in range(1, len(seen.layouts)):
        until, before = TaskLayouts(seen.layouts[: number + 1]), TaskLayouts(seen.layouts[:number])
        if len(until.moves()) > len(before.moves()):
            found.append(len(until.moves()) - len(before.moves()))
    return found


def announce(one: ObservedApp, *, leaving: int, ttl_seconds: int) -> None:
    """Tell all agents that a pod leaves, as the operator does."""
    word = {
        # A later word of the leader that was there; the next one has a higher term.
        "epoch": {
            "lease": operator_deployment.lease(one.app.kubectl)["leaseTransitions"],
            "counter": int(time.time()) + 60,
        },
        "ttlSeconds": ttl_seconds,
        "rebalance": "Conservative",
        "processIds": [report(one, leaving)["instances"][0]["processId"]],
    }
    for pod in one.app.pods():
        ordinal = int(pod["metadata"]["name"].rsplit("-", 1)[1])
        assert ask(address(one, ordinal), "PUT", LEAVING, bearer(one), json.dumps(word).encode())[0] == 200


async def trigger_rebalance(one: ObservedApp) -> None:
    """Let the group rebalance, as the operator does."""
    group = connect(
        ClusterAccess(
            bootstrap=one.bootstrap,
            properties=(),
            application_id=one.app.application.application_id,
            topology="",
            fault=None,
        ),
        5.0,
    )
    try:
        found = (await group.describe()).group
        assert isinstance(found, GroupDescription)
        await group.trigger_rebalance(found.members[0].id)
    finally:
        group.close()
