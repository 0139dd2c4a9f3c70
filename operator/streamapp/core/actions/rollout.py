"""Restarts: of pods with an older template, and of those whose restart a user asks for; which one may be next, if any.

The StatefulSet is `OnDelete`, so a pod restarts only when we delete it: one at a time, behind the same gates as a
removal, the next only when the last one is well. Pods that are about to leave are not restarted for nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from streamapp.core.evidence.agent_views import silence
from streamapp.core.evidence.evidence import Evidence, OfEvidence
from streamapp.core.evidence.learner_source import LearnersUnknown, source_in_force, streams_group, why_not_on_demand
from streamapp.core.evidence.refusal import Refusal, first_few
from streamapp.core.evidence.restart_cost import cost_of_restart
from streamapp.core.facts.group import GroupReading
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import LearnerSource, RolloutPolicy
from streamapp.core.facts.workload import Pod, StatefulSet
from streamapp.core.gates.case import GateInput, input_of_restart
from streamapp.core.gates.chains import REPLACEMENT_GATES
from streamapp.core.gates.coverage_gates import refusal_of
from streamapp.core.gates.evaluate import Approval, CoverageOverride, evaluate, takes_nothing_away
from streamapp.core.gates.safety_gates import every_task_runs, no_earlier_step_is_open
from streamapp.core.reasons import Reason

MOST_JUDGED = 3
"""Pods that are considered for the next restart: each costs as much as the judgement of a removal."""
STOPPED_BY_PODS = frozenset({Reason.RolloutPodNotRunning, Reason.PodTerminating})
"""Why no pod is next where others are not well: the detail names them."""


@dataclass(frozen=True, slots=True)
class Restart:
    """This pod may be restarted now."""

    pod: Pod
    reason: Reason


def next_restart(evidence: Evidence, statefulset: StatefulSet, target: int) -> Restart | Refusal | None:
    """The next pod to restart, or why none is; None where every pod that matters has the newest template.

    Args:
        evidence: What follows from the facts.
        statefulset: The StatefulSet, whose update revision is the newest template.
        target: Replicas that stay; pods above are leaving.
    """
    latest = evidence.snapshot.latest
    if latest is None:
        return None
    return _Rollout(evidence.of_restarts, statefulset, target, latest).next()


def to_drain(evidence: Evidence, statefulset: StatefulSet, target: int) -> Ordinal | None:
    """The pod that is to be drained for a restart, where learners come on demand; None: none is.

    Args:
        evidence: What follows from the facts.
        statefulset: The StatefulSet.
        target: Replicas that stay.
    """
    latest = evidence.snapshot.latest
    return None if latest is None else _Rollout(evidence.of_restarts, statefulset, target, latest).to_drain()


def next_replacement(evidence: Evidence, statefulset: StatefulSet) -> Restart | None:
    """The next pod to replace while a step is open for too long: only one that does not run, and is in no group.

    The step may wait for tasks that nobody can run before the pods have the newest template.
    """
    latest = evidence.snapshot.latest
    if latest is None:
        return None
    return _Rollout(evidence.of_restarts, statefulset, statefulset.replicas, latest).next_that_is_down()


def ordinals_in_its_way(evidence: Evidence, statefulset: StatefulSet, target: int) -> frozenset[Ordinal]:
    """The pods that keep every other one from being restarted: they are missing, ill or going."""
    pods = [pod for pod in evidence.snapshot.workload.pods if pod.ordinal < statefulset.replicas]
    not_well = _not_well(statefulset, pods, target)
    return frozenset({*not_well.going, *not_well.ill, *not_well.missing})


@dataclass(frozen=True, slots=True)
class _NotWell:
    """The pods that a rollout waits for."""

    going: tuple[Ordinal, ...]
    ill: tuple[Ordinal, ...]
    """Of the newest template, and down ones that leave: another older one may be what the rollout mends."""
    missing: tuple[Ordinal, ...]


def _not_well(statefulset: StatefulSet, granted: Sequence[Pod], target: int) -> _NotWell:
    def is_ill(pod: Pod) -> bool:
        if pod.revision == statefulset.update_revision:
            return not (pod.is_running and pod.ready)
        return pod.ordinal >= target and not pod.is_running

    there = {pod.ordinal for pod in granted}
    return _NotWell(
        going=tuple(pod.ordinal for pod in granted if pod.terminating),
        ill=tuple(pod.ordinal for pod in granted if not pod.terminating and is_ill(pod)),
        missing=tuple(one for one in map(Ordinal, range(statefulset.replicas)) if one not in there),
    )


@dataclass(frozen=True, slots=True)
class _Rollout(OfEvidence):
    """One look at a rollout."""

    evidence: Evidence
    statefulset: StatefulSet
    target: int
    latest: GroupReading

    def next(self) -> Restart | Refusal | None:
        candidates = self._candidates()
        if not candidates:
            return None
        allowed = self._allowed(candidates)
        if not allowed:
            return Refusal(Reason.RolloutPaused, f"ordinal {first_few([pod.ordinal for pod in candidates])}")
        in_turn = self._in_turn(allowed)
        if isinstance(in_turn, Refusal):
            return in_turn
        down = next((pod for pod in in_turn if takes_nothing_away(self._case(pod), REPLACEMENT_GATES)), None)
        if down is not None:
            return Restart(down, Reason.RestartOfIdlePod)
        verdict = self._one_of(in_turn)
        return verdict if isinstance(verdict, Restart) else self._waits_for_itself(in_turn[0], verdict) or verdict

    def to_drain(self) -> Ordinal | None:
        in_turn = self._in_turn(self._allowed(self._candidates()))
        if isinstance(in_turn, Refusal) or not in_turn:
            return None
        is_drained = self._source() is LearnerSource.ON_DEMAND and self._waiver() is None
        return in_turn[0].ordinal if is_drained else None

    def next_that_is_down(self) -> Restart | None:
        in_turn = self._in_turn(self._candidates())
        if self.policy.rollout is RolloutPolicy.PAUSED or isinstance(in_turn, Refusal):
            return None
        gates = tuple(gate for gate in REPLACEMENT_GATES if gate is not no_earlier_step_is_open)
        down = next((pod for pod in in_turn if takes_nothing_away(self._case(pod), gates)), None)
        return None if down is None else Restart(down, Reason.RestartOfIdlePod)

    def _candidates(self) -> tuple[Pod, ...]:
        """Pods that are to restart: whose volumes are given up, then others that a user names, then the highest.

        Leaving ones of an older template only where the hold could not end otherwise.

        The leader's configuration counts for the whole group, and the leader may be on a leaving pod: where there are
        no standbys, a template that asks for some has to reach that pod too. So does one that brings the agent without
        which nothing is known of that pod.
        """
        due = [
            pod
            for pod in reversed(self._granted_pods())
            if not pod.terminating and (self._is_outdated(pod) or self._is_asked_for(pod))
        ]
        if self.latest.shows_no_tasks:
            due.sort(key=lambda pod: pod.ready and pod.is_running)
        due.sort(key=lambda pod: (pod.ordinal in self.evidence.given_up, self._is_asked_for(pod)), reverse=True)
        # A pod whose volume goes cannot leave: it has to have a new one first.
        # Nor does another one restart beside a pod that is down, so that one restarts unless it leaves at once.
        staying = tuple(pod for pod in due if self._stays(pod) or (self._is_outdated(pod) and not pod.is_running))
        if staying:
            return staying
        leaving = (pod for pod in due if self._is_outdated(pod))
        return tuple(pod for pod in leaving if self._source() is LearnerSource.NONE or self._is_unheard(pod))

    def _stays(self, pod: Pod) -> bool:
        return pod.ordinal < self.target or pod.ordinal in self.evidence.given_up

    def _allowed(self, candidates: tuple[Pod, ...]) -> tuple[Pod, ...]:
        """Those that a paused rollout does not concern, a restart brings the newest template, too; the leader last.

        So it is while pods have different topologies: a leader of the newer template would give the others tasks that
        they do not know, and the group would rebalance without end.
        """
        allowed, given_up, leader = candidates, self.evidence.given_up, self._leader()
        if self.policy.rollout is RolloutPolicy.PAUSED:
            allowed = tuple(pod for pod in candidates if not self._is_outdated(pod) or pod.ordinal in given_up)
        return tuple(pod for pod in allowed if pod.ordinal != leader) or allowed

    def _is_outdated(self, pod: Pod) -> bool:
        return pod.revision != self.statefulset.update_revision

    def _is_asked_for(self, pod: Pod) -> bool:
        return pod.ordinal in self.evidence.asked_for

    def _leader(self) -> Ordinal | None:
        """The pod that leads the group, where pods have different topologies and agents report who assigned last."""
        if not self.evidence.has_other_topologies:
            return None
        made = {one.round.made_at: ordinal for ordinal, one in self.evidence.fresh_reports.items() if one.round}
        return made[max(made)] if made else None

    def _asked_of_the_silent(self, allowed: tuple[Pod, ...]) -> tuple[Pod, ...]:
        """Pods whose restart a user asks for and whose agent is silent: the restart may mend that.

        Where standbys are judged by what members report when they join: nothing rests on the agent then.
        """
        if self._source() is not LearnerSource.STANDBYS or self._needs_agents():
            return ()
        heard = self.evidence.fresh_reports
        return tuple(pod for pod in allowed if self._is_asked_for(pod) and pod.ordinal not in heard)

    def _is_unheard(self, pod: Pod) -> bool:
        """Tell whether a pod's agent is missing where pods can leave by agents alone; its restart may bring it."""
        policy = self.policy
        if not policy.agent or pod.ordinal in self.evidence.fresh_reports:
            return False
        by_standbys = policy.source is not LearnerSource.ON_DEMAND and self._source() is LearnerSource.STANDBYS
        return self._key_is_there() and (not by_standbys or self._needs_agents())

    def _needs_agents(self) -> bool:
        """Tell whether the group itself shows no positions, so that standbys cannot be judged without agents."""
        latest = self.evidence.of(self.latest)
        return latest is not None and latest.group.streams is not None

    def _key_is_there(self) -> bool:
        """Without a key no template brings an agent that can be asked."""
        agents = self.snapshot.agents
        return agents is not None and not agents.no_key

    def _waits_for_itself(self, pod: Pod, refusal: Refusal) -> Refusal | None:
        """Whether the rollout waits for what only the agents could report that it brings; says what it costs."""
        never_had_one = refusal.reason is Reason.AgentSilent and self._needs_agents() and not pod.has_agent
        if not (refusal.reason is Reason.TopologyUnknown or never_had_one) or not self._is_unheard(pod):
            return None
        cost = cost_of_restart(self.evidence, pod.ordinal)
        return Refusal(Reason.FirstRestartUncovered, cost, needs_rebalance=False)

    def _in_turn(self, allowed: tuple[Pod, ...]) -> tuple[Pod, ...] | Refusal:
        """Whoever was restarted last must be back and well: a bad image stops at its first pod.

        What ails a pod may be what the restart that a user asks for mends, or that of an older one that leaves. Nobody
        else restarts meanwhile.
        """
        not_well = _not_well(self.statefulset, self._granted_pods(), self.target)
        if not_well.going:
            return Refusal(Reason.PodTerminating, f"ordinal {first_few(not_well.going)}")
        ill = [pod for pod in allowed if pod.ordinal in not_well.ill]
        is_asked = [pod for pod in ill if self._is_asked_for(pod)]
        leavers = [pod for pod in ill if self._is_outdated(pod)]
        mends = leavers if len(leavers) == len(not_well.ill) else is_asked
        down = tuple(pod for pod in mends if takes_nothing_away(self._case(pod), REPLACEMENT_GATES))
        if down and not not_well.missing:
            return down
        if not_well.missing or len(not_well.ill) > len(is_asked[:1]):
            return Refusal(Reason.RolloutPodNotRunning, f"ordinal {first_few([*not_well.ill, *not_well.missing])}")
        newest = [pod.ordinal for pod in self._granted_pods() if not self._is_outdated(pod)]
        quiet = self._agent_that_is_missing(newest)
        return (self._asked_of_the_silent(allowed) or quiet) if quiet is not None else tuple(is_asked) or allowed

    def _agent_that_is_missing(self, newest: list[Ordinal]) -> Refusal | None:
        """Whoever has the newest template has an agent, where one belongs into it, and is heard: the first is a canary.

        So must the others be where one of them is, but for those that have none yet: one is silent only now. Not where
        coverage is not asked for, nor where learners are not to come on demand; but in a group of the streams protocol
        only agents tell whether the tasks of the last restart run again. A pod that leaves need not be heard: it would
        wait for the rollout, and the rollout for it.
        """
        is_agent_needed = self.policy.source in {None, LearnerSource.ON_DEMAND} or self._needs_agents()
        asked = self.policy.agent and is_agent_needed
        workload, others = self.snapshot.workload, self._pods_that_spoke(newest)
        told = others.union(newest)
        pods = tuple(pod for pod in workload.pods if pod.ordinal in told and pod.ordinal < self.target)
        if not asked or self.policy.rollout is RolloutPolicy.IMMEDIATE or not pods:
            return None
        quiet = silence(replace(self.snapshot, workload=replace(workload, pods=pods)), self.policy.timing)
        if quiet is not None:
            return Refusal(quiet.reason, quiet.detail, needs_rebalance=False)
        return self._assignor_that_is_lost(newest)

    def _pods_that_spoke(self, newest: list[Ordinal]) -> frozenset[Ordinal]:
        """Pods of older templates that have an agent which was heard before, now or then.

        Until the canary is heard no other pod gets an agent. So where several have one, theirs have spoken, and their
        silence must not make the pods look like those of an application that never had any. Whoever is in no group has
        no tasks to lose, and may be what the new template mends.
        """
        pods = self.snapshot.workload.pods
        if self.evidence.fresh_reports.keys() - set(newest):
            return frozenset(pod.ordinal for pod in pods if pod.has_agent is not False)
        latest = self.evidence.of(self.latest)
        several = sum(1 for pod in pods if pod.has_agent) > 1
        if latest is None or not several or self._source() is not LearnerSource.NONE:
            return frozenset()
        members = latest.placement.members
        return frozenset(pod.ordinal for pod in pods if pod.has_agent and pod.is_running and members(pod.ordinal))

    def _assignor_that_is_lost(self, newest: list[Ordinal]) -> Refusal | None:
        """Whether the newest template takes our assignor away where it alone could drain the other pods."""
        reports = self.evidence.fresh_reports
        was_ours = any(one.is_ours for ordinal, one in reports.items() if ordinal not in newest)
        is_ours = all(one.is_ours for ordinal, one in reports.items() if ordinal in newest)
        if is_ours or not was_ours or self._source() is not LearnerSource.NONE:
            return None
        return why_not_on_demand(self.evidence)

    def _one_of(self, candidates: tuple[Pod, ...]) -> Restart | Refusal:
        """The first of a few that does not learn and is covered; else why the first that does not learn is not.

        Which few does not depend on any lag: were the first that does not learn the only one that is judged, more lag
        could make it a learner, and another pod would restart that nobody had judged before.
        """
        override = self._waiver()
        if self._source() is LearnerSource.ON_DEMAND and override is None:
            verdict = self._judged(candidates[0], None)
            return Restart(candidates[0], Reason.RestartDrained) if isinstance(verdict, Approval) else verdict
        refusals: list[tuple[bool, Refusal]] = []
        for pod in candidates[:MOST_JUDGED]:
            is_spared = override is None and not self._is_asked_for(pod)
            learning = self._learning(pod) if is_spared else None
            verdict = learning or self._judged(pod, override)
            if isinstance(verdict, Approval):
                return Restart(pod, verdict.reason)
            refusals.append((learning is not None, verdict))
        return min(refusals, key=lambda each: each[0])[1]

    def _judged(self, pod: Pod, override: CoverageOverride | None) -> Approval | Refusal:
        case, refusal = self._case(pod), None
        if override is not None and override.reason is Reason.RestartWithoutLearners:
            # Where no restart can be covered, at least no task must be away for two restarts at once.
            refusal = every_task_runs(case)
        return refusal or evaluate(self.evidence, case.candidate, override)

    def _learning(self, pod: Pod) -> Refusal | None:
        """Whether a pod restores a task or has a standby that is behind; a restart would set it back."""
        copies = self._case(pod).copies()
        if isinstance(copies, Refusal):
            return None  # the gates name it
        behind = copies.behind(self.policy.acceptable_recovery_lag, pod.ordinal)
        return refusal_of(behind) if behind else None

    def _waiver(self) -> CoverageOverride | None:
        if self.policy.rollout is RolloutPolicy.IMMEDIATE:
            return CoverageOverride(Reason.RestartUncovered)
        is_bare = self._source() is LearnerSource.NONE and not self._are_standbys_on_demand()
        if self.statefulset.replicas == 1 or is_bare:
            return CoverageOverride(Reason.RestartWithoutLearners)
        return None

    def _are_standbys_on_demand(self) -> bool:
        """Tell whether standbys are raised for the rollout, and agents report how far they are.

        So it is too while the brokers refuse to tell or to raise the value: that may be over in a minute.
        """
        is_demanded = self.policy.source is LearnerSource.ON_DEMAND and self.evidence.agent_view is not None
        return is_demanded and streams_group(self.evidence) is not None

    def _source(self) -> LearnerSource | None:
        source = source_in_force(self.evidence).source
        return None if isinstance(source, LearnersUnknown) else source

    def _granted_pods(self) -> tuple[Pod, ...]:
        return tuple(pod for pod in self.snapshot.workload.pods if pod.ordinal < self.statefulset.replicas)

    def _case(self, pod: Pod) -> GateInput:
        return input_of_restart(self.evidence, pod, self.latest)
