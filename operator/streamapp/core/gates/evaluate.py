"""May these pods go? Runs the gates on both readings and answers with a permission or the first refusal.

Called by `holding` for removals and by `rollouts` for restarts, so that one rule guards both.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from streamapp.core.evidence.agent_views import AgentView, views
from streamapp.core.evidence.eviction import capture, since_first_seen
from streamapp.core.evidence.learner_source import is_on_demand
from streamapp.core.evidence.readings import earlier_reading
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.containers import Capture
from streamapp.core.facts.group import GroupDescription, GroupReading
from streamapp.core.facts.hold_record import Forced
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.gates.candidates import Departure, Going
from streamapp.core.gates.case import Case, Gate
from streamapp.core.gates.chains import (
    COVERAGE_GATES,
    DRAINED_REMOVAL_GATES,
    LEARNER_GATES,
    NEVER_RAN_GATES,
    REMOVAL_GATES,
)
from streamapp.core.gates.drain_gates import MOVING, progress
from streamapp.core.gates.safety_gates import facts_are_fresh
from streamapp.core.reasons import Reason

_WHY = {
    Going.ONE: Reason.Covered,
    Going.IDLE: Reason.OwnsNothing,
    Going.DRAINED: Reason.Drained,
    Going.NEVER_RAN: Reason.NeverRan,
    Going.RESTART: Reason.RestartCovered,
}


@dataclass(frozen=True, slots=True)
class Waiver:
    """Somebody's word that coverage need not be. It waives the gates of coverage and nothing else."""

    reason: Reason
    forced: Forced | None = None
    """None where the design itself waives it, as at the last step to zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """They may go."""

    departure: Departure
    reason: Reason
    forced: Forced | None
    captures: tuple[Capture, ...]
    """Their members, each since it was first seen, at the latest in the earlier reading."""


def judge(
    snapshot: Snapshot, policy: ScalingPolicy, departure: Departure, waiver: Waiver | None = None
) -> Permission | Refusal:
    """Judge on coverage; where that refuses, and somebody waived it, on everything else."""
    latest = snapshot.latest
    if latest is None:
        return Refusal(Reason.BrokersUnreachable, "the group has not been read yet")
    heard = views(snapshot, policy.timing) if policy.agent else ()
    view = heard[0] if heard else None
    case = Case(snapshot=snapshot, policy=policy, departure=departure, reading=latest, view=view)
    if departure.going is Going.NEVER_RAN:
        return first_refusal(NEVER_RAN_GATES, case) or _permission(case, latest, None)
    if not is_on_demand(snapshot, policy):
        rules = _Rules(REMOVAL_GATES, COVERAGE_GATES, heard[1:])
        return first_refusal(REMOVAL_GATES, case) or _judge_twice(case, rules, waiver)
    rules = _Rules(DRAINED_REMOVAL_GATES, LEARNER_GATES, heard[1:])
    refused = first_refusal(DRAINED_REMOVAL_GATES, case)
    if refused is not None:
        return (progress(case) if refused.reason in MOVING and waiver is None else None) or refused
    return _judge_twice(case, rules, waiver)


def first_refusal(gates: Iterable[Gate], case: Case) -> Refusal | None:
    """Ask the gates in order."""
    refusals = (gate(case) for gate in gates)
    return next((refusal for refusal in refusals if refusal is not None), None)


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


def _judge_twice(case: Case, rules: _Rules, waiver: Waiver | None) -> Permission | Refusal:
    covered = first_refusal(rules.coverage, case)
    verdict = covered or _agreed(case, rules)
    if isinstance(verdict, GroupReading):
        return _permission(case, verdict, None)
    if waiver is None:
        return verdict
    waived = _agreed(case, replace(rules, coverage=()))
    return _permission(case, waived, waiver) if isinstance(waived, GroupReading) else waived


def _agreed(case: Case, rules: _Rules) -> GroupReading | Refusal:
    """Find the earlier reading that says the same: every gate, on what it shows.

    Where it did not, the newest is the first that does, and all that is missing is another one: whatever kept the
    earlier one from it is over, and must not set the pace of the nudges.
    """
    timing, is_of_agents = case.policy.timing, case.view is not None
    join = case.reading.join
    of_joins = bool(rules.coverage) and not is_of_agents
    if of_joins and (join is None or not timedelta(0) <= case.snapshot.now - join.settled_at <= timing.position_age):
        return Refusal(Reason.ReadingsPending)
    if rules.coverage and is_of_agents and not rules.before:
        return Refusal(Reason.ReadingsPending, "Agents were heard once.", needs_a_join=False)
    apart = timing.report_gap if rules.coverage and is_of_agents else timing.reading_gap
    earlier = earlier_reading(case.snapshot.readings, timing, of_another_join=of_joins, apart=apart)
    if isinstance(earlier, Reason):
        return Refusal(earlier, needs_a_join=of_joins)
    view = rules.before[0] if rules.before else None
    before = first_refusal((*rules.lasting, *rules.coverage), replace(case, reading=earlier, view=view))
    if before is None:
        return earlier
    detail = f"The one before said {before.reason.name}: {before.detail}".removesuffix(": ")
    return Refusal(Reason.ReadingsPending, detail, needs_a_join=of_joins)


def _permission(case: Case, earliest: GroupReading, waiver: Waiver | None) -> Permission:
    captures: tuple[Capture, ...] = ()
    if isinstance(case.reading.group, GroupDescription):
        ordinals = case.departure.ordinals
        seen = capture(case.reading.group, case.snapshot.workload, ordinals, earliest.ended_at)
        captures = since_first_seen(seen, case.snapshot.captures)
    return Permission(
        departure=case.departure,
        reason=_WHY[case.departure.going] if waiver is None else waiver.reason,
        forced=None if waiver is None else waiver.forced,
        captures=captures,
    )
