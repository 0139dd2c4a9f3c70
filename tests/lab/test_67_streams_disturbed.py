"""What may happen while the standbys of a streams group are raised, on a real broker: dead operators and other hands.

One application for all tests, in file order, at-least-once; each test begins where the one before ended. Of three pods
one can always go, since with two standbys each of them has every task. Of four, the broker can have a task left that it
would move to the one pod without a copy, and then the hold stays.
"""

from collections.abc import Iterator

import pytest

from lab.clusters.helm import Helm
from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios import operator_deployment
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.faults import kill_container
from lab.scenarios.observed_app import ObservedApp, remove_all, start_all, unique_name
from lab.scenarios.stream_app import ON_DEMAND
from streamapp.core.facts.group import StandbySetting
from tests.lab.promises import SESSION_TIMEOUT_SECONDS, require_no_record_lost
from tests.lab.streams_groups import UNSET, set_standbys, standbys, until_left_as_it_was

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(420)]

KEYS = 240_000
"""Forty thousand a task, so that a copy takes a while."""
ONE, TWO = StandbySetting(1, is_set=True), StandbySetting(2, is_set=True)


@pytest.fixture(scope="module")
def one(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[ObservedApp]:  # noqa: ARG001 (it must run)
    """Deploy it with three pods under load."""
    settings = {"STREAMS_GROUP_PROTOCOL": "streams"}
    made = DemoApplication(unique_name("raised"), settings, KEYS, 200, "t-streams-disturbed", cpu_request="20m")
    remove_all(kubectl, bootstrap, [made])
    observed = ObservedApp.of(kubectl, bootstrap, made)
    start_all({observed: 3}, lambda _: ON_DEMAND)
    yield observed
    remove_all(kubectl, bootstrap, [made])


@pytest.mark.guarantee(2)
def test_an_operator_that_dies_with_the_standbys_raised_has_a_successor_that_puts_them_back(one: ObservedApp) -> None:
    began = one.clock()
    one.app.scale(2)
    wait_until("standbys raised", lambda: standbys(one) == ONE, 90, interval_seconds=0.2)
    operator_deployment.kill(one.app.kubectl)
    one.app.wait_until_converged(2)
    assert one.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS
    until_left_as_it_was(one)


@pytest.mark.guarantee(2)
def test_while_no_operator_runs_they_stay_raised_and_the_next_one_puts_them_back(one: ObservedApp) -> None:
    back_to(one, 3)
    one.app.scale(2)
    wait_until("standbys raised", lambda: standbys(one) == ONE, 90, interval_seconds=0.2)
    with operator_deployment.absent(one.app.kubectl):
        one.app.scale(3)
        assert (standbys(one), one.app.granted() in {2, 3}) == (ONE, True)
    one.app.wait_until_converged(3)
    until_left_as_it_was(one)


@pytest.mark.guarantee(2)
def test_an_uninstall_puts_them_back_and_the_next_operator_goes_on(one: ObservedApp) -> None:
    one.app.scale(2)
    wait_until("standbys raised", lambda: standbys(one) == ONE, 90, interval_seconds=0.2)
    # The namespace stays, and with it the key that the running agents know.
    Helm(one.app.kubectl.session).uninstall(operator_deployment.RELEASE, operator_deployment.NAMESPACE)
    assert (standbys(one), one.app.granted()) == (UNSET, 3)
    operator_deployment.deploy(one.app.kubectl)
    one.app.wait_until_converged(2)
    until_left_as_it_was(one)


@pytest.mark.guarantee(2)
def test_what_another_hand_sets_meanwhile_stays(one: ObservedApp) -> None:
    back_to(one, 3)
    one.app.scale(2)
    wait_until("standbys raised", lambda: standbys(one) == ONE, 90, interval_seconds=0.2)
    set_standbys(one, 2)
    one.app.wait_until_converged(2)
    until_left_as_it_was(one, TWO)
    set_standbys(one, None)


@pytest.mark.guarantee(1)
def test_a_group_with_one_standby_of_its_own_is_left_with_one(one: ObservedApp) -> None:
    """The first may leave a task cold; then a second one is asked for."""
    back_to(one, 3)
    set_standbys(one, 1)
    one.app.wait_until_converged(3)
    began = one.clock()
    one.app.scale(2)
    one.app.wait_until_converged(2)
    assert one.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS
    until_left_as_it_was(one, ONE)
    set_standbys(one, None)


@pytest.mark.guarantee(1)
def test_a_pod_that_is_killed_while_standbys_are_raised_leaves_no_task_uncovered_for_long(one: ObservedApp) -> None:
    back_to(one, 3)
    began = one.clock()
    one.app.scale(2)
    wait_until("standbys raised", lambda: standbys(one) == ONE, 90, interval_seconds=0.2)
    kill_container(one.pod(0))
    one.app.wait_until_converged(2)
    assert one.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS
    until_left_as_it_was(one)


def test_no_record_was_lost(one: ObservedApp) -> None:
    require_no_record_lost(one)


def back_to(one: ObservedApp, pods: int) -> None:
    """Let the pods come back."""
    one.app.scale(pods)
    one.app.wait_until_converged(pods)
    assert standbys(one) == UNSET
