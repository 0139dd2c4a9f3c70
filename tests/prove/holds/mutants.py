"""Deliberate faults in how holds end and in which pods go together; each fails in the scene that is made for it."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any
from unittest.mock import patch

from streamapp.core import decide
from streamapp.core.actions import scale_down
from streamapp.core.evidence import failing_pods
from streamapp.core.facts.hold_record import Forced, ForcedBy, Hold, HoldRecord, Progress
from streamapp.core.facts.ids import Ordinal
from streamapp.core.gates import candidates, convergence, safety_gates
from streamapp.core.gates.candidates import RemovalCandidate, RemovalKind
from streamapp.core.gates.evaluate import CoverageOverride
from streamapp.core.reasons import Reason
from streamapp.core.status import conditions
from streamapp.kube.objects import claims
from tests.prove.mutants import Mutant, _nobody_called_back, _record_stays, _without
from tests.prove.scene import WHY


def _timed_out_at_once() -> Iterator[Any]:
    yield patch.object(scale_down._Held, "_is_timed_out", lambda self, progress: True)


def _always_proceeds() -> Iterator[Any]:
    def override(self: Any, candidate: RemovalCandidate) -> CoverageOverride | None:
        is_over = self._is_timed_out(self.hold.progress)
        forced = Forced(ForcedBy.TIMEOUT, WHY)
        return CoverageOverride(Reason.OverriddenByTimeout, forced) if is_over else None

    yield patch.object(scale_down._Held, "_override", override)


def _never_proceeds() -> Iterator[Any]:
    yield patch.object(scale_down._Held, "_override", lambda self, candidate: None)


def _proceeds_without_a_word() -> Iterator[Any]:
    yield patch.object(scale_down, "Forced", lambda by, why: Forced(by, ""))


def _deadline_of_each_process() -> Iterator[Any]:
    sound = HoldRecord.dated_until

    def dated_until(self: HoldRecord, now: datetime) -> HoldRecord:
        record = sound(self, now)
        hold = record.hold
        return record if hold is None else replace(record, hold=replace(hold, progress=Progress(improved_at=now)))

    yield patch.object(HoldRecord, "dated_until", dated_until)


def _called_off_unseen() -> Iterator[Any]:
    yield patch.object(HoldRecord, "found_at", lambda self, generation: self)


def _called_off_between_passes() -> Iterator[Any]:
    yield patch.object(HoldRecord, "followed_to", lambda self, generation: self)


def _deadline_stands_while_lags_are_unknown() -> Iterator[Any]:
    sound = Progress.after

    def after(self: Progress, records_to_go: int | None, now: datetime) -> Progress:
        return replace(self, counted_at=None) if records_to_go is None else sound(self, records_to_go, now)

    yield patch.object(Progress, "after", after)


def _follow_ups_are_waited_for() -> Iterator[Any]:
    yield patch.object(CoverageOverride, "waits_for_follow_ups", property(lambda self: True))


def _given_up_is_forgotten() -> Iterator[Any]:
    sound = scale_down._continued

    def continued(current: Hold | None, *known: Any) -> Hold:
        return sound(None if current is not None and current.gave_up_at is not None else current, *known)

    yield patch.object(scale_down, "_continued", continued)


def _not_told() -> Iterator[Any]:
    yield patch.object(conditions, "_stands_still", lambda findings: False)


def _full_is_failing() -> Iterator[Any]:
    yield patch.object(failing_pods, "found_no_space", lambda fault: False)


def _never_grows() -> Iterator[Any]:
    async def expand(*_: Any) -> None: ...

    yield patch.object(claims, "expand", expand)


def _target_never_rises() -> Iterator[Any]:
    sound = scale_down._continued

    def continued(current: Hold | None, target: int, *known: Any) -> Hold:
        return sound(current, target if current is None else min(current.target, target), *known)

    yield patch.object(scale_down, "_continued", continued)


def _all_go_with_the_first() -> Iterator[Any]:
    sound = candidates.next_removal

    def next_removal(evidence: Any, granted: int, target: int) -> RemovalCandidate:
        found = sound(evidence, granted, target)
        if found.kind is not RemovalKind.NEVER_RAN:
            return found
        return replace(found, ordinals=tuple(Ordinal(one) for one in range(granted - 1, target - 1, -1)))

    yield patch.object(scale_down, "next_removal", next_removal)
    yield from _without(safety_gates.only_pods_without_tasks_go_together)


def _one_by_one() -> Iterator[Any]:
    sound = candidates.next_removal

    def next_removal(evidence: Any, granted: int, target: int) -> RemovalCandidate:
        found = sound(evidence, granted, target)
        return replace(found, ordinals=found.ordinals[:1])

    yield patch.object(scale_down, "next_removal", next_removal)


def _standbys_are_nothing() -> Iterator[Any]:
    def tasks(placement: Any, ordinal: Any) -> Iterator[object]:
        for member in placement.members(ordinal):
            yield from [member.id] if member.assignment is None else member.assignment.active

    yield patch.object(candidates, "_tasks", tasks)


def _template_not_told() -> Iterator[Any]:
    yield patch.object(convergence, "_template_that_waits", lambda case, statefulset: None)


def _rollout_is_waited_for() -> Iterator[Any]:
    yield patch.object(scale_down._Held, "_waits_for_leavers", lambda self, found: False)


def _kept_while_nothing_is_prepared() -> Iterator[Any]:
    yield patch.object(decide, "_hold_to_keep", lambda app, statefulset: decide._hold_on_record(statefulset))


HOLD_MUTANTS = (
    Mutant("a hold has timed out at once", _timed_out_at_once, "hold-proceeds"),
    Mutant("a hold has timed out at once, on demand", _timed_out_at_once, "drain-proceeds"),
    Mutant("a hold proceeds though it should wait", _always_proceeds, "hold-waits"),
    Mutant("a hold never proceeds", _never_proceeds, "hold-proceeds"),
    Mutant("a hold proceeds without saying why", _proceeds_without_a_word, "hold-proceeds"),
    Mutant("a deadline begins anew with each process", _deadline_of_each_process, "hold-proceeds-operator-dies"),
    Mutant("a hold outlives a raise that no operator saw", _called_off_unseen, "hold-called-off-unseen"),
    Mutant("a hold outlives a raise that no pass saw", _called_off_between_passes, "hold-called-off-between-passes"),
    Mutant("a deadline stands while lags are unknown", _deadline_stands_while_lags_are_unknown, "hold-proceeds"),
    Mutant("a deadline waits for follow-ups", _follow_ups_are_waited_for, "hold-proceeds-wiped"),
    Mutant("a dry run keeps a hold", _kept_while_nothing_is_prepared, "hold-overridden-in-a-dry-run"),
    Mutant("an invalid spec keeps a hold", _kept_while_nothing_is_prepared, "hold-overridden-while-invalid"),
    Mutant("that a hold gave up is forgotten", _given_up_is_forgotten, "hold-gives-up"),
    Mutant("that a hold gave up is forgotten, on demand", _given_up_is_forgotten, "drain-gives-up"),
    Mutant("a hold that stands still is not stalled", _not_told, "hold-waits"),
    Mutant("a full volume is told as a failure", _full_is_failing, "volume-full"),
    Mutant("a volume does not grow", _never_grows, "volume-full-in-hold"),
    Mutant("pods that ran go with those that never did", _all_go_with_the_first, "several-never-ran-above-one"),
    Mutant("pods that never ran go one by one", _one_by_one, "several-never-ran"),
    Mutant("pods without tasks go one by one", _one_by_one, "idle-5-3"),
    Mutant("a pod with standbys alone counts as one without tasks", _standbys_are_nothing, "idle-5-2"),
    Mutant("a drain goes on to the lowest that was desired", _target_never_rises, "drain-autoscaler-turns"),
    Mutant("a template that waits is not told", _template_not_told, "hold-in-rollout"),
    Mutant("who leaves ill waits for the rollout", _rollout_is_waited_for, "rollout-beside-an-ill-leaver"),
    Mutant("nobody is called back by a raise", _nobody_called_back, "drain-4-2-4"),
    Mutant("the record stays after a raise", _record_stays, "drain-4-2-4"),
)
