"""Restarts that a user asks for: the gates of a rollout, the pod named by its UID, its volume kept or given up."""

from dataclasses import replace
from typing import Any

import pytest

from streamapp.core.actions.decision import GrantReplicas, RestartPod
from streamapp.core.decide import decide
from streamapp.core.facts.agent_reports import AgentSilent
from streamapp.core.facts.hold_record import Progress
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import RolloutPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import RestartRequest, Snapshot
from streamapp.core.facts.workload import Pod, Volume
from streamapp.core.reasons import Reason
from tests.builders import POLICY, a_pod, a_record, a_snapshot, ago, not_running, pods, volumes
from tests.support import example

FAR_BEHIND = example.members(3, lag=500_000)


def asked(*ordinals: int, new_volume: bool = False, desired: int = 3, **changes: Any) -> Snapshot:
    """Everybody has the newest template; a user wants these pods restarted."""
    requests = tuple(RestartRequest(pod_uid=f"pod-{ordinal}", new_volume=new_volume) for ordinal in ordinals)
    app = {"restarts": requests, **changes.pop("app", {})}
    return a_snapshot(desired=desired, record=changes.pop("record", None), app=app, **changes)


def given_up(*ordinals: int) -> tuple[Volume, ...]:
    return tuple(replace(one, deleting=one.ordinal in ordinals) for one in volumes())


def with_pod(pod: Pod) -> dict[str, Any]:
    return {"pods": pods(3, **{f"p{pod.ordinal}": pod})}


def restarts(snapshot: Snapshot, policy: ScalingPolicy = POLICY) -> list[tuple[int, str]]:
    plan = decide(snapshot, policy).plan
    return [(step.ordinal, step.reason.name) for step in plan if isinstance(step, RestartPod)]


def reconciling(snapshot: Snapshot) -> str:
    conditions = {condition.type: condition for condition in decide(snapshot, POLICY).conditions}
    return conditions["Reconciling"].reason.name


@pytest.mark.parametrize("ordinal", [0, 1, 2])
def test_a_pod_that_is_covered_restarts_and_no_other_does(ordinal: int) -> None:
    assert restarts(asked(ordinal)) == [(ordinal, "RestartCovered")]


@pytest.mark.guarantee(1)
def test_a_pod_that_is_not_covered_stays_and_the_status_says_for_what_it_waits() -> None:
    snapshot = asked(1, members=FAR_BEHIND)
    assert (restarts(snapshot), reconciling(snapshot)) == ([], "LearnersCatchingUp")


def test_the_next_pod_of_that_ordinal_is_another_one_and_stays() -> None:
    assert restarts(asked(1, workload=with_pod(a_pod(1, uid="the-next")))) == []


def test_of_several_pods_one_restarts_at_a_time() -> None:
    leaving = asked(0, 2, workload=with_pod(a_pod(2, terminating=True)))
    assert (restarts(asked(0, 2)), restarts(leaving), reconciling(leaving)) == (
        [(2, "RestartCovered")],
        [],
        "PodTerminating",
    )


def test_a_pod_that_is_not_well_does_not_stand_in_its_own_way() -> None:
    unready = with_pod(a_pod(1, ready=False))
    assert (restarts(asked(1, workload=unready)), restarts(asked(2, workload=unready))) == (
        [(1, "RestartCovered")],
        [],
    )


def test_a_pod_that_does_not_run_and_is_in_no_group_is_replaced_at_once() -> None:
    down = with_pod(a_pod(2, ready=False, container=not_running()))
    assert restarts(asked(2, workload=down, members=example.members(2))) == [(2, "RestartOfIdlePod")]


def test_a_pod_that_is_about_to_leave_is_not_restarted_for_nothing() -> None:
    held = a_record(granted=3, target=2)
    assert restarts(asked(2, desired=2, record=held, members=FAR_BEHIND)) == []


def test_a_paused_rollout_stops_the_restart_that_would_bring_the_newest_template_and_no_other() -> None:
    policy = ScalingPolicy(rollout=RolloutPolicy.PAUSED)
    old = with_pod(a_pod(1, revision="older"))
    assert (restarts(asked(1), policy), restarts(asked(1, workload=old), policy)) == ([(1, "RestartCovered")], [])


@pytest.mark.parametrize("app", [{"paused": True}, {"dry_run": True}, {"fault": "broken"}, {"deleting": True}], ids=str)
def test_nothing_restarts_while_the_operator_is_told_to_keep_still(app: dict[str, Any]) -> None:
    assert restarts(asked(1, app=app)) == []


def test_a_pod_that_is_to_get_a_new_volume_waits_until_its_claim_is_being_deleted() -> None:
    kept = asked(1, new_volume=True)
    gone = asked(1, new_volume=True, workload={"volumes": given_up(1)})
    assert (restarts(kept), restarts(gone)) == ([], [(1, "RestartCovered")])


@pytest.mark.guarantee(1)
def test_nothing_else_goes_on_the_word_of_a_volume_that_is_given_up() -> None:
    """Its copies end with its pod, so no other pod may rest on them."""
    scale_down = asked(1, new_volume=True, desired=2, record=a_record(granted=3), workload={"volumes": given_up(1)})
    without_request = asked(workload={"volumes": given_up(1)}, desired=2, record=a_record(granted=3))
    for snapshot in (scale_down, without_request):
        decision = decide(snapshot, POLICY)
        assert not any(isinstance(step, GrantReplicas) for step in decision.plan)
        assert decision.reason is Reason.VolumeClaimMissing
    assert restarts(asked(2, workload={"volumes": given_up(1)})) == []


def test_a_pod_with_a_volume_that_is_given_up_needs_cover_like_any_other() -> None:
    snapshot = asked(1, new_volume=True, members=FAR_BEHIND, workload={"volumes": given_up(1)})
    assert (restarts(snapshot), reconciling(snapshot)) == ([], "LearnersCatchingUp")


DOWN = a_pod(0, ready=False, container=not_running(id_="containerd://0"))
"""Its member is still listed."""
COVERED_WITHOUT_0_AND_2 = (
    example.member(0, active=(0, 1)),
    example.member(1, active=(2, 3), standby=(0, 1, 4, 5)),
    example.member(2, active=(4, 5), standby=(2, 3)),
)


@pytest.mark.guarantee(1)
def test_while_a_pod_is_not_well_nobody_else_restarts_whoever_is_asked_for() -> None:
    bare = example.members(3, standbys=False)
    for members in (COVERED_WITHOUT_0_AND_2, bare):
        assert {ordinal for ordinal, _ in restarts(asked(0, 2, workload=with_pod(DOWN), members=members))} <= {0}


@pytest.mark.guarantee(1)
def test_of_two_pods_that_are_not_well_none_that_has_tasks_restarts() -> None:
    both = {"pods": pods(3, p0=DOWN, p2=a_pod(2, ready=False))}
    snapshot = asked(0, 2, workload=both, members=COVERED_WITHOUT_0_AND_2)
    assert (restarts(snapshot), reconciling(snapshot)) == ([], "RolloutPodNotRunning")


def test_a_bad_image_stops_at_its_first_pod_though_that_is_asked_for() -> None:
    canary = {"pods": pods(3, p2=a_pod(2, ready=False), p1=a_pod(1, revision="older"), p0=a_pod(0, revision="older"))}
    nobody_covers_2 = (
        example.member(0, active=(0, 1), standby=(2, 3)),
        example.member(1, active=(2, 3), standby=(0, 1)),
        example.member(2, active=(4, 5)),
    )
    assert restarts(asked(2, workload=canary, members=nobody_covers_2)) == []


def test_two_new_volumes_do_not_wait_for_each_other() -> None:
    snapshot = asked(1, 2, new_volume=True, workload={"volumes": given_up(1, 2)})
    assert restarts(snapshot) == [(2, "RestartCovered")]


def test_a_request_does_not_keep_a_volume_that_is_given_up_from_its_turn() -> None:
    """Nor the other way round: the first is uncovered, or ill, or just the higher one."""
    both = (RestartRequest(pod_uid="pod-2"), RestartRequest(pod_uid="pod-1", new_volume=True))
    covered = asked(app={"restarts": both}, workload={"volumes": given_up(1)})
    ill = asked(app={"restarts": both}, workload={"volumes": given_up(1), **with_pod(a_pod(2, ready=False))})
    assert (restarts(covered), restarts(ill)) == ([(1, "RestartCovered")], [(2, "RestartCovered")])


def test_a_pod_that_is_to_leave_gets_its_new_volume_first_or_it_could_never_leave() -> None:
    for ordinal, desired in ((2, 2), (1, 0)):
        waits = Progress(improved_at=ago(60), counted_at=ago(60))
        held = a_record(reason=Reason.VolumeClaimMissing, granted=3, target=desired, progress=waits)
        snapshot = asked(
            ordinal, new_volume=True, desired=desired, record=held, workload={"volumes": given_up(ordinal)}
        )
        assert restarts(snapshot, ScalingPolicy(allow_zero=True)) == [(ordinal, "RestartCovered")]


def test_a_paused_rollout_does_not_keep_a_pod_whose_volume_goes() -> None:
    policy = ScalingPolicy(rollout=RolloutPolicy.PAUSED)
    old = {**with_pod(a_pod(1, revision="older")), "volumes": given_up(1)}
    assert restarts(asked(1, new_volume=True, workload=old), policy) == [(1, "RestartCovered")]


@pytest.mark.parametrize(("silent", "restarted"), [(1, [(1, "RestartCovered")]), (0, [])])
def test_the_pod_whose_agent_is_silent_restarts_by_its_users_word_and_no_other(
    silent: int, restarted: list[tuple[int, str]]
) -> None:
    members, ordinal = example.members(3), Ordinal(silent)
    seen = example.agents(members, is_ours=False)
    quiet = replace(seen, words={**seen.words, ordinal: (AgentSilent(ordinal, "refused"),)})
    own = tuple(a_pod(number, has_agent=True) for number in range(3))
    found = asked(1, members=members, agents=quiet, workload={"pods": own})
    assert restarts(found, ScalingPolicy(agent=True)) == restarted


@pytest.mark.guarantee(8)
def test_an_agent_that_is_silent_in_a_pod_that_leaves_stops_no_rollout() -> None:
    members, two = example.members(3), Ordinal(2)
    seen = example.agents(members, is_ours=False)
    quiet = replace(seen, words={**seen.words, two: (AgentSilent(two, "refused"),)})
    own = tuple(a_pod(number, has_agent=True) for number in range(3))
    new = {"update_revision": "new"}
    rolling = a_snapshot(desired=2, members=members, agents=quiet, workload={"pods": own}, statefulset=new)
    decision = decide(rolling, ScalingPolicy(agent=True))
    (told,) = [one.reason for one in decision.conditions if one.type == "Reconciling"]
    assert (decision.reason, told) == (Reason.RolloutInProgress, Reason.RestartCovered)
