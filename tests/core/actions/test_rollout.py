"""The rollout: one pod at a time, behind coverage, never a leaving one for nothing."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from streamapp.core.actions.decision import RestartPod, TriggerRebalance, WriteTemplate
from streamapp.core.decide import decide
from streamapp.core.facts.group import GroupState, Member
from streamapp.core.facts.hold_record import HoldRecord, Progress
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import RolloutPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.workload import Pod, Volume
from streamapp.core.reasons import Reason
from tests.builders import (
    NOW,
    POLICY,
    a_pod,
    a_reading,
    a_record,
    a_snapshot,
    ago,
    an_unreadable,
    not_running,
    pods,
    seconds,
    steps,
    told,
    volumes,
)
from tests.support import example

GROUP = example.members(3)
BARE = example.members(3, standbys=False)
NEW = "wordcount-new"


def rolling(*updated: int, desired: int = 3, changed: dict[str, Pod] | None = None, **changes: Any) -> Snapshot:
    """A newer template is in the StatefulSet; some pods have it already."""
    with_it = {f"p{number}": a_pod(number, revision=NEW) for number in updated}
    return a_snapshot(
        desired=desired,
        record=changes.pop("record", None),
        statefulset={"update_revision": NEW, **changes.pop("statefulset", {})},
        workload={"pods": pods(3, **with_it, **(changed or {})), **changes.pop("workload", {})},
        **changes,
    )


def held(reason: Reason) -> HoldRecord:
    """A hold whose latest verdict was the same, a moment ago."""
    progress = Progress(best=0, improved_at=ago(60), counted_at=ago(60))
    if reason is Reason.RolloutInProgress:
        progress = Progress(improved_at=ago(60), counted_at=ago(60))
    return a_record(reason=reason, progress=progress)


def restarts(snapshot: Snapshot, policy: ScalingPolicy = POLICY) -> list[tuple[int, str]]:
    plan = decide(snapshot, policy).plan
    return [(step.ordinal, step.reason.name) for step in plan if isinstance(step, RestartPod)]


def reconciling(snapshot: Snapshot, policy: ScalingPolicy = POLICY) -> str:
    conditions = {condition.type: condition for condition in decide(snapshot, policy).conditions}
    return conditions["Reconciling"].reason.name


def test_the_highest_pod_with_an_older_template_restarts_first() -> None:
    assert decide(rolling(), POLICY).plan == (
        RestartPod(ordinal=Ordinal(2), pod_uid="pod-2", judged_at=NOW, reason=Reason.RestartCovered),
    )


@pytest.mark.parametrize(("updated", "next_"), [((2,), 1), ((1, 2), 0)])
def test_then_the_next_one(updated: tuple[int, ...], next_: int) -> None:
    assert restarts(rolling(*updated)) == [(next_, "RestartCovered")]


def test_when_all_have_it_nothing_is_left_to_do() -> None:
    assert decide(rolling(0, 1, 2), POLICY).plan == ()


def test_a_changed_template_is_written_before_anything_restarts() -> None:
    plan = decide(rolling(statefulset={"template_is_written": False}), POLICY).plan
    assert [type(step) for step in plan] == [WriteTemplate]


@pytest.mark.parametrize(
    ("snapshot", "reason"),
    [
        pytest.param(
            rolling(2, changed={"p1": a_pod(1, terminating=True)}), "PodTerminating", id="another is on its way out"
        ),
        pytest.param(
            rolling(changed={"p2": a_pod(2, revision=NEW, ready=False)}), "RolloutPodNotRunning", id="is not ready"
        ),
        pytest.param(
            rolling(changed={"p2": a_pod(2, revision=NEW, container=not_running())}),
            "RolloutPodNotRunning",
            id="does not run: the image is bad",
        ),
        pytest.param(rolling(workload={"pods": pods(2)}), "RolloutPodNotRunning", id="is not back yet"),
        pytest.param(rolling(members=example.members(3, lag=500_000)), "LearnersCatchingUp", id="copies lag"),
        pytest.param(rolling(members=example.members(3, lag=None)), "LagUnknown", id="copies are unknown"),
        pytest.param(rolling(readings=(a_reading(GROUP),)), "ReadingsPending", id="one reading only"),
        pytest.param(rolling(readings=(an_unreadable(),)), "BrokersUnreachable", id="brokers are gone"),
        pytest.param(rolling(statefulset={"generation": 7}), "StatefulSetUnobserved", id="the write is unseen"),
        pytest.param(rolling(statefulset={"deleting": True}), "StatefulSetMissing", id="the StatefulSet goes"),
    ],
)
def test_no_pod_restarts_while_the_last_one_or_its_cover_is_missing(snapshot: Snapshot, reason: str) -> None:
    assert (restarts(snapshot), reconciling(snapshot)) == ([], reason)


def test_a_bad_image_can_be_replaced_by_a_good_one_beginning_with_the_pod_that_broke() -> None:
    broken = a_pod(2, revision="bad", ready=False, container=not_running())
    rest = (
        example.member(0, active=(0, 1, 2), standby=(3, 4, 5)),
        example.member(1, active=(3, 4, 5), standby=(0, 1, 2)),
    )
    assert restarts(rolling(members=rest, changed={"p2": broken})) == [(2, "RestartOfIdlePod")]


@pytest.mark.guarantee(1)
@pytest.mark.parametrize("shown", [(), GROUP[:2]], ids=["nobody", "the others"])
def test_one_look_that_lacks_a_pods_member_does_not_make_it_idle(shown: tuple[Member, ...]) -> None:
    """A new coordinator can show an older state of the group, and the status of a pod can be late."""
    down = {"p2": a_pod(2, revision="bad", ready=False, container=not_running())}
    state = GroupState.STABLE if shown else GroupState.EMPTY
    looks = [a_reading(shown, at=1, state=state), *(a_reading(GROUP, at=at) for at in (4, 14, 24))]
    assert restarts(rolling(readings=tuple(looks), changed=down)) == []
    looks[1:] = [a_reading(shown, at=at, state=state) for at in (4, 14)]
    assert restarts(rolling(readings=tuple(looks), changed=down)) == [(2, "RestartOfIdlePod")]


@pytest.mark.guarantee(8)
@pytest.mark.parametrize(
    "leaver",
    [
        pytest.param((a_pod(2, revision=NEW, ready=False, container=not_running()),), id="it does not run"),
        pytest.param((a_pod(2, ready=False, container=not_running()),), id="it does not run, with an older template"),
        pytest.param((a_pod(2, revision=NEW, terminating=True, ready=False),), id="it does not end"),
        pytest.param((), id="it cannot be made"),
    ],
)
def test_a_pod_that_leaves_and_stops_the_rollout_goes_before_it(leaver: tuple[Pod, ...]) -> None:
    """It could be a bad image: no other pod restarts, and the pod that shows it is not kept for ever either."""
    change: dict[str, Any] = {"members": example.members(2), "record": held(Reason.RolloutInProgress)}
    leaves = rolling(desired=2, workload={"pods": (*pods(2), *leaver)}, **change)
    assert (told(decide(leaves, POLICY)), restarts(leaves)) == (("Step", "Covered"), [])
    ill = a_pod(1, revision=NEW, ready=False, container=not_running())
    both = rolling(desired=2, workload={"pods": (a_pod(0), ill, *leaver)}, **change)
    assert (told(decide(both, POLICY)), restarts(both)) == (("Hold", "RolloutInProgress"), [])


def test_a_pod_that_runs_above_one_that_stops_the_rollout_waits_for_the_rollout() -> None:
    """What the StreamApp says of limits and assignor can belong to the newer template."""
    ill = a_pod(1, revision=NEW, ready=False, container=not_running())
    held_up = held(Reason.RolloutInProgress)
    snapshot = rolling(desired=1, record=held_up, workload={"pods": (a_pod(0), ill, a_pod(2, revision=NEW))})
    assert (told(decide(snapshot, POLICY)), restarts(snapshot)) == (("Hold", "RolloutInProgress"), [])


@pytest.mark.guarantee(1)
def test_a_pod_that_leaves_and_is_down_restarts_before_the_others_where_it_cannot_go_yet() -> None:
    """Were another one to restart, two would be down at once; and the pod above it waits for the rollout."""
    down = a_pod(1, ready=False, container=not_running())
    rest = (
        example.member(0, active=(0, 1, 2), standby=(3, 4, 5)),
        example.member(2, active=(3, 4, 5), standby=(0, 1, 2)),
    )
    held_up = held(Reason.RolloutInProgress)
    assert held_up.hold is not None
    record = replace(held_up, hold=replace(held_up.hold, target=1))
    snapshot = rolling(desired=1, record=record, members=rest, changed={"p1": down})
    assert told(decide(snapshot, POLICY)) == ("Hold", "RolloutInProgress")
    assert restarts(snapshot) == [(1, "RestartOfIdlePod")]
    still_listed = replace(snapshot, readings=rolling(members=GROUP).readings)
    assert restarts(still_listed) == []


@pytest.mark.guarantee(4)
@pytest.mark.parametrize(
    ("claims", "restarted"),
    [
        pytest.param(volumes(3), [(2, "RestartOfIdlePod")], id="its claim stands"),
        pytest.param(volumes(2), [], id="its claim is not in view"),
        pytest.param((*volumes(2), replace(volumes(3)[2], deleting=True)), [], id="its claim is being deleted"),
    ],
)
def test_a_pod_that_is_down_is_not_replaced_where_its_volume_would_go_with_it(
    claims: tuple[Volume, ...], restarted: list[tuple[int, str]]
) -> None:
    down = a_pod(2, revision="old", ready=False, container=not_running())
    rest = example.members(2)
    assert restarts(rolling(members=rest, changed={"p2": down}, workload={"volumes": claims})) == restarted


def test_a_pod_that_does_not_run_but_is_still_listed_is_not_taken_for_an_idle_one() -> None:
    crashed = a_pod(2, revision="bad", ready=False, container=not_running())
    snapshot = rolling(changed={"p2": crashed})
    # nor does another pod restart while the copies of that one are away
    assert (restarts(snapshot), reconciling(snapshot)) == ([], "NoLearners")


def test_nothing_is_replaced_on_the_word_of_old_facts() -> None:
    broken = a_pod(2, revision="bad", ready=False, container=not_running())
    old = rolling(members=GROUP[:2], changed={"p2": broken}, workload={"read_at": ago(60)})
    assert restarts(replace(old, workload=replace(old.workload, pods=pods(3, p2=broken)))) == []


def test_a_pod_that_learns_is_passed_over_and_so_is_one_that_must_stay_for_it() -> None:
    members = (
        example.member(0, active=(0, 1), standby=(4, 5)),
        example.member(1, active=(2, 3), standby=(0, 1)),
        example.member(2, active=(4, 5), standby=(2, 3), lag=500_000),
    )
    # pod 2 is behind with 0_2 and 0_3, which therefore pod 1 must keep; pod 0 is free
    both = [restarts(rolling(*updated, members=members)) for updated in ((), (1,))]
    assert both == [[(0, "RestartCovered")], [(0, "RestartCovered")]]


def test_a_pod_that_restores_is_passed_over() -> None:
    members = (
        example.member(0, active=(0, 1), standby=(4, 5)),
        example.member(1, active=(2, 3), standby=(0, 1)),
        replace(example.member(2, active=(4, 5), standby=(2, 3), running=False)),
    )
    assert restarts(rolling(members=members)) == [(1, "RestartCovered")]


def test_leaving_pods_are_not_restarted_for_nothing() -> None:
    snapshot = rolling(0, 1, desired=2, record=held(Reason.LearnersCatchingUp), members=example.members(3, lag=500_000))
    assert (restarts(snapshot), decide(snapshot, POLICY).reason.name) == ([], "LearnersCatchingUp")


def test_pods_that_stay_are_restarted_while_a_scale_down_is_held() -> None:
    for updated in ((), (2,)):
        begun = rolling(*updated, desired=2, record=held(Reason.RolloutInProgress))
        assert (restarts(begun), decide(begun, POLICY).reason.name) == ([(1, "RestartCovered")], "RolloutInProgress")


def test_the_pod_that_leaves_covers_the_restart_of_the_last_one() -> None:
    """Were it removed first, the last pod would restart without any copy of its tasks elsewhere."""
    progress = Progress(improved_at=ago(60), counted_at=ago(60))
    record = a_record(from_replicas=2, granted=2, target=1, reason=Reason.RolloutInProgress, progress=progress)
    both = a_snapshot(
        pods=2, desired=1, record=record, statefulset={"update_revision": NEW}, members=example.members(2)
    )
    assert (restarts(both), decide(both, POLICY).reason.name) == ([(0, "RestartCovered")], "RolloutInProgress")


def test_leaving_pods_are_not_restarted_while_fewer_desired_replicas_must_last() -> None:
    patient = replace(POLICY, stabilization_window=timedelta(hours=1))
    snapshot = rolling(desired=2)
    found = restarts(snapshot, patient)
    assert (found, decide(snapshot, patient).reason.name) == ([(1, "RestartCovered")], "Stabilizing")


def test_without_standbys_the_leaving_pods_restart_too_or_the_cure_would_never_reach_the_leader() -> None:
    snapshot = rolling(0, 1, desired=2, record=held(Reason.NoLearners), members=BARE)
    assert restarts(snapshot) == [(2, "RestartWithoutLearners")]


def test_without_standbys_one_pod_restarts_at_a_time_once_every_task_runs() -> None:
    restoring = (*BARE[:2], example.member(2, active=(4, 5), running=False))
    assert [restarts(rolling(members=members)) for members in (BARE, restoring)] == [
        [(2, "RestartWithoutLearners")],
        [],
    ]


def test_without_standbys_the_word_of_a_container_that_has_ended_does_not_let_the_next_pod_restart() -> None:
    """Its member is listed as it was until the next container joins, which has no readiness probe and is ready."""
    container = replace(example.pod(2).container, id="containerd://next-2", running_since=ago(3), first_seen_at=ago(3))
    join = example.rebalance(BARE, ago(60))
    polls = tuple(a_reading(BARE, at=at, rebalance=join) for at in (1, 15))
    both = (
        rolling(changed={"p2": a_pod(2, revision=NEW)}, readings=polls),
        rolling(changed={"p2": a_pod(2, uid="pod-next-2", revision=NEW, container=container)}, readings=polls),
    )
    assert [(restarts(snapshot), reconciling(snapshot)) for snapshot in both] == [
        ([(1, "RestartWithoutLearners")], "RestartWithoutLearners"),
        ([], "TasksNotRunning"),
    ]


def test_a_single_pod_has_nobody_to_cover_for_it() -> None:
    alone = a_snapshot(
        pods=1,
        desired=1,
        record=None,
        statefulset={"update_revision": NEW},
        readings=example.two_readings(example.members(1)),
    )
    assert restarts(alone) == [(0, "RestartWithoutLearners")]


def test_a_paused_rollout_restarts_nothing_and_says_so() -> None:
    policy = ScalingPolicy(rollout=RolloutPolicy.PAUSED)
    decision = decide(rolling(), policy)
    assert (decision.plan, decision.reason) == ((), Reason.Steady)


def test_an_immediate_rollout_asks_for_no_coverage_but_goes_one_at_a_time() -> None:
    policy = ScalingPolicy(rollout=RolloutPolicy.IMMEDIATE)
    ill = {"p2": a_pod(2, revision=NEW, ready=False)}
    assert [
        restarts(rolling(members=example.members(3, lag=500_000)), policy),
        restarts(rolling(members=BARE, changed=ill), policy),
    ] == [[(2, "RestartUncovered")], []]


@pytest.mark.parametrize("app", [{"paused": True}, {"dry_run": True}, {"fault": "broken"}, {"deleting": True}], ids=str)
def test_nothing_restarts_while_the_operator_is_told_to_keep_still(app: dict[str, Any]) -> None:
    assert restarts(rolling(app=app)) == []


def test_the_hold_record_is_written_before_a_pod_restarts() -> None:
    assert steps(decide(rolling(desired=2, record=held(Reason.LagUnknown)), POLICY)) == ("WriteHoldRecord",)


def test_a_rollout_that_lacks_a_fresh_reading_rebalances_for_it() -> None:
    old = (a_reading(GROUP, rebalance=example.rebalance(GROUP, ago(300))),)
    assert decide(rolling(readings=old), POLICY).plan == (
        TriggerRebalance(like_member="wordcount-0-consumer", reason=Reason.ReadingsPending),
    )


def test_a_restart_waits_out_a_young_reading() -> None:
    young = (a_reading(GROUP, at=1), a_reading(GROUP, at=1 + 9))
    assert (restarts(rolling(readings=young)), seconds(9) < POLICY.timing.reading_gap) == ([], True)
