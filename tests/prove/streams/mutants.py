"""Deliberate faults in what the operator does for groups of the streams protocol; the sweep has to notice each."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from streamapp.controller.agents import poller
from streamapp.controller.reconcile.apply import Applier
from streamapp.core.actions import standbys
from streamapp.core.actions.decision import SetStandbys
from streamapp.core.actions.rollout import _Rollout
from streamapp.core.actions.standbys import StandbysNow
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.learner_source import streams_group
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.group import StandbySetting
from streamapp.core.facts.hold_record import RaisedStandbys, RaiseState
from streamapp.core.gates import coverage_gates, evaluate
from streamapp.core.reasons import Reason
from tests.prove.mutants import Mutant, _without


def _without_prediction() -> Iterator[Any]:
    yield from _without(coverage_gates.brokers_choose_caught_up_copies)


def _readings_close_together() -> Iterator[Any]:
    yield patch.object(evaluate, "streams_group", lambda evidence: None)


def _without_a_record() -> Iterator[Any]:
    def first_raise(evidence: Evidence, setting: StandbySetting, missing: Refusal) -> StandbysNow:
        step = SetStandbys(replicas=setting.replicas + 1, instead_of=setting, reason=missing.reason)
        return StandbysNow(record=None, steps=(step,))

    yield patch.object(standbys, "_first_raise", first_raise)


def _never_put_back() -> Iterator[Any]:
    yield patch.object(standbys, "_put_back", lambda *found: StandbysNow(record=None))


def _put_back_whatever_is_set() -> Iterator[Any]:
    def put_back(evidence: Evidence, raised: RaisedStandbys, seen: object, setting: StandbySetting) -> StandbysNow:
        is_there = (setting.replicas if setting.is_set else None) == raised.before
        step = SetStandbys(replicas=raised.before, instead_of=setting, reason=Reason.StandbysRestored)
        return StandbysNow(record=None) if is_there else StandbysNow(record=raised, steps=(step,))

    yield patch.object(standbys, "_put_back", put_back)


def _raised_whatever_is_set() -> Iterator[Any]:
    """What another hand set is taken for a write that was lost, and is repeated."""
    yield patch.object(standbys, "_as_seen", lambda evidence, raised, setting: raised)


def _no_late_writes() -> Iterator[Any]:
    put_back = standbys._put_back

    def at_once(*found: Any) -> StandbysNow:
        now = put_back(*found)
        return now if now.steps else replace(now, record=None)

    yield patch.object(standbys, "_put_back", at_once)


def _late_raises_are_other_hands() -> Iterator[Any]:
    """What overwrote another hand's value late is taken for a value of another hand, and stays."""
    as_seen = standbys._as_seen

    def without_late(evidence: Evidence, raised: RaisedStandbys, setting: StandbySetting) -> RaisedStandbys:
        is_over = raised.state in {RaiseState.FOREIGN, RaiseState.RETURNED}
        return raised if is_over else as_seen(evidence, raised, setting)

    yield patch.object(standbys, "_as_seen", without_late)


def _cold_where_raises_are_refused() -> Iterator[Any]:
    """A rollout goes on without learners as soon as the brokers refuse one write."""
    can_have = _Rollout._are_standbys_on_demand

    def unless_refused(self: _Rollout) -> bool:
        streams = streams_group(self.evidence)
        return can_have(self) and streams is not None and isinstance(streams.standbys, StandbySetting)

    yield patch.object(_Rollout, "_are_standbys_on_demand", unless_refused)


def _left_after_the_end() -> Iterator[Any]:
    async def leave(self: Applier, key: Any, application: Any) -> None:
        """Nothing."""

    yield patch.object(Applier, "leave_group_as_it_was", leave)


def _no_ends_for_rollouts() -> Iterator[Any]:
    yield patch.object(poller, "_needs_ends", lambda watch, memory, now: watch.is_busy)


STREAMS_MUTANTS = (
    Mutant("what the broker would do is not asked", _without_prediction, "streams-down-4-2"),
    Mutant("readings are three seconds apart", _readings_close_together, "streams-threads-3-2"),
    Mutant("standbys are raised without a record", _without_a_record, "streams-demand-down-3-2"),
    Mutant("standbys are never put back", _never_put_back, "streams-demand-down-3-2"),
    Mutant(
        "the old value is written over another hand's",
        _put_back_whatever_is_set,
        "streams-demand-set-in-hold",
        is_long=True,
    ),
    Mutant("the raise is written over another hand's", _raised_whatever_is_set, "streams-demand-set-in-hold"),
    Mutant("standbys stay raised after the StreamApp", _left_after_the_end, "streams-demand-deleted"),
    Mutant("no ends are read for a rollout", _no_ends_for_rollouts, "streams-rollout"),
    Mutant(
        *("late raises are other hands'", _late_raises_are_other_hands, "streams-demand-set-in-hold"),
        *(("freeze",), "config-write"),
    ),
    Mutant(
        *("a refused raise is no learners", _cold_where_raises_are_refused, "streams-demand-rollout"),
        *(("setting",), "config-write"),
    ),
    Mutant("no write arrives late", _no_late_writes, "streams-demand-down-3-2", ("freeze",), "config-write"),
)
