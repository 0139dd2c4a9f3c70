"""State that becomes too old while its pod waits to start is not served: the pod is replaced before it starts."""

from datetime import timedelta
from typing import Any

import pytest

from streamapp.core.actions.decision import Decision, RestartPod
from streamapp.core.decide import decide
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.workload import LastUse, Pod, StateSeen
from tests.builders import POLICY, a_pod, a_record, a_snapshot, a_step, ago, an_unreadable, not_running, pods
from tests.support import example

pytestmark = pytest.mark.guarantee(4)

DAY = timedelta(hours=20)
HOUR = 3600.0


def waiting(hours: float, idle: timedelta | StateSeen, ordinal: int = 1, **changes: Any) -> Pod:
    """A pod whose seeder ended so long ago."""
    run = LastUse(ended_at=ago(hours * HOUR), idle=idle)
    never = not_running(ever_ran=False)
    return a_pod(ordinal, container=never, ready=False, last_use=run, **changes)


def snapshot(pod: Pod, **changes: Any) -> Snapshot:
    app = {"max_idle_time": DAY, **changes.pop("app", {})}
    # Whoever has not started is in no group.
    given: dict[str, Any] = {"desired": 3, "record": None, "workload": {"pods": pods(3, p1=pod)}}
    given |= {"members": example.members()[:1], **changes}
    return a_snapshot(app=app, **given)


def replaced(decision: Decision) -> list[tuple[int, str]]:
    return [(step.ordinal, step.reason.name) for step in decision.plan if isinstance(step, RestartPod)]


def identity(decision: Decision) -> tuple[str, str, str]:
    (found,) = (one for one in decision.conditions if one.type == "ProcessIdentityStable")
    return found.status.value, found.reason.name, found.detail


EXPIRED = ([(1, "IdleStateExpired")], ("False", "IdleStateExpired", "ordinal 1"))


@pytest.mark.parametrize(
    ("pod", "is_expired"),
    [
        pytest.param(waiting(4, timedelta(hours=16)), True, id="16 h old, and 4 h of waiting"),
        pytest.param(waiting(3.999, timedelta(hours=16)), False, id="a moment before"),
        pytest.param(waiting(100, StateSeen.NONE), False, id="no state, however long it waits"),
        pytest.param(waiting(1, StateSeen.UNKNOWN), True, id="an hour where the age is not known"),
        pytest.param(waiting(0.999, StateSeen.UNKNOWN), False, id="a moment before the hour"),
        pytest.param(waiting(0, timedelta(hours=30)), True, id="the limit was lowered since"),
        pytest.param(waiting(20, timedelta(0)), True, id="it ran 20 h ago, and could not start again"),
        pytest.param(waiting(9, timedelta(hours=16), terminating=True), False, id="the pod goes anyway"),
        pytest.param(a_pod(1), False, id="the pod runs"),
    ],
)
def test_a_pod_is_replaced_when_its_state_became_too_old(pod: Pod, is_expired: bool) -> None:
    decision = decide(snapshot(pod), POLICY)
    assert replaced(decision) == (EXPIRED[0] if is_expired else [])
    assert (identity(decision) == EXPIRED[1]) is is_expired


OLD = waiting(9, timedelta(hours=16))


def test_the_brokers_are_not_asked() -> None:
    decision = decide(snapshot(OLD, readings=(an_unreadable(),)), POLICY)
    assert (replaced(decision), identity(decision)) == EXPIRED


def test_a_hold_does_not_keep_old_state() -> None:
    decision = decide(snapshot(OLD, desired=2, record=a_record()), POLICY)
    again = decide(snapshot(OLD, desired=2, record=decision.record), POLICY)
    assert replaced(again) == EXPIRED[0]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"app": {"paused": True}}, id="paused"),
        pytest.param({"app": {"dry_run": True}}, id="a dry run"),
        pytest.param({"desired": 4}, id="growth comes first"),
        pytest.param({"record": a_record(step=a_step())}, id="while pods are leaving"),
        pytest.param(
            {"members": example.members()}, id="it is in the group, and its kubelet has not said that it runs"
        ),
    ],
)
def test_a_pod_that_is_not_replaced_is_named(changes: dict[str, Any]) -> None:
    decision = decide(snapshot(OLD, **changes), POLICY)
    assert (replaced(decision), identity(decision)) == ([], EXPIRED[1])


@pytest.mark.parametrize(
    "statefulset", [{"template_is_written": False}, {"drift": "spec.updateStrategy: RollingUpdate"}], ids=str
)
@pytest.mark.parametrize(
    ("pod", "is_replaced"),
    [
        pytest.param(waiting(4.016, timedelta(hours=16)), False, id="too old for less than a minute"),
        pytest.param(waiting(4.017, timedelta(hours=16)), True, id="for a minute: a template can be refused for days"),
        pytest.param(waiting(20.017, timedelta(0)), True, id="it ran, and could not start again"),
        pytest.param(waiting(9, timedelta(hours=20)), False, id="its seeder left what is too old, and the next would"),
        pytest.param(waiting(9, StateSeen.UNKNOWN), False, id="nothing says what the next seeder would do"),
    ],
)
def test_the_template_with_the_limit_comes_first_for_a_minute(
    pod: Pod, statefulset: dict[str, Any], *, is_replaced: bool
) -> None:
    decision = decide(snapshot(pod, statefulset=statefulset), POLICY)
    assert (replaced(decision), identity(decision)) == (EXPIRED[0] if is_replaced else [], EXPIRED[1])
    assert [type(step).__name__ for step in decision.plan].count("WriteTemplate") == (not is_replaced)


def test_one_pod_is_replaced_in_a_pass() -> None:
    both = {"pods": pods(3, p1=OLD, p2=waiting(9, timedelta(hours=16), 2))}
    decision = decide(snapshot(OLD, workload=both), POLICY)
    assert replaced(decision) == EXPIRED[0]
    assert identity(decision) == ("False", "IdleStateExpired", "ordinal 1, 2")


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"app": {"keeps_state": False, "max_idle_time": None}}, id="no state is kept"),
        pytest.param({"statefulset": {"is_ours": False}}, id="of others"),
    ],
)
def test_pods_that_are_not_ours_to_judge_are_left_alone(changes: dict[str, Any]) -> None:
    decision = decide(snapshot(OLD, **changes), POLICY)
    assert (replaced(decision), identity(decision)[1] == "IdleStateExpired") == ([], False)
