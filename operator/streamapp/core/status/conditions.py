"""The conditions of the resource, from a decision: each with a status, a reason and details.

Called by `decide` last. Every decision has all conditions, and never both Reconciling and Stalled. A held scale-down is
a healthy state, so that Helm and GitOps tools do not wait for its end.
"""

from dataclasses import dataclass, replace

from streamapp.core.actions.decision import (
    Answer,
    BranchResult,
    CloseBudget,
    Condition,
    Disruptions,
    OpenBudget,
    Plan,
    Verdict,
)
from streamapp.core.actions.rebalance_trigger import with_refused
from streamapp.core.actions.rollout import STOPPED_BY_PODS, Restart
from streamapp.core.evidence import learner_source
from streamapp.core.evidence.evidence import Evidence, OfEvidence
from streamapp.core.evidence.failing_pods import expired_pods, faults, without_room, without_run
from streamapp.core.evidence.learner_source import LearnersUnknown
from streamapp.core.evidence.refusal import Refusal, first_few
from streamapp.core.facts.group import GroupDescription, GroupState, StandbySetting
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import LearnerSource, ScalingPolicy
from streamapp.core.facts.snapshot import Raise, Snapshot
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.facts.workload import Budget
from streamapp.core.gates.candidates import RemovalCandidate, RemovalKind
from streamapp.core.gates.case import GateInput
from streamapp.core.gates.convergence import Convergence
from streamapp.core.gates.evaluate import first_refusal
from streamapp.core.gates.safety_gates import brokers_answered, identity_holds, no_process_id_is_duplicated
from streamapp.core.reasons import Reason
from streamapp.core.status import autoscaling, state_age

DRAIN_OF_NODE = "The drain of node"
"""How the message begins of a change in progress that is the drain of a node."""

COLD_RETURN = "Brokers give a pod that returns tasks at once, also tasks that its volume lacks: these are restored."
"""Of a rollout in a group of the streams protocol, unless each pod has a copy of everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFacts(OfEvidence):
    """The results of a decision that conditions are made from."""

    evidence: Evidence
    outcome: BranchResult
    rollout: Restart | Refusal | None
    convergence: Convergence
    disruptions: Disruptions
    plan: Plan
    """What is written in the end; in a dry run hardly anything."""


def conditions(findings: DecisionFacts) -> tuple[Condition, ...]:
    """Return all conditions, in the order in which a user reads them."""
    return (
        _ready(findings),
        _reconciling(findings),
        _stalled(findings),
        _converged(findings),
        _held(findings),
        _identity(findings),
        _kafka(findings),
        _learners(findings),
        _disruptions(findings),
        autoscaling.condition(findings.snapshot, findings.outcome.hold),
    )


def conditions_after_raise(raised: Raise, unread: str) -> tuple[Condition, ...]:
    """Return the conditions that a raise changes, if nothing but the StreamApp and the StatefulSet could be read.

    Args:
        raised: The raise that was made.
        unread: What could not be read, and why. The conditions that rest on it are unknown.
    """
    detail = f"{raised.from_replicas} to {raised.to_replicas}"
    unknown = f"{detail}. Not read: {unread}"
    return (
        _condition("Ready", Answer.UNKNOWN, Reason.Growing, unknown),
        _condition("Reconciling", Answer.TRUE, Reason.Growing, detail),
        _condition("Stalled", Answer.FALSE, Reason.Growing, detail),
        _condition("Converged", Answer.UNKNOWN, Reason.Growing, unknown),
        _condition("ScaleDownHeld", Answer.FALSE, Reason.Growing, detail),
    )


_SAY_WHAT_USERS_MUST_KNOW = {
    Reason.FirstRestartUncovered,
    Reason.StandbysNotRaisable,
    Reason.TaskNotInTopology,
    Reason.TaskUnassigned,
    Reason.TopologyUnknown,
}
"""What a rollout may wait for that only a user can give: the detail is what it costs, or what others say."""


def _ready(findings: DecisionFacts) -> Condition:
    workload, desired = findings.snapshot.workload, findings.snapshot.app.desired.replicas
    granted = 0 if workload.statefulset is None else workload.statefulset.replicas
    if findings.outcome.verdict is Verdict.STALLED:
        return _condition("Ready", Answer.FALSE, findings.outcome.reason, findings.outcome.detail)
    if workload.lasting_statefulset is None:
        return _condition("Ready", Answer.FALSE, Reason.StatefulSetMissing)
    detail = f"{workload.ready} of {max(granted, desired, workload.ready)} pods are ready"
    if granted < desired or findings.outcome.verdict is Verdict.GROW:
        return _condition("Ready", Answer.FALSE, findings.outcome.reason, detail)
    lacking = _lacking(findings)
    if lacking is not None:
        return _condition("Ready", Answer.FALSE, lacking.reason, "; ".join(filter(None, (detail, lacking.detail))))
    return _condition("Ready", Answer.TRUE, findings.outcome.reason, detail)


def _place_or_readiness(findings: DecisionFacts) -> Refusal:
    """What remaining pods wait for: a place in the cluster, or else that they are ready."""
    lacking = _lacking(findings)
    has_place = lacking is None or lacking.reason not in {Reason.QuotaExceeded, Reason.PodsUnschedulable}
    return _not_ready(findings) if lacking is None or has_place else lacking


def _lacking(findings: DecisionFacts) -> Refusal | None:
    """What keeps the remaining pods from being ready; a container that fails says more than a pod without a place."""
    workload, wanted = findings.snapshot.workload, _wanted(findings)
    room, failure = without_room(workload, wanted), without_run(workload, wanted)
    has_failed = any(one.container and ordinal < wanted for ordinal, one in faults(workload).items())
    if room is not None and not has_failed:
        return room
    if failure is not None:
        return failure
    return _not_ready(findings) if _awaited(findings) else None


def _not_ready(findings: DecisionFacts) -> Refusal:
    awaited = _awaited(findings)
    return Refusal(Reason.PodsNotReady, f"ordinal {first_few(awaited)}" if awaited else "")


def _awaited(findings: DecisionFacts) -> list[Ordinal]:
    """The remaining pods that are not ready; a pod that a hold removes need not become ready."""
    pods = findings.snapshot.workload.pods
    ready = {pod.ordinal for pod in pods if pod.ready and not pod.terminating}
    return [ordinal for ordinal in map(Ordinal, range(_wanted(findings))) if ordinal not in ready]


def _wanted(findings: DecisionFacts) -> int:
    """Count the pods that remain."""
    statefulset, staying = findings.snapshot.workload.statefulset, findings.outcome.staying
    granted = 0 if statefulset is None else statefulset.replicas
    return granted if staying is None else min(granted, staying)


def _reconciling(findings: DecisionFacts) -> Condition:
    verdict, reason = findings.outcome.verdict, findings.outcome.reason
    if findings.snapshot.app.dry_run:
        return _condition("Reconciling", Answer.FALSE, Reason.DryRun)
    if verdict in {Verdict.CREATE, Verdict.GROW, Verdict.CLOSE_STEP, Verdict.STEP}:
        return _condition("Reconciling", Answer.TRUE, reason, findings.outcome.detail)
    is_idle = verdict in {Verdict.STALLED, Verdict.PAUSED} or _stands_still(findings)
    change = None if is_idle else _change_of_pods(findings)
    if change is not None:
        return _condition("Reconciling", Answer.TRUE, change.reason, change.detail)
    return _condition("Reconciling", Answer.FALSE, reason, findings.outcome.detail)


def _change_of_pods(findings: DecisionFacts) -> Refusal | None:
    """What goes on with the pods beside the replicas: a rollout, pods that are not ready yet, the drain of a node."""
    rollout, template = findings.rollout, findings.convergence.waits_for
    if rollout is not None and rollout.reason is not Reason.RolloutPaused:
        is_said = isinstance(rollout, Refusal) and rollout.reason in _SAY_WHAT_USERS_MUST_KNOW
        told = rollout.detail if isinstance(rollout, Refusal) and is_said else _what_waits(findings)
        if isinstance(rollout, Refusal):
            return with_refused(replace(rollout, detail=told), findings.snapshot, findings.policy.timing)
        return Refusal(rollout.reason, told)
    if template is not None and template.reason.row.waits_for_template:
        return template
    if _awaited(findings):
        return _place_or_readiness(findings)
    drain = findings.disruptions
    if drain.drained_node and drain.waits_for is not None:
        return Refusal(drain.reason, f"{DRAIN_OF_NODE} {drain.drained_node} is waiting. {drain.detail}".rstrip())
    return None


def _what_waits(findings: DecisionFacts) -> str:
    evidence, rollout = findings.evidence, findings.rollout
    asked = sorted(evidence.asked_for)
    waits = f"The restart of ordinal {first_few(asked)}" if asked else "The rollout"
    stops = rollout if isinstance(rollout, Refusal) and rollout.reason in STOPPED_BY_PODS else None
    told = f"{waits} is waiting." if stops is None else f"{waits} waits for {stops.detail}."
    return f"{told} {COLD_RETURN}" if _returns_cold(evidence) else told


def _returns_cold(evidence: Evidence) -> bool:
    """Whether brokers can give a pod that returns a task of which its volume has no copy."""
    streams, task_set = learner_source.streams_group(evidence), evidence.snapshot.task_set
    statefulset = evidence.snapshot.workload.statefulset
    if streams is None or statefulset is None or (isinstance(task_set, TaskSet) and not task_set.stateful):
        return False
    standbys = streams.standbys.replicas if isinstance(streams.standbys, StandbySetting) else 0
    return standbys < statefulset.replicas - 1


def _stalled(findings: DecisionFacts) -> Condition:
    outcome = findings.outcome
    stalled = outcome.verdict is Verdict.STALLED or _stands_still(findings)
    return _condition("Stalled", Answer.TRUE if stalled else Answer.FALSE, outcome.reason, outcome.detail)


def _stands_still(findings: DecisionFacts) -> bool:
    return findings.outcome.reason in {Reason.NoProgress, Reason.GaveUp}


def _converged(findings: DecisionFacts) -> Condition:
    missing = findings.convergence.waits_for
    if missing is None:
        return _condition("Converged", Answer.TRUE, Reason.Converged)
    answer = Answer.FALSE if findings.convergence.can_be_told else Answer.UNKNOWN
    return _condition("Converged", answer, missing.reason, missing.detail)


def _held(findings: DecisionFacts) -> Condition:
    outcome = findings.outcome
    held = outcome.verdict is Verdict.HOLD
    return _condition("ScaleDownHeld", Answer.TRUE if held else Answer.FALSE, outcome.reason, outcome.detail)


def _identity(findings: DecisionFacts) -> Condition:
    if not findings.snapshot.app.keeps_state:
        return _condition("ProcessIdentityStable", Answer.TRUE, Reason.NoStateOnDisk)
    expired = [pod.ordinal for pod in expired_pods(findings.snapshot)]
    if expired:
        detail = f"ordinal {first_few(expired)}"
        return _condition("ProcessIdentityStable", Answer.FALSE, Reason.IdleStateExpired, detail)
    if findings.snapshot.app.fault is not None and not findings.snapshot.workload.volumes:
        return _condition("ProcessIdentityStable", Answer.UNKNOWN, Reason.InvalidSpec, findings.snapshot.app.fault)
    latest = _case(findings)
    unreadable = _unreadable(latest)
    if latest is None or unreadable is not None:
        reason = Reason.BrokersUnreachable if unreadable is None else unreadable.reason
        return _condition("ProcessIdentityStable", Answer.UNKNOWN, reason)
    at_rest = _case_at_rest(findings)
    refusal = first_refusal((no_process_id_is_duplicated, identity_holds), at_rest or latest)
    if refusal is None:
        unseen = _condition("ProcessIdentityStable", Answer.UNKNOWN, Reason.GroupRebalancing)
        return unseen if at_rest is None else _state_on_disk(findings.snapshot)
    answer = Answer.UNKNOWN if refusal.reason is Reason.ProcessIdUnrecorded else Answer.FALSE
    return _condition("ProcessIdentityStable", answer, refusal.reason, refusal.detail)


def _state_on_disk(snapshot: Snapshot) -> Condition:
    """Identity is stable; warn if `state.maxIdleTime` is too long."""
    warned = state_age.warning(snapshot)
    if warned is not None:
        return _condition("ProcessIdentityStable", Answer.TRUE, warned.reason, warned.detail)
    return _condition("ProcessIdentityStable", Answer.TRUE, Reason.IdentityHolds, state_age.unchecked(snapshot))


def _kafka(findings: DecisionFacts) -> Condition:
    case = _case(findings)
    refusal = _unreadable(case)
    if case is None:
        return _condition("KafkaReachable", Answer.UNKNOWN, Reason.BrokersUnreachable, "The brokers were not read yet.")
    if refusal is None:
        return _condition("KafkaReachable", Answer.TRUE, Reason.KafkaAnswers)
    reached = refusal.reason is not Reason.BrokersUnreachable
    return _condition("KafkaReachable", Answer.TRUE if reached else Answer.FALSE, refusal.reason, refusal.detail)


def _learners(findings: DecisionFacts) -> Condition:
    case = _case(findings)
    if case is None:
        return _condition(
            "LearnersAvailable", Answer.UNKNOWN, Reason.BrokersUnreachable, "The brokers were not read yet."
        )
    group, task_set = case.group(), case.task_set()
    no_key = _key_that_is_missing(findings)
    if no_key is not None and (isinstance(group, Refusal) or isinstance(task_set, Refusal)):
        return no_key
    if isinstance(group, Refusal):
        return _condition("LearnersAvailable", Answer.UNKNOWN, group.reason, group.detail)
    if isinstance(task_set, Refusal):
        return _condition("LearnersAvailable", Answer.UNKNOWN, task_set.reason, task_set.detail)
    if not task_set.stateful:
        return _condition("LearnersAvailable", Answer.TRUE, Reason.NoStatefulTasks)
    found = _of_source(learner_source.source_in_force(findings.evidence), findings.policy)
    return found if no_key is None or found.status is Answer.TRUE else no_key


def _key_that_is_missing(findings: DecisionFacts) -> Condition | None:
    """Where agents are enabled and the operator can ask none, this is why learners are missing or unknown."""
    quiet = findings.evidence.agents_unavailable if findings.policy.agent else None
    if quiet is None or quiet.reason is not Reason.AgentKeyMissing:
        return None
    return _condition("LearnersAvailable", Answer.FALSE, quiet.reason, quiet.detail)


def _of_source(seen: learner_source.LearnerSourceStatus, policy: ScalingPolicy) -> Condition:
    if seen.is_on_demand:
        return _condition("LearnersAvailable", Answer.TRUE, Reason.LearnersOnDemand)
    if seen.raises_standbys:
        return _condition("LearnersAvailable", Answer.TRUE, Reason.StandbysOnDemand)
    instead = seen.not_on_demand
    if instead is not None and policy.source is LearnerSource.ON_DEMAND:
        return _condition("LearnersAvailable", Answer.FALSE, instead.reason, instead.detail)
    told = "" if instead is None else f"Not on demand: {instead.reason.name}, {instead.detail}".removesuffix(", ")
    match seen.source:
        case LearnersUnknown(why):
            return _condition("LearnersAvailable", Answer.UNKNOWN, Reason.LearnersNotDetected, f"{why} {told}".strip())
        case LearnerSource.STANDBYS:
            return _condition("LearnersAvailable", Answer.TRUE, Reason.StandbysDetected, told)
    return _condition("LearnersAvailable", Answer.FALSE, Reason.NoLearners, told)


def _disruptions(findings: DecisionFacts) -> Condition:
    now = findings.disruptions
    answer = Answer.FALSE if now.allows is Budget.CLOSED else Answer.TRUE
    told = _condition("DisruptionAllowed", answer, now.reason, now.detail)
    return _what_stands(findings, told) if findings.snapshot.app.dry_run else told


def _what_stands(findings: DecisionFacts, told: Condition) -> Condition:
    """What the budget allows after a dry run, which opens none: not what it would allow."""
    now, workload = findings.disruptions, findings.snapshot.workload
    allows, evictable = workload.budget, workload.evictable
    for step in findings.plan:
        if isinstance(step, CloseBudget):
            allows, evictable = Budget.CLOSED, None
        if isinstance(step, OpenBudget):
            allows, evictable = (Budget.OPEN if step.evictable is None else Budget.OPEN_FOR_ONE), step.evictable
    if (allows, evictable) == (now.allows, None if now.evictable is None else now.evictable.ordinal):
        return told
    if allows is Budget.ABSENT:
        stands = "There is no PodDisruptionBudget."
    else:
        which = "" if evictable is None else f": ordinal {evictable}"
        stands = f"The PodDisruptionBudget stays {allows.value}{which}."
    answer = Answer.FALSE if allows is Budget.CLOSED else Answer.TRUE
    return replace(told, status=answer, reason=Reason.DryRun, detail=f"{stands} Withheld: {now.reason.name}.")


def _case(findings: DecisionFacts) -> GateInput | None:
    latest = findings.snapshot.latest
    if latest is None:
        return None
    nobody = RemovalCandidate(RemovalKind.RESTART, ())
    return GateInput(evidence=findings.evidence, candidate=nobody, reading=latest)


def _case_at_rest(findings: DecisionFacts) -> GateInput | None:
    """The newest reading of a group that does not rebalance: while it does, no member shows its process ID."""
    nobody = RemovalCandidate(RemovalKind.RESTART, ())
    moving = {GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE}
    for reading in findings.snapshot.readings:
        if isinstance(reading.group, GroupDescription) and reading.group.state not in moving:
            return GateInput(evidence=findings.evidence, candidate=nobody, reading=reading)
    return None


def _unreadable(case: GateInput | None) -> Refusal | None:
    return None if case is None else brokers_answered(case)


def _condition(kind: str, status: Answer, reason: Reason, detail: str = "") -> Condition:
    return Condition(type=kind, status=status, reason=reason, detail=detail)
