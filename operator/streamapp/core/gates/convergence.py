"""How far the application is from the state in which nothing moves any more; what the resource says about it.

Reports only: no gate asks here. Called by `decide` for every decision, whatever its verdict.
"""

from dataclasses import dataclass, replace

from streamapp.core.evidence.agent_views import UNAVAILABLE, AgentView
from streamapp.core.evidence.coverage import CopyMap, TaskWait
from streamapp.core.evidence.eta import NOT_KNOWN, Estimate, LagSample, when_caught_up
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.failing_pods import first_fault
from streamapp.core.evidence.learner_source import is_on_demand
from streamapp.core.evidence.refusal import Refusal, first_few
from streamapp.core.facts.group import GroupDescription, GroupReading
from streamapp.core.facts.lag import EndOffsets
from streamapp.core.facts.policy import RolloutPolicy
from streamapp.core.facts.snapshot import Episode, Snapshot
from streamapp.core.facts.workload import StatefulSet
from streamapp.core.gates.candidates import RemovalCandidate, RemovalKind
from streamapp.core.gates.case import GateInput, input_now
from streamapp.core.gates.chains import CONVERGED_GATES, CONVERGENCE_GATES
from streamapp.core.gates.coverage_gates import refusal_of
from streamapp.core.gates.drain_gates import settling
from streamapp.core.gates.evaluate import first_refusal
from streamapp.core.gates.safety_gates import members_perhaps_dead, statefulset_is_observed
from streamapp.core.reasons import Reason

SHOWN = 3
"""Tasks named as the slowest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many there are, as far as the latest reading shows."""

    tasks: int
    running: int
    learners: int
    caught_up: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Convergence:
    """One look at it."""

    waits_for: Refusal | None
    """The first thing that is missing; None: converged."""
    counts: Counts | None
    """None where the topology or the positions are unknown."""
    remaining_lag: int | None
    """Records that copies and restoring tasks are behind their limit; None where one of them is unknown."""
    progress: float | None
    """From 0 to 1: the best so far since it was last converged; None before anything was measured."""
    eta: Estimate
    slowest: tuple[TaskWait, ...]
    episode: Episode | None
    """To be handed in with the next snapshot."""

    @property
    def is_converged(self) -> bool:
        """Tell whether nothing is missing."""
        return self.waits_for is None

    @property
    def is_settled(self) -> bool:
        """Tell whether the group has converged: at most a template waits for pods that have an older one."""
        return self.waits_for is None or self.waits_for.reason.row.waits_for_template

    @property
    def can_be_told(self) -> bool:
        """False where "not converged" only means that nobody knows."""
        reason = None if self.waits_for is None else self.waits_for.reason
        return reason is None or not (reason.row.hides_convergence or reason in UNAVAILABLE)


def measure(evidence: Evidence) -> Convergence:
    """Look at the latest reading, and for the speed at the one before.

    Where no join was watched, as after a restart of the operator, it goes by what the group itself says: nothing is
    scheduled and every task runs. How far copies are is then left out; no rebalance is caused only to know it. One is
    caused where a container began of late, as the member listed for it can be of the container before.
    """
    snapshot, policy = evidence.snapshot, evidence.policy
    latest = snapshot.latest
    if latest is None:
        return _nothing_to_see(snapshot, Refusal(Reason.BrokersUnreachable, "the group has not been read yet"))
    case = _case(evidence, latest)
    copies, limit = _measured(case).copies(), policy.acceptable_recovery_lag
    if isinstance(copies, Refusal):
        ends_missing = copies if copies.reason is Reason.EndOffsetsUnread else None
        return _nothing_to_see(snapshot, first_refusal(CONVERGENCE_GATES, case) or ends_missing or _in_the_end(case))
    behind, by_agents = copies.behind(limit), _measured(case).view is not None
    missing = _of_the_group(case, copies) or _learner_that_is_behind(behind, by_agents=by_agents) or _in_the_end(case)
    known = [wait.records_to_go for wait in behind if wait.records_to_go is not None]
    remaining = sum(known) if len(known) == len(behind) else None
    episode = None if missing is None else _episode(snapshot, remaining)
    return Convergence(
        waits_for=missing,
        counts=_counts(case, copies, limit),
        remaining_lag=remaining,
        progress=1.0 if missing is None else _progress(episode),
        eta=estimate(evidence, behind) if behind else NOT_KNOWN,
        slowest=tuple(sorted(behind, key=lambda wait: (-(wait.records_to_go or 0), wait.task)))[:SHOWN],
        episode=episode,
    )


def estimate(evidence: Evidence, waits: tuple[TaskWait, ...]) -> Estimate:
    """When these copies will be caught up, at the speed between the last two joins, or words of the agents."""
    snapshot, policy = evidence.snapshot, evidence.policy
    latest = snapshot.latest
    heard = evidence.agent_views
    if latest is not None and len(heard) == 2 and all(isinstance(view.ends, EndOffsets) for view in heard):
        return _by_agents(_case(evidence, latest), heard, waits)
    if latest is None or latest.rebalance is None:
        return NOT_KNOWN
    before = next(
        (
            one
            for one in snapshot.readings
            if one.rebalance is not None and one.rebalance.settled_at < latest.rebalance.settled_at
        ),
        None,
    )
    if before is None or before.rebalance is None:
        return NOT_KNOWN
    copies = replace(_case(evidence, before), view=None).copies()
    if isinstance(copies, Refusal):
        return NOT_KNOWN
    earlier = copies.behind(policy.acceptable_recovery_lag)
    return when_caught_up(
        LagSample(before.rebalance.settled_at, earlier), LagSample(latest.rebalance.settled_at, waits)
    )


def _by_agents(case: GateInput, heard: tuple[AgentView, ...], waits: tuple[TaskWait, ...]) -> Estimate:
    before = replace(case, view=heard[1]).copies()
    if isinstance(before, Refusal):
        return NOT_KNOWN
    earlier = before.behind(case.policy.acceptable_recovery_lag)
    return when_caught_up(LagSample(heard[1].as_of, earlier), LagSample(heard[0].as_of, waits))


def _case(evidence: Evidence, reading: GroupReading) -> GateInput:
    return input_now(evidence, RemovalCandidate(RemovalKind.RESTART, ()), reading)


def _measured(case: GateInput) -> GateInput:
    """The same, by the joins where no ends were read since the agents spoke."""
    is_by_agents = case.view is not None and isinstance(case.view.ends, EndOffsets)
    return case if is_by_agents or case.view is None else replace(case, view=None)


def _of_the_group(case: GateInput, copies: CopyMap) -> Refusal | None:
    """What the group itself is missing; where learners come on demand, what its next rebalance waits for."""
    missing = first_refusal(CONVERGENCE_GATES, case)
    if missing is None or missing.reason is not Reason.FollowUpScheduled or case.view is None:
        return missing
    return settling(case, copies, missing) if is_on_demand(case.evidence) else missing


def _learner_that_is_behind(behind: tuple[TaskWait, ...], *, by_agents: bool) -> Refusal | None:
    return replace(refusal_of(behind), needs_rebalance=not by_agents) if behind else None


def _in_the_end(case: GateInput) -> Refusal | None:
    """What is missing beside the group; last, whether what was read is old."""
    return _pod_that_is_missing(case) or first_refusal(CONVERGED_GATES, case)


def _pod_that_is_missing(case: GateInput) -> Refusal | None:
    """Every pod is there, ready and in the group, with the newest template: most are ready seconds before they join."""
    snapshot, statefulset = case.snapshot, case.snapshot.workload.lasting_statefulset
    if statefulset is None:
        return Refusal(Reason.StatefulSetMissing)
    granted, desired = statefulset.replicas, snapshot.app.desired.replicas
    if granted != desired:
        return Refusal(Reason.ReplicasPending, f"desired {desired}, current {granted}")
    pods, ready = len(snapshot.workload.pods), snapshot.workload.ready
    if pods != granted or ready != granted:
        fault = first_fault(snapshot.workload)
        detail = f"current {granted}, {pods} exist, {ready} are ready"
        return Refusal(Reason.PodsNotReady, f"{detail}; {fault}" if fault else detail)
    placement = case.placement()
    if isinstance(placement, Refusal):
        return placement
    outside = [pod.ordinal for pod in snapshot.workload.pods if not placement.is_present(pod.ordinal)]
    if outside:
        return Refusal(Reason.PodNotInGroup, f"ordinal {first_few(outside)}")
    return _template_that_waits(case, statefulset)


def _template_that_waits(case: GateInput, statefulset: StatefulSet) -> Refusal | None:
    """Every pod has the template of the StreamApp, unless its user has paused the rollout."""
    if case.policy.rollout is RolloutPolicy.PAUSED:
        return None
    if not statefulset.template_is_written:
        return Refusal(Reason.TemplateUnwritten)
    outdated = [pod.ordinal for pod in case.snapshot.workload.pods if pod.revision != statefulset.update_revision]
    if outdated:
        return Refusal(Reason.RolloutInProgress, f"ordinal {first_few(outdated)}")
    return statefulset_is_observed(case)


def _counts(case: GateInput, copies: CopyMap, limit: int) -> Counts | None:
    group = case.group()
    if not isinstance(group, GroupDescription):
        return None
    stateful = copies.task_set.stateful_ids
    assigned = [member.assignment for member in group.members if member.assignment is not None]
    learners = sum(len(assignment.standby & stateful) for assignment in assigned)
    running = case.running(group.member_ids - members_perhaps_dead(case))
    return Counts(
        tasks=len(copies.task_set.tasks),
        running=0 if isinstance(running, Refusal) else len(running),
        learners=learners,
        caught_up=copies.standbys_caught_up(limit),
    )


def _episode(snapshot: Snapshot, remaining: int | None) -> Episode | None:
    before = snapshot.episode
    if remaining is None:
        return before
    layout = snapshot.rebalances.layout_since
    if before is None:
        return Episode(began_at=snapshot.now, lag_at_start=remaining, least_lag=remaining, layout_since=layout)
    if remaining > before.lag_at_start:
        # A scale-up first looks like little to do, until its warm-ups are handed out: then the layout is another one.
        lowest = _lowest(before) if layout == before.layout_since else None
        return replace(before, lag_at_start=remaining, least_lag=remaining, lowest=lowest, layout_since=layout)
    if remaining >= before.least_lag:
        return before
    if layout == before.layout_since and remaining >= _lowest(before):
        return replace(before, least_lag=remaining)  # it only fell behind by less than a moment ago
    return replace(before, least_lag=remaining, improved_at=snapshot.now, lowest=None, layout_since=layout)


def _lowest(episode: Episode) -> int:
    """The least lag that the episode has seen of its layout."""
    return episode.least_lag if episode.lowest is None else min(episode.lowest, episode.least_lag)


def _progress(episode: Episode | None) -> float | None:
    if episode is None or episode.lag_at_start == 0:
        return None
    return 1 - episode.least_lag / episode.lag_at_start


def _nothing_to_see(snapshot: Snapshot, missing: Refusal | None) -> Convergence:
    return Convergence(
        waits_for=missing,
        counts=None,
        remaining_lag=None,
        progress=1.0 if missing is None else _progress(snapshot.episode),
        eta=NOT_KNOWN,
        slowest=(),
        episode=None if missing is None else snapshot.episode,
    )
