"""The streams protocol: no task can be read, so only a user's word moves a pod, one at a time, if others are ready."""

from dataclasses import replace
from typing import Any

import pytest

from streamapp.core.actions.decision import GrantReplicas, RestartPod
from streamapp.core.decide import decide
from streamapp.core.facts.hold_record import Forced, ForcedBy, Progress
from streamapp.core.facts.policy import OnTimeout, RolloutPolicy, ScaleDownPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import HoldOverride, Snapshot
from streamapp.core.facts.tasks import TopologyUnknown
from streamapp.core.facts.workload import Pod
from streamapp.core.reasons import Reason
from tests.builders import a_pod, a_record, a_snapshot, a_step, ago, an_unreadable, not_running, pods, seconds

UNREAD = (an_unreadable(reason=Reason.GroupProtocolUnsupported, streams=True),)
AT_ONCE = ScalingPolicy(rollout=RolloutPolicy.IMMEDIATE)
BY_POLICY = ScalingPolicy(scale_down=ScaleDownPolicy.IMMEDIATE, force_reason="cost")
AFTER_A_MINUTE = ScalingPolicy(on_timeout=OnTimeout.PROCEED, timeout=seconds(60), force_reason="cost")
WAITED = a_record(progress=Progress(improved_at=ago(90), counted_at=ago(90)))
BY_WORD = HoldOverride(hold_id="h-1", why="cost")


def streams(*, changed: dict[str, Pod] | None = None, override: HoldOverride | None = None, **changes: Any) -> Snapshot:
    workload = {"pods": pods(3, **(changed or {})), **changes.pop("workload", {})}
    found = a_snapshot(readings=changes.pop("readings", UNREAD), workload=workload, **changes)
    return replace(found, task_set=TopologyUnknown("unread"), app=replace(found.app, override=override))


def rolling(*updated: int, changed: dict[str, Pod] | None = None, **changes: Any) -> Snapshot:
    newest = {f"p{number}": a_pod(number, revision="new") for number in updated}
    statefulset = {"update_revision": "new"}
    return streams(desired=3, record=None, statefulset=statefulset, changed={**newest, **(changed or {})}, **changes)


def restarts(snapshot: Snapshot, policy: ScalingPolicy = AT_ONCE) -> list[int]:
    return [step.ordinal for step in decide(snapshot, policy).plan if isinstance(step, RestartPod)]


def removals(snapshot: Snapshot, policy: ScalingPolicy) -> list[int]:
    return [step.to_replicas for step in decide(snapshot, policy).plan if isinstance(step, GrantReplicas)]


def test_without_a_word_no_pod_restarts_or_leaves() -> None:
    assert restarts(rolling(), ScalingPolicy()) == []
    assert removals(streams(record=WAITED), ScalingPolicy()) == []
    assert decide(streams(), ScalingPolicy()).reason is Reason.GroupProtocolUnsupported


@pytest.mark.parametrize(("updated", "restarted"), [((), [2]), ((2,), [1]), ((1, 2), [0]), ((0, 1, 2), [])])
def test_an_immediate_rollout_reaches_every_pod_one_by_one(updated: tuple[int, ...], restarted: list[int]) -> None:
    assert restarts(rolling(*updated)) == restarted


def test_no_pod_restarts_while_another_is_not_ready_but_one_that_is_down_is_replaced_first() -> None:
    ill, down = a_pod(2, revision="new", ready=False), a_pod(0, ready=False, container=not_running())
    assert restarts(rolling(changed={"p2": ill})) == []
    assert restarts(rolling(changed={"p0": down})) == [0]
    assert restarts(rolling(changed={"p0": down, "p1": a_pod(1, ready=False)})) == [1]
    assert restarts(rolling(changed={"p1": a_pod(1, terminating=True)})) == []


def test_a_pod_that_is_down_is_found_however_many_are_to_restart() -> None:
    down = a_pod(0, ready=False, container=not_running())
    many = a_snapshot(
        pods=6,
        desired=6,
        record=None,
        statefulset={"update_revision": "new"},
        readings=UNREAD,
        workload={"pods": pods(6, p0=down)},
    )
    assert restarts(many) == [0]


@pytest.mark.parametrize(
    ("snapshot", "policy", "reason"),
    [
        (streams(override=BY_WORD), ScalingPolicy(), Reason.OverriddenByUser),
        (streams(), BY_POLICY, Reason.OverriddenByPolicy),
        (streams(record=WAITED), AFTER_A_MINUTE, Reason.OverriddenByTimeout),
    ],
)
def test_a_word_removes_one_pod(snapshot: Snapshot, policy: ScalingPolicy, reason: Reason) -> None:
    decision = decide(snapshot, policy)
    assert (removals(snapshot, policy), decision.reason) == ([2], reason)


def test_a_timeout_that_has_not_passed_removes_none() -> None:
    assert removals(streams(), AFTER_A_MINUTE) == []


@pytest.mark.parametrize(
    "snapshot",
    [
        streams(changed={"p0": a_pod(0, ready=False)}),
        streams(workload={"read_at": ago(60)}),
        streams(readings=(an_unreadable(at=60, reason=Reason.GroupProtocolUnsupported, streams=True),)),
        streams(readings=(an_unreadable(),)),
        streams(readings=(an_unreadable(reason=Reason.GroupProtocolUnsupported),)),
        streams(statefulset={"generation": 7}),
    ],
    ids=[
        "another is not ready",
        "old pods",
        "old group",
        "brokers are gone",
        "another client's group",
        "the last write is unseen",
    ],
)
def test_a_word_removes_no_pod_where_anything_else_is_in_doubt(snapshot: Snapshot) -> None:
    assert removals(snapshot, BY_POLICY) == []


def test_an_immediate_rollout_restarts_no_pod_for_the_group_of_another_client() -> None:
    assert restarts(rolling(readings=(an_unreadable(reason=Reason.GroupProtocolUnsupported),))) == []


def test_the_last_pod_stays() -> None:
    alone = a_snapshot(pods=1, desired=0, readings=UNREAD)
    assert removals(alone, replace(BY_POLICY, allow_zero=True)) == []


@pytest.mark.parametrize("is_ready", [False, True])
def test_a_step_by_a_word_ends_when_its_pod_is_gone_and_the_others_are_ready(is_ready: bool) -> None:
    step = a_step(forced=Forced(ForcedBy.POLICY, "cost"), reason=Reason.OverriddenByPolicy, observed=())
    found = streams(record=a_record(step=step, from_replicas=4), changed={"p1": a_pod(1, ready=is_ready)})
    decision = decide(found, BY_POLICY)
    assert (decision.closed_step is not None) == is_ready
    assert decision.reason is (Reason.StepClosed if is_ready else Reason.PodsNotReady)


def test_a_single_pod_restarts_by_a_word_only() -> None:
    alone = a_snapshot(pods=1, desired=1, record=None, statefulset={"update_revision": "new"}, readings=UNREAD)
    assert (restarts(alone, ScalingPolicy()), restarts(alone)) == ([], [0])


def test_a_step_by_a_word_does_not_end_on_an_old_reading() -> None:
    step = a_step(forced=Forced(ForcedBy.POLICY, "cost"), reason=Reason.OverriddenByPolicy, observed=())
    old = (an_unreadable(at=60, reason=Reason.GroupProtocolUnsupported, streams=True),)
    decision = decide(streams(record=a_record(step=step, from_replicas=4), readings=old), BY_POLICY)
    assert (decision.closed_step, decision.reason) == (None, Reason.FactsStale)
