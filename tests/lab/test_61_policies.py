"""What users choose about a scale-down, on real parts: a hold that times out, a dry run, zero pods, claims that go.

One application for all tests, in file order; each begins where the one before ended.
"""

import json
import time
from collections.abc import Iterator

import pytest

from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.observed_app import ObservedApp, remove_all, start_all, unique_name
from tests.lab.promises import require_no_record_lost

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(600)]
NEVER_NEAR_ENOUGH = {"acceptableRecoveryLag": 0}
"""Under load no copy is ever that near."""
SOON = {"stabilizationWindow": "2s", "timeout": "1m"}


@pytest.fixture(scope="module")
def one(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[ObservedApp]:  # noqa: ARG001 (it must run)
    """Deploy the application with three pods under load."""
    settings = {"STREAMS_NUM_STANDBY_REPLICAS": "1"}
    application = DemoApplication(unique_name("policies"), settings, 20_000, 200, "t-policies", cpu_request="20m")
    remove_all(kubectl, bootstrap, [application])
    observed = ObservedApp.of(kubectl, bootstrap, application)
    start_all({observed: 3})
    yield observed
    remove_all(kubectl, bootstrap, [application])


def test_a_dry_run_of_a_live_hold_does_nothing_and_says_so(one: ObservedApp) -> None:
    one.app.apply(2, learners=NEVER_NEAR_ENOUGH)
    wait_until("hold on record", lambda: "hold" in one.record(), 60)
    one.app.apply(2, dryRun=True)
    wait_until("it says so", lambda: one.app.condition("Reconciling").get("reason") == "DryRun", 60)
    granted, _ = one.watch_hold(20)
    assert (granted, "hold" in one.record()) == ({3}, True)
    one.app.apply(2)
    wait_until("the step is done", lambda: one.steps() == [(3, 2)], 120)
    one.app.scale(3)
    one.app.wait_until_converged(3)


def test_a_hold_that_times_out_waits_and_is_stalled(one: ObservedApp) -> None:
    one.app.apply(2, learners=NEVER_NEAR_ENOUGH, scaleDown=SOON)
    wait_until("stalled", lambda: one.app.condition("Stalled").get("status") == "True", 150)
    assert one.app.condition("Stalled")["reason"] == "NoProgress"
    assert (one.app.granted(), "hold" in one.record()) == (3, True)


def test_a_hold_that_gives_up_moves_nothing_until_the_spec_changes(one: ObservedApp) -> None:
    one.app.apply(2, learners=NEVER_NEAR_ENOUGH, scaleDown={**SOON, "onTimeout": "GiveUp"})
    one.wait_until_held("GaveUp", 150)
    granted, reasons = one.watch_hold(20)
    assert (granted, reasons) == ({3}, {"GaveUp"})
    one.app.apply(2)
    wait_until("tried again, and done", lambda: one.steps()[:1] == [(3, 2)], 120)
    one.app.wait_until_converged(2)


def test_a_hold_that_proceeds_removes_the_pod_and_keeps_on_record_why(one: ObservedApp) -> None:
    one.app.scale(3)
    one.app.wait_until_converged(3)
    why = "the night shift needs the memory"
    one.app.apply(2, learners=NEVER_NEAR_ENOUGH, scaleDown={**SOON, "onTimeout": "Proceed", "reason": why})
    wait_until("it proceeds", lambda: one.app.granted() == 2, 150)
    # Where nothing is near enough, nothing is ever seen as converged while there is a load.
    one.app.apply(2)
    one.app.wait_until_converged(2)
    assert one.steps()[0] == (3, 2)
    assert one.app.status()["lastSteps"][0]["forced"] == {"by": "Timeout", "reason": why}


def test_zero_pods_stop_the_application_and_all_come_back_with_their_state(one: ObservedApp) -> None:
    claims = [one.claim_uid(ordinal) for ordinal in range(3)]
    one.app.apply(0, scaleDown={"stabilizationWindow": "2s", "allowZero": True})
    wait_until("none is left", lambda: one.app.granted() == 0 and not one.app.pods(), 150)
    one.app.apply(3)
    one.app.wait_until_converged(3)
    assert [one.claim_uid(ordinal) for ordinal in range(3)] == claims
    assert one.app.condition("ProcessIdentityStable")["status"] == "True"


@pytest.mark.guarantee(4)
def test_a_claim_goes_with_its_pod_only_where_the_streamapp_says_so(one: ObservedApp) -> None:
    state = one.app.resource(3)["spec"]["state"]
    first, second = (one.claim_uid(ordinal) for ordinal in (1, 2))
    one.app.apply(2, state={**state, "retention": {"whenScaled": "Delete"}})
    one.app.wait_until_converged(2)
    wait_until("its claim is gone", lambda: second not in claims_of(one), 60)
    assert first in claims_of(one)
    one.app.apply(3, state={**state, "retention": {"whenScaled": "Delete"}})
    one.app.wait_until_converged(3)
    assert one.claim_uid(2) != second


def test_no_record_was_lost_or_counted_too_low(one: ObservedApp) -> None:
    require_no_record_lost(one)


@pytest.mark.guarantee(4)
def test_claims_that_a_paused_streamapp_retains_outlive_it(one: ObservedApp) -> None:
    """In a pause no template is written, which has the policy of claims in it at other times."""
    state = one.app.resource(3)["spec"]["state"]
    one.app.apply(3, state={**state, "retention": {"whenDeleted": "Delete"}})
    wait_until("they would go with it", lambda: when_deleted(one) == "Delete", 60)
    one.app.apply(3, state={**state, "retention": {"whenDeleted": "Retain"}}, paused=True)
    wait_until("they would stay", lambda: when_deleted(one) == "Retain", 60)
    claims = claims_of(one)
    one.app.kubectl.run("delete", "streamapp", "--namespace", one.app.namespace, one.app.name, "--wait")
    wait_until("no pod is left", lambda: not one.app.pods(), 120)
    time.sleep(10)  # the garbage collector takes a moment
    assert claims_of(one) == claims


def when_deleted(one: ObservedApp) -> str:
    """What the StatefulSet says of claims when it is deleted."""
    found = one.app.kubectl.json("get", "statefulset", "--namespace", one.app.namespace, one.app.name)
    return str(found["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"])


def claims_of(one: ObservedApp) -> set[str]:
    """The UIDs of all claims of its namespace."""
    found = json.loads(one.app.kubectl.run("get", "pvc", "--namespace", one.app.namespace, "--output", "json"))
    return {claim["metadata"]["uid"] for claim in found["items"]}
