"""May these pods go? Runs the gates on both readings and answers with a permission or the first refusal.

Called by `holding` for removals and by `rollouts` for restarts, so that one rule guards both.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from streamapp.core.cases import Case, Refusal
from streamapp.core.containers import Capture
from streamapp.core.coverage_gates import COVERAGE_GATES
from streamapp.core.departures import Departure, Going
from streamapp.core.eviction import capture, since_first_seen
from streamapp.core.gates import GATES, GATES_OF_NEVER_RAN, Gate, facts_are_fresh
from streamapp.core.group import GroupDescription, GroupReading
from streamapp.core.holds import Forced
from streamapp.core.policy import ScalingPolicy
from streamapp.core.readings import earlier_reading
from streamapp.core.reasons import Reason
from streamapp.core.snapshot import Snapshot

_WHY = {
    Going.ONE: Reason.Covered,
    Going.IDLE: Reason.OwnsNothing,
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
    case = Case(snapshot=snapshot, policy=policy, departure=departure, reading=latest)
    if departure.going is Going.NEVER_RAN:
        return first_refusal(GATES_OF_NEVER_RAN, case) or _permission(case, latest, None)
    return first_refusal(GATES, case) or _judge_twice(case, waiver)


def first_refusal(gates: Iterable[Gate], case: Case) -> Refusal | None:
    """Ask the gates in order."""
    refusals = (gate(case) for gate in gates)
    return next((refusal for refusal in refusals if refusal is not None), None)


def _judge_twice(case: Case, waiver: Waiver | None) -> Permission | Refusal:
    covered = first_refusal(COVERAGE_GATES, case)
    verdict = covered or _agreed(case, COVERAGE_GATES)
    if isinstance(verdict, GroupReading):
        return _permission(case, verdict, None)
    if waiver is None:
        return verdict
    waived = _agreed(case, ())
    return _permission(case, waived, waiver) if isinstance(waived, GroupReading) else waived


def _agreed(case: Case, coverage: tuple[Gate, ...]) -> GroupReading | Refusal:
    """Find the earlier reading that says the same: every gate, on what it shows.

    Where it did not, the newest is the first that does, and all that is missing is another one: whatever kept the
    earlier one from it is over, and must not set the pace of the nudges.
    """
    timing = case.policy.timing
    join = case.reading.join
    if coverage and (join is None or not timedelta(0) <= case.snapshot.now - join.settled_at <= timing.position_age):
        return Refusal(Reason.ReadingsPending)
    earlier = earlier_reading(case.snapshot.readings, timing, of_another_join=bool(coverage))
    if isinstance(earlier, Reason):
        return Refusal(earlier, needs_a_join=bool(coverage))
    lasting = tuple(gate for gate in GATES if gate is not facts_are_fresh)
    before = first_refusal((*lasting, *coverage), replace(case, reading=earlier))
    if before is None:
        return earlier
    detail = f"The one before said {before.reason.name}: {before.detail}".removesuffix(": ")
    return Refusal(Reason.ReadingsPending, detail, needs_a_join=bool(coverage))


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
