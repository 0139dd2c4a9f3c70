"""The gates: what must be true before any pod goes, one function each, in an order one can read aloud.

Each looks at one reading, refuses with its own reason, and refuses as well where it cannot see what it asks about. No
choice of the user overrides these; the ones that can be overridden are in `coverage_gates`. `judging` runs both, and
the first that refuses names the condition's reason.
"""

from datetime import timedelta

from streamapp.core.evidence.membership import unrecorded
from streamapp.core.evidence.refusal import Refusal, name_some
from streamapp.core.evidence.running_tasks import active_holders
from streamapp.core.facts.group import FollowUp, GroupState
from streamapp.core.facts.hold_record import HoldRecord, RecordUnreadable
from streamapp.core.facts.policy import RolloutPolicy
from streamapp.core.gates.agent_gates import only_watches
from streamapp.core.gates.candidates import Going, holds_nothing, is_drained, is_without_a_past
from streamapp.core.gates.case import Case
from streamapp.core.reasons import Reason


def no_earlier_step_is_open(case: Case) -> Refusal | None:
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
    return Refusal(Reason.PodTerminating, f"ordinal {name_some(surplus)}") if surplus else None


def facts_are_fresh(case: Case) -> Refusal | None:
    """Kubernetes and the group were read just now, and not in a future that a clock was set back from."""
    now, limit = case.snapshot.now, case.policy.timing.fact_age
    ages = {"Kubernetes": now - case.snapshot.workload.read_at, "the group": now - case.reading.ended_at}
    for source, age in ages.items():
        if not timedelta(0) <= age <= limit:
            return Refusal(Reason.FactsStale, f"{source} was read {age.total_seconds():.0f} s ago")
    return None


def brokers_answered(case: Case) -> Refusal | None:
    """The group was described, and its protocol is one we know."""
    group = case.group()
    return group if isinstance(group, Refusal) else None


def group_is_stable(case: Case) -> Refusal | None:
    """The group is Stable, with members that all could be decoded."""
    group = case.group()
    if isinstance(group, Refusal):
        return group
    if group.state in {GroupState.EMPTY, GroupState.DEAD}:
        return Refusal(Reason.GroupEmpty)
    if group.state is not GroupState.STABLE:
        return Refusal(Reason.GroupRebalancing, group.state.value)
    if not group.members:
        return Refusal(Reason.GroupEmpty)
    return None if group.is_decoded else Refusal(Reason.GroupUndecodable, "a member shows no subscription")


def no_follow_up_is_scheduled(case: Case) -> Refusal | None:
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


def every_task_is_active_once(case: Case) -> Refusal | None:
    """No task is nowhere, none is in two places, none is one that the topology does not have.

    Between the two rebalances of a cooperative move nobody holds the task. Where the topology is unknown, only the
    second can be asked.
    """
    group = case.group()
    if isinstance(group, Refusal):
        return group
    holders = active_holders(group)
    twice = sorted(task for task, members in holders.items() if len(members) > 1)
    if twice:
        return Refusal(Reason.TaskAssignedTwice, f"task {name_some(twice)}")
    universe = case.universe()
    if isinstance(universe, Refusal):
        return None
    nowhere = sorted(universe.ids - holders.keys())
    if nowhere:
        return Refusal(Reason.TaskUnassigned, f"task {name_some(nowhere)}")
    unheard_of = sorted(holders.keys() - universe.ids)
    return Refusal(Reason.TaskNotInTopology, f"task {name_some(unheard_of)}") if unheard_of else None


def no_member_is_foreign(case: Case) -> Refusal | None:
    """Every member is in one of our pods."""
    attribution = case.attribution()
    if isinstance(attribution, Refusal):
        return attribution
    if attribution.phantoms:
        return Refusal(Reason.NudgeLeftOver, f"member {attribution.phantoms[0].id}")
    if attribution.foreign:
        stranger = attribution.foreign[0]
        return Refusal(Reason.ForeignMember, f"member {stranger.id} at {stranger.client_host}")
    return None


def no_process_id_is_doubled(case: Case) -> Refusal | None:
    """No two pods are one process for Kafka Streams."""
    attribution = case.attribution()
    if isinstance(attribution, Refusal):
        return attribution
    if not attribution.doubled:
        return None
    return Refusal(Reason.ProcessIdDoubled, f"process ID {min(attribution.doubled)}")


def identity_holds(case: Case) -> Refusal | None:
    """Every pod runs with the process ID that its volume has on record."""
    attribution = case.attribution()
    if isinstance(attribution, Refusal):
        return attribution
    for clash in attribution.contradictions:
        volume = case.snapshot.workload.volume(clash.by_host)
        recorded = None if volume is None else volume.process_id
        detail = f"ordinal {clash.by_host} runs as {clash.member.process_id}, recorded is {recorded}"
        return Refusal(Reason.ProcessIdMismatch, detail)
    missing = sorted(unrecorded(attribution, case.snapshot.workload))
    return Refusal(Reason.ProcessIdUnrecorded, f"ordinal {name_some(missing)}") if missing else None


def statefulset_is_observed(case: Case) -> Refusal | None:
    """The StatefulSet is there, and its controller has seen our last change."""
    statefulset = case.statefulset()
    if isinstance(statefulset, Refusal):
        return statefulset
    if statefulset.observed_generation >= statefulset.generation:
        return None
    return Refusal(
        Reason.StatefulSetUnobserved, f"generation {statefulset.generation}, seen {statefulset.observed_generation}"
    )


def retention_is_in_force(case: Case) -> Refusal | None:
    """The StatefulSet has what the spec says now, its retention policy above all.

    Kubernetes deletes the claims of a removed pod by the policy that stands on the StatefulSet at that moment, so that
    a `Retain` which was not written yet would come too late.
    """
    statefulset = case.statefulset()
    if isinstance(statefulset, Refusal):
        return statefulset
    if case.departure.going is Going.RESTART or statefulset.template_is_written:
        return None
    return Refusal(Reason.TemplateUnwritten, needs_a_join=False)


def no_rollout_is_half_done(case: Case) -> Refusal | None:
    """All pods that stay have one template, and none of them is about to be restarted."""
    statefulset = case.statefulset()
    if isinstance(statefulset, Refusal):
        return statefulset
    if case.departure.going is Going.RESTART:
        return None  # The rollout itself is what is being judged.
    staying = [pod for pod in case.snapshot.workload.pods if pod.ordinal < case.departure.target]
    outdated = [pod.ordinal for pod in staying if pod.revision != statefulset.update_revision]
    goes_on = case.policy.rollout is not RolloutPolicy.PAUSED or len(outdated) < len(staying)
    return Refusal(Reason.RolloutInProgress, f"ordinal {name_some(outdated)}") if outdated and goes_on else None


def only_pods_without_tasks_go_together(case: Case) -> Refusal | None:
    """Two pods at once are never more than none: each of them holds nothing."""
    if case.departure.going in {Going.ONE, Going.RESTART, Going.DRAINED} and len(case.departure.ordinals) == 1:
        return None
    attribution = case.attribution()
    if isinstance(attribution, Refusal):
        return attribution
    for ordinal in case.departure.ordinals:
        workload = case.snapshot.workload
        if holds_nothing(ordinal, attribution) or is_without_a_past(ordinal, attribution, workload):
            continue
        if case.departure.going is Going.DRAINED and is_drained(ordinal, attribution, workload):
            continue
        return Refusal(Reason.GroupChanged, f"ordinal {ordinal} holds tasks again")
    return None


def every_task_runs(case: Case) -> Refusal | None:
    """Every task is known to run, and not only to be assigned: asked where coverage cannot be.

    Agents say it; without them proof takes one more join. Where none can be brought about, being assigned has to do.
    """
    group, universe = case.group(), case.universe()
    if isinstance(group, Refusal):
        return group
    if case.view is None and (not group.can_be_nudged or not case.policy.nudge):
        return None
    if isinstance(universe, Refusal):
        return universe
    running = case.running(frozenset[str]() if case.reading.join is None else case.reading.join.rejoined)
    if isinstance(running, Refusal):
        return running
    idle = sorted(universe.ids - running)
    refusal = Refusal(Reason.TasksNotRunning, f"task {name_some(idle)}", needs_a_join=case.view is None)
    return refusal if idle else None


def every_task_says_it_runs(case: Case) -> Refusal | None:
    """Every task is said to run by a member that lives; what convergence asks, and no removal."""
    group, universe = case.group(), case.universe()
    if isinstance(group, Refusal):
        return group
    if isinstance(universe, Refusal):
        return universe
    running = case.running(group.member_ids - members_of_the_dead(case))
    if isinstance(running, Refusal):
        return running
    idle, by_agents = sorted(universe.ids - running), case.view is not None
    reason = Reason.TasksRestoring if group.can_be_nudged or by_agents else Reason.NudgeImpossible
    return Refusal(reason, f"task {name_some(idle)}", needs_a_join=not by_agents) if idle else None


def members_of_the_dead(case: Case) -> frozenset[str]:
    """Members whose pod does not run: they are listed, and said to run their tasks, until the group drops them."""
    attribution = case.attribution()
    if isinstance(attribution, Refusal):
        return frozenset()
    alive = {pod.ordinal for pod in case.snapshot.workload.pods if pod.is_running}
    return frozenset(
        member.id for ordinal, members in attribution.by_ordinal.items() if ordinal not in alive for member in members
    )
