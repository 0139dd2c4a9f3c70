"""May these pods go? Runs the gates on both readings and answers with a permission or the first refusal.

Called by `scale_down` for removals and by `rollout` for restarts, so that one rule guards both.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from streamapp.core.evidence.agent_views import AgentView
from streamapp.core.evidence.eviction import observe_members, since_first_seen
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.learner_source import is_on_demand, streams_group
from streamapp.core.evidence.readings import comes_to_rest, earlier_reading
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.containers import ObservedMembers
from streamapp.core.facts.group import GroupReading
from streamapp.core.facts.hold_record import Forced
from streamapp.core.facts.ids import Ordinal
from streamapp.core.gates.candidates import RemovalCandidate, RemovalKind
from streamapp.core.gates.case import Gate, GateInput, input_now
from streamapp.core.gates.chains import (
    COVERAGE_GATES,
    DRAINED_REMOVAL_GATES,
    LEARNER_GATES,
    NEVER_RAN_GATES,
    READINESS_GATES,
    REMOVAL_GATES,
    RESTLESS_GATES,
    TWO_PLACES_GATES,
)
from streamapp.core.gates.drain_gates import progress
from streamapp.core.gates.safety_gates import (
    facts_are_fresh,
    no_follow_up_is_scheduled,
)
from streamapp.core.reasons import Reason


@dataclass(frozen=True, slots=True)
class CoverageOverride:
    """Somebody's word that coverage need not be. It waives the gates of coverage and nothing that protects data."""

    reason: Reason
    forced: Forced | None = None
    """None where the design itself waives it, as at the last step to zero."""

    @property
    def is_of_the_user(self) -> bool:
        """Tell whether a user gave the word, and not the design."""
        return self.forced is not None or self.reason is Reason.RestartUncovered

    @property
    def waits_for_follow_ups(self) -> bool:
        """Tell whether tasks that are still to move keep the pods: not if a user lets them go without copies.

        While copies stand still the assignor schedules one follow-up after another, so the word would never be kept.
        """
        return self.forced is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """They may go."""

    candidate: RemovalCandidate
    reason: Reason
    forced: Forced | None
    observed: tuple[ObservedMembers, ...]
    """Their members, each since it was first seen, at the latest in the earlier reading."""


def evaluate(
    evidence: Evidence, candidate: RemovalCandidate, override: CoverageOverride | None = None
) -> Approval | Refusal:
    """Judge on coverage; where that refuses, and somebody waived it, on everything else."""
    latest = evidence.snapshot.latest
    if latest is None:
        return Refusal(Reason.BrokersUnreachable, "the group has not been read yet")
    case = input_now(evidence, candidate, latest)
    is_blind = latest.shows_no_tasks or (override is not None and _is_restless(case, override))
    if override is not None and override.is_of_the_user and is_blind:
        return first_refusal(READINESS_GATES, case) or _permission(case, latest, override)
    if candidate.kind in {RemovalKind.NEVER_RAN, RemovalKind.ALL}:
        return first_refusal(NEVER_RAN_GATES, case) or _permission(case, latest, None)
    rules = _rules_of(case)
    refused = first_refusal(rules.gates, case)
    if refused is not None and override is not None and not override.waits_for_follow_ups:
        return _without_coverage(case, rules, override)
    if refused is not None:
        is_drained = rules.coverage is LEARNER_GATES and override is None
        return (progress(case) if refused.reason.row.is_group_moving and is_drained else None) or refused
    return _judge_twice(case, rules, override)


def _is_restless(case: GateInput, override: CoverageOverride) -> bool:
    """Whether a template changes in a group that does not come to rest: only the restarts that are due end that.

    It is judged at a look that shows who its members are, so that each pod is known to run as itself.
    """
    statefulset, candidate = case.snapshot.workload.statefulset, case.candidate
    pods = map(case.snapshot.workload.pod, candidate.ordinals)
    is_due = statefulset is not None and all(pod and pod.revision != statefulset.update_revision for pod in pods)
    is_restart = candidate.kind is RemovalKind.RESTART and override.reason is Reason.RestartUncovered
    if not (is_restart and is_due) or comes_to_rest(case.snapshot.readings):
        return False
    return first_refusal(RESTLESS_GATES, case) is None


def first_refusal(gates: Iterable[Gate], case: GateInput) -> Refusal | None:
    """Ask the gates in order."""
    for gate in gates:
        refusal = gate(case)
        if refusal is not None:
            return refusal
    return None


def still_covered(case: GateInput, reading_age: timedelta) -> Refusal | None:
    """Ask the newest reading alone what `evaluate` asks of two: why it does not say so any more.

    One is enough for what two allowed before: it is of a rebalance that was watched, its copies count only in
    containers that ran before, and a layout that lasts for one generation has follow-ups scheduled.

    Args:
        case: What is judged.
        reading_age: An older reading says nothing.
    """
    rules = _rules_of(case)
    if not timedelta(0) <= case.snapshot.now - case.reading.as_of <= reading_age:
        return Refusal(Reason.FactsStale, "the group", needs_rebalance=False)
    return first_refusal((*rules.lasting, *rules.coverage), case) or _join_is_old(case)


def takes_nothing_away(case: GateInput, gates: Iterable[Gate]) -> bool:
    """Tell whether a pod does not run and has nobody in the group, by two looks and all between them.

    One may show an older state of the group, and a pod's status can be late.

    Args:
        case: The restart that is judged.
        gates: What else must be so, of `REPLACEMENT_GATES`.
    """
    ordinal = case.candidate.lowest
    pod = case.snapshot.workload.pod(ordinal)
    if pod is None or pod.is_running or not _has_nobody(case, ordinal):
        return False
    return first_refusal(gates, case) is None


def _has_nobody(case: GateInput, ordinal: Ordinal) -> bool:
    for reading in case.snapshot.readings:
        found = case.evidence.of(reading)
        if found is None or found.placement.may_be_of(ordinal):
            return False
        if case.reading.as_of - reading.ended_at >= case.policy.timing.reading_gap:
            return True
    return False


def _rules_of(case: GateInput) -> "_Rules":
    before = case.evidence.agent_views[1:]
    if case.candidate.kind is RemovalKind.ANY_ONE:
        return _Rules(REMOVAL_GATES, TWO_PLACES_GATES, before)
    if is_on_demand(case.evidence):
        return _Rules(DRAINED_REMOVAL_GATES, LEARNER_GATES, before)
    return _Rules(REMOVAL_GATES, COVERAGE_GATES, before)


def _join_is_old(case: GateInput) -> Refusal | None:
    """Where positions are those of a join, it must be a recent one."""
    rebalance, timing = case.reading.rebalance, case.policy.timing
    if case.view is not None:
        return None
    is_recent = rebalance is not None and (
        timedelta(0) <= case.snapshot.now - rebalance.settled_at <= timing.position_age
    )
    return None if is_recent else Refusal(Reason.ReadingsPending)


@dataclass(frozen=True, slots=True)
class _Rules:
    """What is asked, of both readings."""

    gates: tuple[Gate, ...]
    coverage: tuple[Gate, ...]
    before: tuple[AgentView, ...]
    """What the agents said before their last word, if anything."""

    @property
    def lasting(self) -> tuple[Gate, ...]:
        """Of an earlier reading: everything but its age."""
        return tuple(gate for gate in self.gates if gate is not facts_are_fresh)

    def waived_by(self, override: CoverageOverride) -> "_Rules":
        """What is still asked."""
        keeps_all = override.waits_for_follow_ups
        gates = tuple(gate for gate in self.gates if keeps_all or gate is not no_follow_up_is_scheduled)
        return replace(self, gates=gates, coverage=())


def _judge_twice(case: GateInput, rules: _Rules, override: CoverageOverride | None) -> Approval | Refusal:
    covered = first_refusal(rules.coverage, case)
    verdict = covered or _agreed(case, rules)
    if isinstance(verdict, GroupReading):
        return _permission(case, verdict, None)
    return verdict if override is None else _without_coverage(case, rules, override)


def _without_coverage(case: GateInput, rules: _Rules, override: CoverageOverride) -> Approval | Refusal:
    waived = rules.waived_by(override)
    agreed = first_refusal(waived.gates, case) or _agreed(case, waived)
    return _permission(case, agreed, override) if isinstance(agreed, GroupReading) else agreed


def _agreed(case: GateInput, rules: _Rules) -> GroupReading | Refusal:
    """Find the earlier reading that says the same: every gate, on what it shows.

    Where it did not, the newest is the first that does, and all that is missing is another one: whatever kept the
    earlier one from it is over, and must not set the pace of the triggered rebalances.
    """
    timing, is_of_agents = case.policy.timing, case.view is not None
    of_joins = bool(rules.coverage) and not is_of_agents
    old = _join_is_old(case) if of_joins else None
    if old is not None:
        return old
    if rules.coverage and is_of_agents and not rules.before:
        return Refusal(Reason.ReadingsPending, "Agents were heard once.", needs_rebalance=False)
    # Members of a streams group learn of a change by heartbeats of 5 s: readings closer than that can miss it.
    is_slow = not is_of_agents or streams_group(case.evidence) is not None
    apart = timing.report_gap if rules.coverage and not is_slow else timing.reading_gap
    earlier = earlier_reading(case.snapshot.readings, timing, of_another_join=of_joins, apart=apart)
    if isinstance(earlier, Reason):
        return Refusal(earlier, needs_rebalance=of_joins)
    view = rules.before[0] if rules.before else None
    before = first_refusal((*rules.lasting, *rules.coverage), replace(case, reading=earlier, view=view))
    if before is None:
        return earlier
    detail = f"The one before said {before.reason.name}: {before.detail}".removesuffix(": ")
    return Refusal(Reason.ReadingsPending, detail, needs_rebalance=of_joins)


def _permission(case: GateInput, earliest: GroupReading, override: CoverageOverride | None) -> Approval:
    observed: tuple[ObservedMembers, ...] = ()
    latest = case.evidence.of(case.reading)
    if latest is not None:
        ordinals, workload = case.candidate.ordinals, case.snapshot.workload
        seen = observe_members(latest.group, workload, ordinals, earliest.seen_at, latest.placement)
        observed = since_first_seen(seen, case.snapshot.observed, latest.group)
    return Approval(
        candidate=case.candidate,
        reason=case.candidate.kind.reason if override is None else override.reason,
        forced=None if override is None else override.forced,
        observed=observed,
    )
