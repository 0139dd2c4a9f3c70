"""Brokers that die, stay away and come back while pods are held, on three brokers with a copy of everything on each.

One application for all tests but the first, exactly-once, in file order; each begins with three pods. Nothing may be
removed while the group is not shown as it is, and each hold ends by itself.
"""

import time
from collections.abc import Callable, Iterator

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios.observed_app import ObservedApp, wait_for_outputs
from tests.lab import three_brokers
from tests.lab.failovers import (
    Watches,
    begin_hold,
    deployed,
    fresh,
    let_go,
    now_of,
    trigger_one_rebalance,
    watched,
    worst_gap,
)
from tests.lab.promises import SESSION_TIMEOUT_SECONDS, require_no_record_lost
from tests.lab.three_brokers import BOOTSTRAP, ThreeBrokers

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(600)]
EXACTLY_ONCE = {"EXACTLY_ONCE": "true", "STREAMS_PRODUCER_TRANSACTION_TIMEOUT_MS": "60000"}
"""With ten seconds, the default, a transaction is aborted while its broker is away, and Kafka Streams 4.2 stops."""
QUIET_SECONDS = 65.0
"""Positions of an older join count no more: the step rests on the next one."""
MIDDLE_SECONDS = 4.0
"""The operator has looked at the group twice since the hold began."""
READ_SECONDS = 2.5
"""In a hold the operator looks at the group every two seconds."""
OLDER_SECONDS = 6.0
WINDOW_SECONDS = 15
"""Of stabilization: no pod can go before the next coordinator answers."""


@pytest.fixture(scope="module")
def three(kubectl: Kubectl) -> Iterator[ThreeBrokers]:
    """Run the brokers."""
    with three_brokers.running(kubectl) as brokers:
        yield brokers


@pytest.fixture(scope="module")
def exactly_once(kubectl: Kubectl, three: ThreeBrokers, operator: None) -> Iterator[ObservedApp]:  # noqa: ARG001 (they must run)
    """Deploy the application with three pods under load, exactly-once."""
    with deployed(kubectl, "failovers", EXACTLY_ONCE) as observed:
        yield observed


@pytest.fixture
def one(exactly_once: ObservedApp, three: ThreeBrokers) -> ObservedApp:
    """Give it with three pods, while all brokers have all copies."""
    three.wait_until_in_sync()
    exactly_once.app.scale(3)
    exactly_once.app.wait_until_converged(3)
    return exactly_once


def report(what: str, one: ObservedApp, three: ThreeBrokers, began: int) -> None:
    """Print what was seen; the worst gap must be shorter than a session timeout."""
    three.wait_until_in_sync()
    gap = worst_gap(one, began)
    print(f"{what}; worst gap {gap:.1f} s")  # noqa: T201 (the figures)
    assert gap < SESSION_TIMEOUT_SECONDS


@pytest.mark.guarantee(2)
def test_a_hold_ends_by_itself_after_its_coordinator_was_killed_in_the_middle(
    kubectl: Kubectl,
    three: ThreeBrokers,
    session: Session,
    operator: None,  # noqa: ARG001 (it must run)
) -> None:
    with deployed(kubectl, "killed", {}) as one:
        began = now_of(one)
        with watched(session, three, one) as seen:
            hold = begin_hold(one, 2)
            time.sleep(MIDDLE_SECONDS)
            failover = seen.aim()()
            # Until its next look the operator can act on the one before the coordinator's end.
            one.wait_until_held("BrokersUnreachable")
            let_go(one)
            failover.known_again()
            assert one.record()["hold"]["id"] == hold
            one.app.wait_until_converged(2)
        failover.require_hold()
        failover.require_removal_after()
        assert one.steps() == [(3, 2)]
        assert three.coordinator(one.app.application.application_id) != failover.former
        report(f"killed in the middle, at-least-once: {failover.figures()}", one, three, began)
        require_no_record_lost(one)


def as_its_rebalance_begins(seen: Watches) -> None:
    """The step will rest on this rebalance."""
    seen.group.wait_until_quiet(QUIET_SECONDS)
    seen.one.app.scale(2)
    seen.group.wait_for_rebalance()


def as_the_pod_goes(seen: Watches) -> None:
    """The StatefulSet was written; its member must be evicted when the container has ended."""
    seen.one.app.scale(2)
    wait_until("a pod is removed", lambda: bool(seen.removals()), 90, 0.02)


@pytest.mark.parametrize("moment", [as_its_rebalance_begins, as_the_pod_goes])
def test_the_coordinator_is_killed_as_the_step_is_taken(
    one: ObservedApp, three: ThreeBrokers, session: Session, moment: Callable[[Watches], None]
) -> None:
    began = now_of(one)
    with watched(session, three, one) as seen:
        kill = seen.aim()
        moment(seen)
        failover = kill()
        one.app.wait_until_converged(2)
    failover.require_hold()
    if moment is as_its_rebalance_begins:
        failover.require_removal_after()
    assert len(seen.removals()) == 1
    assert one.steps()[0] == (3, 2)
    report(f"killed {moment.__name__}: {failover.figures()}", one, three, began)


def test_a_raise_is_granted_at_once_while_the_coordinator_is_away(
    one: ObservedApp, three: ThreeBrokers, session: Session
) -> None:
    began = now_of(one)
    with watched(session, three, one) as seen:
        begin_hold(one, 2)
        failover = seen.aim()()
        raised = one.raise_to(4)
        let_go(one)
        one.app.wait_until_converged(4)
    assert seen.removals() == []
    report(f"raised {raised:.2f} s after the wish: {failover.figures()}", one, three, began)


def test_a_broker_that_comes_back_and_coordinates_again_ends_no_hold_early(
    one: ObservedApp, three: ThreeBrokers, session: Session
) -> None:
    group = one.app.application.application_id
    three.elect_preferred(group)
    preferred = three.coordinator(group)
    three.kill(preferred)
    wait_until("another coordinator", lambda: three.coordinator(group) != preferred, 60)
    three.wait_until_in_sync()
    one.app.wait_until_converged(3)
    began = now_of(one)
    with watched(session, three, one) as seen:
        hold = begin_hold(one, 2)
        failover = seen.give_back()
        assert (failover.former != preferred, three.coordinator(group)) == (True, preferred)
        failover.known_again()
        assert one.record()["hold"]["id"] == hold
        let_go(one)
        one.app.wait_until_converged(2)
    failover.require_removal_after()
    assert one.steps()[0] == (3, 2)
    report(f"given back: {failover.figures()}", one, three, began)


def test_a_group_that_is_shown_as_it_was_earlier_holds(one: ObservedApp, three: ThreeBrokers, session: Session) -> None:
    """Without traffic the other brokers do not know yet that the last rebalance is committed.

    The next coordinator cannot learn it either, as long as no other broker copies from it.
    """
    one.app.stop_load()
    wait_for_outputs(BOOTSTRAP, one.app.application, 60)
    one.patch({"scaleDown": {"stabilizationWindow": f"{WINDOW_SECONDS}s"}})
    with watched(session, three, one) as seen:
        kill = seen.aim()
        one.app.scale(2)
        one.wait_until_held("Stabilizing")
        trigger_one_rebalance(one)
        seen.group.wait_until_stable()
        time.sleep(READ_SECONDS)
        with three.no_copying_without(three.coordinator(one.app.application.application_id)):
            failover = kill()
            wait_until("an older state is shown", lambda: bool(failover.older_states()), 30, 0.1)
            one.wait_until_held("GroupOutdated", 30)
            time.sleep(OLDER_SECONDS)
            assert seen.removals() == []
        one.app.wait_until_converged(2)
    failover.require_hold()
    failover.require_removal_after()
    assert one.steps()[0] == (3, 2)
    print(f"shown as it was earlier: {failover.figures()}")  # noqa: T201 (the figures)
    fresh(one).start_load()


def test_with_one_broker_away_a_hold_ends_and_a_raise_is_granted_at_once(
    one: ObservedApp, three: ThreeBrokers, session: Session
) -> None:
    coordinator = three.coordinator(one.app.application.application_id)
    with three.without(min(three_brokers.ALL - {coordinator})):
        began, asked = now_of(one), time.monotonic()
        with watched(session, three, one) as seen:
            one.app.scale(2)
            one.app.wait_until_converged(2)
            (removal,) = seen.removals()
        raised = one.raise_to(3)
        gap = worst_gap(one, began)
    figures = f"held {removal - asked:.1f} s, worst gap {gap:.1f} s, raised after {raised:.2f} s"
    print(f"one broker away: {figures}")  # noqa: T201 (the figures)
    assert one.steps()[0] == (3, 2)


def test_through_all_of_this_nothing_was_lost_or_doubled(one: ObservedApp) -> None:
    counts = one.counts()
    assert counts.exactly_once
    print(f"{counts.inputs} inputs, {counts.lost} lost, {counts.doubled} doubled")  # noqa: T201 (the figures)
    assert (counts.nothing_lost, counts.nothing_doubled) == (True, True)
