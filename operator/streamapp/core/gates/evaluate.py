"""May these pods go? Runs the gates on both readings and answers with a permission or the first refusal.

Called by `scale_down` for removals and by `rollout` for restarts, so that one rule guards both.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from streamapp.core.evidence.agent_views import AgentView
from streamapp.core.evidence.eviction import observe_members, since_first_seen
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.learner_source import is_on_demand
from streamapp.core.evidence.readings import earlier_reading
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.containers import ObservedMembers
from streamapp.core.facts.group import GroupReading
from streamapp.core.facts.hold_record import Forced
from streamapp.core.gates.candidates import RemovalCandidate, RemovalKind
from streamapp.core.gates.case import Gate, GateInput, input_now
from streamapp.core.gates.chains import (
    COVERAGE_GATES,
    DRAINED_REMOVAL_GATES,
    LEARNER_GATES,
    NEVER_RAN_GATES,
    READINESS_GATES,
    REMOVAL_GATES,
)
from streamapp.core.gates.drain_gates import progress
from streamapp.core.gates.safety_gates import facts_are_fresh
from streamapp.core.reasons import Reason


@dataclass(frozen=True, slots=True)
class CoverageOverride:
    """Somebody's word that coverage need not be. It waives the gates of coverage and nothing else."""

    reason: Reason
    forced: Forced | None = None
    """None where the design itself waives it, as at the last step to zero."""

    @property
    def is_of_the_user(self) -> bool:
        """Tell whether a user gave the word, and not the design."""
        return self.forced is not None or self.reason is Reason.RestartUncovered


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
    if override is not None and override.is_of_the_user and latest.shows_no_tasks:
        return first_refusal(READINESS_GATES, case) or _permission(case, latest, override)
    before = evidence.agent_views[1:]
    if candidate.kind is RemovalKind.NEVER_RAN:
        return first_refusal(NEVER_RAN_GATES, case) or _permission(case, latest, None)
    if not is_on_demand(evidence):
        rules = _Rules(REMOVAL_GATES, COVERAGE_GATES, before)
        return first_refusal(REMOVAL_GATES, case) or _judge_twice(case, rules, override)
    rules = _Rules(DRAINED_REMOVAL_GATES, LEARNER_GATES, before)
    refused = first_refusal(DRAINED_REMOVAL_GATES, case)
    if refused is not None:
        return (progress(case) if refused.reason.row.is_group_moving and override is None else None) or refused
    return _judge_twice(case, rules, override)


def first_refusal(gates: Iterable[Gate], case: GateInput) -> Refusal | None:
    """Ask the gates in order."""
    for gate in gates:
        refusal = gate(case)
        if refusal is not None:
            return refusal
    return None


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


def _judge_twice(case: GateInput, rules: _Rules, override: CoverageOverride | None) -> Approval | Refusal:
    covered = first_refusal(rules.coverage, case)
    verdict = covered or _agreed(case, rules)
    if isinstance(verdict, GroupReading):
        return _permission(case, verdict, None)
    if override is None:
        return verdict
    waived = _agreed(case, replace(rules, coverage=()))
    return _permission(case, waived, override) if isinstance(waived, GroupReading) else waived


def _agreed(case: GateInput, rules: _Rules) -> GroupReading | Refusal:
    """Find the earlier reading that says the same: every gate, on what it shows.

    Where it did not, the newest is the first that does, and all that is missing is another one: whatever kept the
    earlier one from it is over, and must not set the pace of the triggered rebalances.
    """
    timing, is_of_agents = case.policy.timing, case.view is not None
    rebalance = case.reading.rebalance
    of_joins = bool(rules.coverage) and not is_of_agents
    if of_joins and (
        rebalance is None or not timedelta(0) <= case.snapshot.now - rebalance.settled_at <= timing.position_age
    ):
        return Refusal(Reason.ReadingsPending)
    if rules.coverage and is_of_agents and not rules.before:
        return Refusal(Reason.ReadingsPending, "Agents were heard once.", needs_rebalance=False)
    apart = timing.report_gap if rules.coverage and is_of_agents else timing.reading_gap
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
        observed = since_first_seen(seen, case.snapshot.observed)
    return Approval(
        candidate=case.candidate,
        reason=case.candidate.kind.reason if override is None else override.reason,
        forced=None if override is None else override.forced,
        observed=observed,
    )
