"""Each gate, broken alone, holds a scale-down that would otherwise go on, and names itself.

All through `decide`: a gate that nobody asks guards nothing.
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from streamapp.core.decide import decide
from streamapp.core.evidence.membership import PROBE_CLIENT_ID
from streamapp.core.facts.group import FollowUp, GroupDescription, GroupState, Member
from streamapp.core.facts.hold_record import RecordUnreadable
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import Assignor, RolloutPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TopologyUnknown
from streamapp.core.facts.workload import Volume
from tests.builders import (
    NOW,
    POLICY,
    a_pod,
    a_reading,
    a_record,
    a_snapshot,
    a_step,
    ago,
    an_unreadable,
    pods,
    seconds,
    steps,
    told,
    volumes,
    without_subscriptions,
)
from tests.support import example


def group(pods_: int = 3) -> list[Member]:
    return list(example.members(pods_))


def changed(ordinal: int, member: Member) -> list[Member]:
    """The example's group with one member replaced."""
    return [member if number == ordinal else one for number, one in enumerate(group())]


def slowly_answered(seconds_ago: int) -> Snapshot:
    """The newest look was asked for so long ago, and has just been answered."""
    snapshot = a_snapshot()
    newest, *others = snapshot.readings
    return replace(snapshot, readings=(replace(newest, asked_at=ago(seconds_ago)), *others))


def in_other_states(*states: GroupState) -> Snapshot:
    hidden = without_subscriptions(group())
    return a_snapshot(readings=tuple(a_reading(hidden, state=state, rebalance=None) for state in states))


STRANGER = replace(example.member(7), client_host="10.9.9.9")
PROBE = replace(example.member(7), client_id=PROBE_CLIENT_ID, client_host="10.9.9.9")
FOLLOWED_UP = example.member(0, active=(0, 1), standby=(4, 5), follow_up=FollowUp.SCHEDULED)
SILENT = example.member(0, active=(0, 1), standby=(4, 5), follow_up=FollowUp.UNKNOWN)
WITHOUT_0_1 = example.member(0, active=(0,), standby=(4, 5))
TWICE = example.member(0, active=(0, 1, 2), standby=(4, 5))
TOO_MANY = example.member(0, active=(0, 1, 6), standby=(4, 5))
MOVED = replace(example.member(1, active=(2, 3), standby=(0, 1)), client_host=example.ip(0), id="moved")


def test_without_a_broken_gate_the_top_ordinal_goes() -> None:
    decision = decide(a_snapshot(), POLICY)
    assert (told(decision), steps(decision)) == (("Step", "Covered"), ("CloseBudget", "GrantReplicas", "RecordState"))


@pytest.mark.parametrize(
    ("snapshot", "reason", "detail"),
    [
        pytest.param(
            a_snapshot(statefulset={"record": RecordUnreadable("no JSON")}),
            "HoldRecordUnreadable",
            "no JSON",
            id="the hold record cannot be read",
        ),
        pytest.param(
            a_snapshot(workload={"pods": pods(4)}), "PodTerminating", "ordinal 3", id="a pod above is still there"
        ),
        pytest.param(
            a_snapshot(statefulset={"template_is_written": False}),
            "TemplateUnwritten",
            "",
            marks=pytest.mark.guarantee(4),
            id="the retention policy of the spec is not in force yet",
        ),
        pytest.param(
            a_snapshot(statefulset={"drift": "spec.persistentVolumeClaimRetentionPolicy.whenScaled: Delete"}),
            "StatefulSetChanged",
            "spec.persistentVolumeClaimRetentionPolicy.whenScaled: Delete",
            marks=pytest.mark.guarantee(4),
            id="another writer changed the retention policy of the StatefulSet",
        ),
        pytest.param(
            a_snapshot(statefulset={"first_ordinal": 1}),
            "OrdinalsShifted",
            "first ordinal 1",
            id="another writer moved the ordinals of the StatefulSet",
        ),
        pytest.param(
            a_snapshot(workload={"read_at": ago(11)}),
            "FactsStale",
            "Kubernetes was read 11 s ago",
            id="Kubernetes was read too long ago",
        ),
        pytest.param(
            a_snapshot(now=NOW + seconds(10), workload={"read_at": NOW + seconds(10)}),
            "FactsStale",
            "the group was read 11 s ago",
            id="the group was read too long ago",
        ),
        pytest.param(
            slowly_answered(11),
            "FactsStale",
            "the group was read 11 s ago",
            marks=pytest.mark.guarantee(2),
            id="the group was asked for too long ago",
        ),
        pytest.param(a_snapshot(readings=()), "BrokersUnreachable", "the group has not been read yet", id="never read"),
        pytest.param(
            a_snapshot(readings=(an_unreadable(),)), "BrokersUnreachable", "timed out", id="the brokers are gone"
        ),
        pytest.param(in_other_states(GroupState.EMPTY), "GroupEmpty", "", id="the group is Empty"),
        pytest.param(in_other_states(GroupState.DEAD), "GroupEmpty", "", id="the group is Dead"),
        pytest.param(a_snapshot(members=()), "GroupEmpty", "", id="the group is Stable, but nobody is in it"),
        pytest.param(
            in_other_states(GroupState.PREPARING_REBALANCE),
            "GroupRebalancing",
            "PreparingRebalance",
            id="the group prepares a rebalance",
        ),
        pytest.param(
            in_other_states(GroupState.COMPLETING_REBALANCE),
            "GroupRebalancing",
            "CompletingRebalance",
            id="the group completes a rebalance",
        ),
        pytest.param(
            a_snapshot(members=changed(0, replace(group()[0], subscription=None))),
            "GroupUndecodable",
            "a member shows no subscription",
            id="a member is not decoded",
        ),
        pytest.param(
            a_snapshot(members=changed(0, FOLLOWED_UP)),
            "FollowUpScheduled",
            "by member wordcount-0-consumer",
            id="a follow-up rebalance is scheduled",
        ),
        pytest.param(
            a_snapshot(members=changed(0, SILENT)),
            "FollowUpScheduled",
            "by member wordcount-0-consumer",
            id="whether one is scheduled is unknown",
        ),
        pytest.param(a_snapshot(members=changed(0, WITHOUT_0_1)), "TaskUnassigned", "task 0_1", id="a task is nowhere"),
        pytest.param(
            a_snapshot(members=changed(0, TWICE)), "TaskAssignedTwice", "task 0_2", id="a task is in two places"
        ),
        pytest.param(
            a_snapshot(members=changed(0, TOO_MANY)), "TaskNotInTopology", "task 0_6", id="an unheard-of task runs"
        ),
        pytest.param(
            a_snapshot(members=[*group(), STRANGER]),
            "ForeignMember",
            "member wordcount-7-consumer at 10.9.9.9",
            id="a member is nobody's",
        ),
        pytest.param(
            a_snapshot(members=[*group(), PROBE]),
            "ProbeMemberLeft",
            "member wordcount-7-consumer",
            id="a probe member of ours is left",
        ),
        pytest.param(
            a_snapshot(
                workload={"volumes": (*volumes(), Volume(ordinal=Ordinal(9), process_id=example.process_id(0)))}
            ),
            "ProcessIdDuplicated",
            f"process ID {example.process_id(0)}",
            id="two volumes have one process ID",
        ),
        pytest.param(
            a_snapshot(members=[group()[0], MOVED, group()[2]]),
            "ProcessIdMismatch",
            f"ordinal 0 runs as {example.process_id(1)}, recorded is {example.process_id(0)}",
            id="a pod runs as another ordinal's process",
        ),
        pytest.param(
            a_snapshot(
                workload={"volumes": (*volumes()[:2], Volume(ordinal=Ordinal(2), process_id=example.process_id(8)))}
            ),
            "ProcessIdMismatch",
            f"ordinal 2 runs as {example.process_id(2)}, recorded is {example.process_id(8)}",
            id="a pod runs as a process that no volume has",
        ),
        pytest.param(
            a_snapshot(workload={"volumes": (*volumes()[:2], Volume(ordinal=Ordinal(2), process_id=None))}),
            "ProcessIdUnrecorded",
            "ordinal 2",
            id="a process ID is not recorded yet",
        ),
        pytest.param(
            a_snapshot(workload={"volumes": volumes()[:2]}),
            "VolumeClaimMissing",
            "ordinal 2",
            id="the volume of a leaving pod is not in view",
        ),
        pytest.param(
            a_snapshot(workload={"volumes": ()}),
            "VolumeClaimMissing",
            "ordinal 0, 1, 2",
            id="no volume is in view",
        ),
        pytest.param(
            a_snapshot(statefulset={"deleting": True}),
            "StatefulSetMissing",
            "",
            id="the StatefulSet is being deleted",
        ),
        pytest.param(
            a_snapshot(statefulset={"generation": 2}),
            "StatefulSetUnobserved",
            "generation 2, seen 1",
            id="the StatefulSet controller lags behind",
        ),
        pytest.param(
            a_snapshot(workload={"pods": pods(3, p0=a_pod(0, revision="old"))}),
            "RolloutInProgress",
            "ordinal 0",
            id="a rollout is half done",
        ),
    ],
)
@pytest.mark.guarantee(2)
@pytest.mark.guarantee(5)
def test_a_broken_gate_holds_and_names_itself(snapshot: Snapshot, reason: str, detail: str) -> None:
    decision = decide(snapshot, POLICY)
    assert (told(decision), decision.detail) == (("Hold", reason), detail)


def test_an_open_step_comes_first() -> None:
    snapshot = a_snapshot(record=a_record(step=a_step()), workload={"pods": pods(4)})
    decision = decide(snapshot, POLICY)
    assert (told(decision), decision.detail) == (("CloseStep", "PodTerminating"), "ordinal 3")


@pytest.mark.guarantee(5)
def test_a_process_id_seen_on_two_pods_is_doubled_even_where_no_volume_says_so() -> None:
    twin = replace(example.member(0), id="twin", client_host=example.ip(2))
    snapshot = a_snapshot(members=[*group(), twin], workload={"volumes": ()}, app={"keeps_state": False})
    decision = decide(snapshot, POLICY)
    assert (told(decision), decision.detail) == (
        ("Hold", "ProcessIdDuplicated"),
        f"process ID {example.process_id(0)}",
    )


@pytest.mark.parametrize("rollout", [RolloutPolicy.WHEN_CAUGHT_UP, RolloutPolicy.IMMEDIATE, RolloutPolicy.PAUSED])
def test_two_templates_at_once_hold_even_where_the_rollout_is_paused(rollout: RolloutPolicy) -> None:
    snapshot = a_snapshot(workload={"pods": pods(3, p1=a_pod(1, revision="old"))})
    decision = decide(snapshot, ScalingPolicy(rollout=rollout))
    assert told(decision) == ("Hold", "RolloutInProgress")


def test_a_paused_rollout_that_has_not_begun_does_not_hold() -> None:
    snapshot = a_snapshot(statefulset={"update_revision": "newer"})
    assert told(decide(snapshot, ScalingPolicy(rollout=RolloutPolicy.PAUSED))) == ("Step", "Covered")


def test_a_rollout_that_only_leaving_pods_lack_does_not_hold() -> None:
    snapshot = a_snapshot(workload={"pods": pods(3, p2=a_pod(2, revision="old"))})
    assert told(decide(snapshot, POLICY)) == ("Step", "Covered")


@pytest.mark.parametrize(
    ("snapshot", "policy", "reason"),
    [
        pytest.param(
            a_snapshot(task_set=TopologyUnknown("two sub-topologies have stores")),
            POLICY,
            "TopologyUnknown",
            id="the topology is unknown",
        ),
        pytest.param(
            a_snapshot(), ScalingPolicy(assignor=Assignor.UNKNOWN), "AssignorUnknown", id="the assignor is unknown"
        ),
        pytest.param(
            a_snapshot(readings=(a_reading(group(), rebalance=None),)),
            POLICY,
            "PositionsUnknown",
            id="the join was not watched",
        ),
        pytest.param(
            a_snapshot(readings=(a_reading(group(), rebalance=None),)),
            ScalingPolicy(trigger_rebalance=False),
            "RebalanceTriggerDisabled",
            id="the join was not watched and nothing may bring one about",
        ),
    ],
)
def test_what_is_needed_to_know_coverage_holds_where_it_is_missing(
    snapshot: Snapshot, policy: ScalingPolicy, reason: str
) -> None:
    assert told(decide(snapshot, policy)) == ("Hold", reason)


def test_a_gate_that_only_the_earlier_reading_breaks_holds_too() -> None:
    later, earlier = example.two_readings(tuple(group()))
    broken = replace(earlier, group=GroupDescription(GroupState.STABLE, tuple(changed(0, FOLLOWED_UP))))
    decision = decide(a_snapshot(readings=(later, broken)), POLICY)
    assert told(decision) == ("Hold", "ReadingsPending")
    assert decision.detail.startswith("The one before said FollowUpScheduled: ")


def test_an_assignor_that_is_unknown_does_not_matter_without_state() -> None:
    stateless = a_snapshot(members=example.stateless_members(), task_set=example.stateless_task_set())
    decision = decide(stateless, ScalingPolicy(assignor=Assignor.UNKNOWN))
    assert told(decision) == ("Step", "Covered")


def test_every_age_is_measured_against_the_clock_of_the_snapshot() -> None:
    later = NOW + timedelta(minutes=3)
    assert told(decide(a_snapshot(now=later), POLICY)) == ("Hold", "FactsStale")


def test_the_order_in_which_tasks_are_named_is_that_of_their_numbers() -> None:
    nobody = [example.member(number, standby=()) for number in range(3)]
    decision = decide(a_snapshot(members=nobody), POLICY)
    assert decision.detail == "task 0_0, 0_1, 0_2, 0_3, 0_4 and 1 more"
