"""The gates: what must be true before any pod goes, one function each, in an order one can read aloud.

Each looks at one reading, refuses with reasons of its own, and refuses too if it cannot see what it asks about. No
choice of the user overrides these; `coverage_gates` and `drain_gates` have those that a user can override. `evaluate`
asks all of them, and the first that refuses names the reason.
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta

from streamapp.core.evidence.agent_views import said_until
from streamapp.core.evidence.coverage import has_run_since
from streamapp.core.evidence.eviction import evictable, of_former_runs, perhaps_of_former_runs
from streamapp.core.evidence.failing_pods import first_fault
from streamapp.core.evidence.membership import (
    MemberPlacement,
    members_of_running_pods,
    pods_without_volume,
    unrecorded,
)
from streamapp.core.evidence.refusal import Refusal, first_few
from streamapp.core.facts.group import FollowUp, GroupDescription, GroupState
from streamapp.core.facts.hold_record import HoldRecord, RecordUnreadable
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.policy import RolloutPolicy
from streamapp.core.gates.agent_gates import only_watches
from streamapp.core.gates.candidates import RemovalKind, holds_nothing, is_drained, is_without_a_past
from streamapp.core.gates.case import GateInput
from streamapp.core.reasons import Reason


def ordinals_begin_at_zero(case: GateInput) -> Refusal | None:
    """The StatefulSet counts its pods from 0: else its highest ordinal is another than that of the replicas."""
    statefulset = case.statefulset()
    if isinstance(statefulset, Refusal):
        return statefulset
    if statefulset.first_ordinal == 0:
        return None
    return Refusal(Reason.OrdinalsShifted, f"first ordinal {statefulset.first_ordinal}", needs_rebalance=False)


def no_earlier_step_is_open(case: GateInput) -> Refusal | None:
    """The last pods that were taken away are gone, with everything that belonged to them."""
    statefulset = case.statefulset()
    if isinstance(statefulset, Refusal):
        return statefulset
    match statefulset.record:
        case RecordUnreadable(detail):
            return Refusal(Reason.HoldRecordUnreadable, detail)
        case HoldRecord(step=step) if step is not None:
            return Refusal(Reason.StepOpen, f"{step.from_replicas} to {step.to_replicas}")
    surplus = [pod.ordinal for pod in case.snapshot.workload.pods if pod.ordinal >= statefulset.replicas]
    return Refusal(Reason.PodTerminating, f"ordinal {first_few(surplus)}") if surplus else None


def facts_are_fresh(case: GateInput) -> Refusal | None:
    """Kubernetes and the group were read just now, and not in a future that a clock was set back from.

    An answer that was long on its way is as old as the question: a coordinator may have looked at once.
    """
    now, limit, reading = case.snapshot.now, case.policy.timing.fact_age, case.reading
    ages = {"Kubernetes": now - case.snapshot.workload.read_at, "the group": now - reading.as_of}
    for source, age in ages.items():
        if not timedelta(0) <= age <= limit:
            return Refusal(Reason.FactsStale, f"{source} was read {age.total_seconds():.0f} s ago")
    return None


def facts_are_fresh_or_at_rest(case: GateInput) -> Refusal | None:
    """The same, unless the last decision found that all is done and did nothing: at rest the group is rarely read.

    What was done since then can have changed the group: an older look does not show that.
    """
    return None if case.snapshot.was_at_rest else facts_are_fresh(case)


def brokers_answered(case: GateInput) -> Refusal | None:
    """The group was described, and its protocol is one we know."""
    group = case.group()
    return group if isinstance(group, Refusal) else None


def group_is_stable(case: GateInput) -> Refusal | None:
    """The group is Stable, with members that all could be decoded."""
    group = case.group()
    if isinstance(group, Refusal):
        return group
    if group.state in {GroupState.EMPTY, GroupState.DEAD}:
        return Refusal(Reason.GroupEmpty, first_fault(case.snapshot.workload))
    if group.state is not GroupState.STABLE:
        return Refusal(Reason.GroupRebalancing, group.state.value)
    if not group.members:
        return Refusal(Reason.GroupEmpty, first_fault(case.snapshot.workload))
    if group.unsettled:
        return Refusal(Reason.GroupRebalancing, group.unsettled)
    return None if group.is_decoded else Refusal(Reason.GroupUndecodable, "a member shows no subscription")


def no_follow_up_is_scheduled(case: GateInput) -> Refusal | None:
    """Every member was told "never" as the time of its next rebalance, or the leader only watches by it."""
    group = case.group()
    if isinstance(group, Refusal):
        return group
    if only_watches(case):
        return None
    for member in group.members:
        if member.assignment is None or member.assignment.follow_up is not FollowUp.NONE:
            return Refusal(Reason.FollowUpScheduled, f"by member {member.id}")
    return None


def every_task_is_active_once(case: GateInput) -> Refusal | None:
    """No task is nowhere, none is in two places, none is one that the topology does not have.

    Between the two rebalances of a cooperative move nobody holds the task. Where the topology is unknown, only the
    second can be asked.
    """
    holders = case.active_holders()
    if isinstance(holders, Refusal):
        return holders
    group = case.group()
    if isinstance(group, Refusal):
        return group
    if group.active_assignments != len(holders):
        twice = sorted(task for task, members in holders.items() if len(members) > 1)
        return Refusal(Reason.TaskAssignedTwice, f"task {first_few(twice)}")
    task_set = case.task_set()
    if isinstance(task_set, Refusal):
        return None
    nowhere = sorted(task_set.ids.difference(holders))
    if nowhere:
        return Refusal(Reason.TaskUnassigned, f"task {first_few(nowhere)}")
    unheard_of = sorted(holders.keys() - task_set.ids) if len(holders) > len(task_set.ids) else ()
    return Refusal(Reason.TaskNotInTopology, f"task {first_few(unheard_of)}") if unheard_of else None


def no_member_is_foreign(case: GateInput) -> Refusal | None:
    """Every member is in one of our pods."""
    placement = case.placement()
    if isinstance(placement, Refusal):
        return placement
    if placement.probe_members:
        return Refusal(Reason.ProbeMemberLeft, f"member {placement.probe_members[0].id}")
    if placement.foreign:
        stranger = placement.foreign[0]
        return Refusal(Reason.ForeignMember, f"member {stranger.id} at {stranger.client_host}")
    return None


def no_process_id_is_duplicated(case: GateInput) -> Refusal | None:
    """No two pods are one process for Kafka Streams."""
    placement = case.placement()
    if isinstance(placement, Refusal):
        return placement
    if not placement.duplicated:
        return None
    return Refusal(Reason.ProcessIdDuplicated, f"process ID {min(placement.duplicated)}")


def identity_holds(case: GateInput) -> Refusal | None:
    """Every pod has its volume, and runs with the process ID that the volume has on record."""
    placement = case.placement()
    if isinstance(placement, Refusal):
        return placement
    for clash in placement.contradictions:
        volume = case.snapshot.workload.volume(clash.by_host)
        recorded = None if volume is None else volume.process_id
        detail = f"ordinal {clash.by_host} runs as {clash.member.process_id}, recorded is {recorded}"
        return Refusal(Reason.ProcessIdMismatch, detail)
    without_volume = sorted({*pods_without_volume(case.snapshot)} - _known_to_get_new_volumes(case))
    if without_volume:
        return Refusal(Reason.VolumeClaimMissing, f"ordinal {first_few(without_volume)}", needs_rebalance=False)
    missing = sorted(unrecorded(placement, case.snapshot.workload))
    return Refusal(Reason.ProcessIdUnrecorded, f"ordinal {first_few(missing)}") if missing else None


def no_volume_goes_with_its_pod(case: GateInput) -> Refusal | None:
    """The claim of a pod that goes is in view and is not being deleted, or its user gives it up.

    The pod object is all that keeps a claim that is being deleted, and with it the state on the volume.
    """
    lost = sorted({*pods_without_volume(case.snapshot)} & {*case.candidate.ordinals} - case.evidence.given_up)
    return Refusal(Reason.VolumeClaimMissing, f"ordinal {first_few(lost)}", needs_rebalance=False) if lost else None


def _known_to_get_new_volumes(case: GateInput) -> frozenset[Ordinal]:
    """The pods whose volumes users give up, where a restart is judged that was asked for: else two wait for each other.

    The state of the others is there until their pods go, and each of them is judged when its turn has come.
    """
    evidence, candidate = case.evidence, case.candidate
    is_asked_for = candidate.kind is RemovalKind.RESTART and evidence.asked_for.keys() >= {*candidate.ordinals}
    return evidence.given_up if is_asked_for else frozenset()


def statefulset_is_observed(case: GateInput) -> Refusal | None:
    """The StatefulSet is there, and its controller has seen our last change."""
    statefulset = case.statefulset()
    if isinstance(statefulset, Refusal):
        return statefulset
    if statefulset.observed_generation >= statefulset.generation:
        return None
    return Refusal(
        Reason.StatefulSetUnobserved, f"generation {statefulset.generation}, seen {statefulset.observed_generation}"
    )


def retention_is_in_force(case: GateInput) -> Refusal | None:
    """The StatefulSet has what the spec says now, its retention policy above all.

    Kubernetes deletes the claims of a removed pod by the policy that stands on the StatefulSet at that moment, so that
    a `Retain` which was not written yet would come too late. What another writer changed is asked about for restarts,
    too: with another update strategy, Kubernetes itself restarts pods.
    """
    statefulset = case.statefulset()
    if isinstance(statefulset, Refusal):
        return statefulset
    if statefulset.drift:
        return Refusal(Reason.StatefulSetChanged, statefulset.drift, needs_rebalance=False)
    if case.candidate.kind is RemovalKind.RESTART or statefulset.template_is_written:
        return None
    return Refusal(Reason.TemplateUnwritten, needs_rebalance=False)


def no_rollout_is_half_done(case: GateInput) -> Refusal | None:
    """All pods that stay have one template, and none of them is about to be restarted.

    Also before the first restart, when every pod still has the older template: the pods that leave cover the restarts
    of the others, the assignor and the acceptable lag of the StreamApp may belong to the newer template, and fewer pods
    of the older one may not bear the load. Not asked where the rollout waits for the pods that would go: it and the
    scale-down would wait for each other.
    """
    statefulset = case.statefulset()
    if isinstance(statefulset, Refusal):
        return statefulset
    if case.candidate.kind is RemovalKind.RESTART or case.candidate.is_before_rollout:
        return None  # The rollout itself is what is being judged, or cannot go on.
    staying = [pod for pod in case.snapshot.workload.pods if pod.ordinal < case.candidate.target]
    outdated = [pod.ordinal for pod in staying if pod.revision != statefulset.update_revision]
    goes_on = case.policy.rollout is not RolloutPolicy.PAUSED or len(outdated) < len(staying)
    return Refusal(Reason.RolloutInProgress, f"ordinal {first_few(outdated)}") if outdated and goes_on else None


def only_pods_without_tasks_go_together(case: GateInput) -> Refusal | None:
    """Two pods at once are never more than none: each of them holds nothing. Of any one, only one goes.

    Where all pods stop for a migration, no pod is left that tasks could move to.
    """
    if case.candidate.kind in {RemovalKind.ANY_ONE, RemovalKind.ALL}:
        return None
    if (
        case.candidate.kind in {RemovalKind.ONE, RemovalKind.RESTART, RemovalKind.DRAINED}
        and len(case.candidate.ordinals) == 1
    ):
        return None
    placement = case.placement()
    if isinstance(placement, Refusal):
        return placement
    for ordinal in case.candidate.ordinals:
        if holds_nothing(ordinal, placement) or is_without_a_past(ordinal, placement, case.snapshot):
            continue
        if case.candidate.kind is RemovalKind.DRAINED and is_drained(ordinal, placement, case.snapshot.workload):
            continue
        return Refusal(Reason.GroupChanged, f"ordinal {ordinal} holds tasks again")
    return None


def the_other_pods_are_ready(case: GateInput) -> Refusal | None:
    """Every pod that stays runs and is ready; one that is not ready itself can restart beside another such pod."""
    statefulset, ready = case.statefulset(), case.snapshot.workload.ready_ordinals
    if isinstance(statefulset, Refusal):
        return statefulset
    if case.candidate.kind is RemovalKind.RESTART and ready.isdisjoint(case.candidate.ordinals):
        return None
    staying = [number for number in range(statefulset.replicas) if case.candidate.stays(Ordinal(number))]
    missing = [number for number in staying if number not in ready]
    return Refusal(Reason.PodsNotReady, f"ordinal {first_few(missing)}", needs_rebalance=False) if missing else None


def every_task_runs(case: GateInput) -> Refusal | None:
    """Every task is known to run, and not only to be assigned: asked where coverage cannot be.

    Agents say it; without them proof takes one more join. Where none can be brought about, being assigned has to do. No
    task is assigned to a member that is known to be dead: a reading that shows one is of before it was put out.
    """
    group, task_set = case.group(), case.task_set()
    if isinstance(group, Refusal):
        return group
    has_to_do = case.view is None and (not group.can_be_rebalanced or not case.policy.trigger_rebalance)
    of_the_dead = _no_task_is_with_the_dead(case, group) if has_to_do or case.view is not None else None
    if has_to_do or of_the_dead is not None:
        return of_the_dead
    if isinstance(task_set, Refusal):
        return task_set
    running = case.running(_believed(case))
    if isinstance(running, Refusal):
        return running
    idle = sorted(task_set.ids - running)
    refusal = Refusal(Reason.TasksNotRunning, f"task {first_few(idle)}", needs_rebalance=case.view is None)
    return refusal if idle else None


def _no_task_is_with_the_dead(case: GateInput, group: GroupDescription) -> Refusal | None:
    """A pod that runs again can have the member of its former container, which keeps its tasks until it is dropped.

    The candidates themselves may be dead: they take no other task away.
    """
    placement = case.placement()
    if isinstance(placement, Refusal):
        return placement
    of_candidates = {one.id for ordinal in case.candidate.ordinals for one in placement.members(ordinal)}
    dead = _known_to_be_dead(case, group, placement) - of_candidates
    idle = sorted(_held_by(dead, group))
    return Refusal(Reason.TasksNotRunning, f"task {first_few(idle)}", needs_rebalance=False) if idle else None


def _held_by(members: Collection[str], group: GroupDescription) -> frozenset[TaskId]:
    """The tasks that are assigned to these members as active."""
    held = [one.assignment.active for one in group.members if one.id in members and one.assignment is not None]
    return frozenset().union(*held)


def _known_to_be_dead(case: GateInput, group: GroupDescription, placement: MemberPlacement) -> frozenset[str]:
    """The members of pods that do not run, and those that were seen in a container a margin before it ended.

    Not those that were merely seen in another container than the pod's: of a kubelet that was late they may be of this.
    """
    found = evictable(
        case.snapshot.observed,
        case.snapshot.container_ends,
        group,
        case.policy.timing.eviction_margin,
        for_good=lambda _: True,  # a static member is as dead as others, though nobody may put it out
        staying_pods=case.snapshot.workload.staying_pods,
    )
    ended = frozenset(key.id for one in found for key in one.members)
    return ended | _placed_where_none_runs(case, placement)


def _placed_where_none_runs(case: GateInput, placement: MemberPlacement) -> frozenset[str]:
    placed = frozenset(member.id for members in placement.by_ordinal.values() for member in members)
    return placed - members_of_running_pods(placement, case.snapshot.workload).keys()


def _believed(case: GateInput) -> frozenset[str]:
    """The members that took part in the watched rebalance, without those of another run than the pod's present one.

    A member stays listed, as it was, when its container has ended: a static one until the next container has joined.
    """
    rebalance, placement = case.reading.rebalance, case.placement()
    if rebalance is None or isinstance(placement, Refusal):
        return frozenset()
    same = {pod.ordinal for pod in case.snapshot.workload.pods if has_run_since(pod, rebalance)}
    others = {one.id for ordinal, found in placement.by_ordinal.items() if ordinal not in same for one in found}
    return rebalance.rejoined_members - others


def every_task_says_it_runs(case: GateInput) -> Refusal | None:
    """Every task is said to run by a member that lives; what convergence asks, and no removal."""
    group, placement, task_set = case.group(), case.placement(), case.task_set()
    if isinstance(group, Refusal):
        return group
    if isinstance(placement, Refusal):
        return placement
    if isinstance(task_set, Refusal):
        return task_set
    if case.view is None and group.streams is not None:
        return not_reported(case)
    dead, by_agents = _known_to_be_dead(case, group, placement), case.view is not None
    running = case.running(group.member_ids - members_perhaps_dead(case) - dead)
    if isinstance(running, Refusal):
        return running
    idle = sorted((task_set.ids - running) | (task_set.ids & _held_by(dead, group)))
    reason = Reason.TasksRestoring if group.can_be_rebalanced or by_agents else Reason.RebalanceTriggerImpossible
    return Refusal(reason, f"task {first_few(idle)}", needs_rebalance=not by_agents) if idle else None


def every_task_ran_at_the_look(case: GateInput) -> Refusal | None:
    """Agents saw every task run before the group was read, too; not asked at rest.

    What they say after it can be of a later rebalance, whose end the look does not show.
    """
    group, task_set = case.group(), case.task_set()
    if case.view is None or case.snapshot.was_at_rest or isinstance(group, Refusal) or isinstance(task_set, Refusal):
        return None
    said = said_until(case.snapshot, case.reading.as_of)
    running = replace(case, view=replace(case.view, reports=said)).running(frozenset())
    idle = sorted(task_set.ids - (frozenset() if isinstance(running, Refusal) else running))
    return Refusal(Reason.TasksRestoring, f"task {first_few(idle)}", needs_rebalance=False) if idle else None


def not_reported(case: GateInput) -> Refusal:
    """Why nothing is known of running tasks and positions in a group of the streams protocol: only agents report it."""
    quiet = case.evidence.agents_unavailable if case.policy.agent else None
    if quiet is None:
        return Refusal(Reason.PositionsNotReported, needs_rebalance=False)
    return Refusal(quiet.reason, quiet.detail, needs_rebalance=False)


def members_perhaps_dead(case: GateInput) -> frozenset[str]:
    """Members whose container has ended, or can have: they are listed, and said to run, until the group drops them.

    Their pod does not run, or runs another container, or has begun another one of late and nothing tells whose they
    are. Whoever has joined since the pod runs is of the present one, so one join that is watched ends the doubt.
    """
    group, placement = case.group(), case.placement()
    if isinstance(group, Refusal) or isinstance(placement, Refusal):
        return frozenset()
    workload, snapshot = case.snapshot.workload, case.snapshot
    record = case.evidence.hold_record
    step = None if record is None else record.step
    captures = (*snapshot.observed, *(() if step is None else step.observed))
    former = of_former_runs(group, workload, placement, captures)
    doubted = perhaps_of_former_runs(group, workload, placement, snapshot.container_ends)
    return _placed_where_none_runs(case, placement) | ((former | doubted) - _believed(case))
