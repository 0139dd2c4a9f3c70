"""Deliberate faults in what the operator does for groups of the streams protocol; the sweep has to notice each."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from streamapp.controller.agents import poller
from streamapp.controller.reconcile.apply import Applier
from streamapp.core.actions import standbys
from streamapp.core.actions.decision import SetStandbys
from streamapp.core.actions.standbys import StandbysNow
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.group import StandbySetting
from streamapp.core.facts.hold_record import RaisedStandbys
from streamapp.core.gates import coverage_gates, evaluate
from streamapp.core.reasons import Reason
from tests.prove.mutants import Mutant, _without


def _without_prediction() -> Iterator[Any]:
    yield from _without(coverage_gates.brokers_choose_caught_up_copies)


def _readings_close_together() -> Iterator[Any]:
    yield patch.object(evaluate, "streams_group", lambda evidence: None)


def _without_a_record() -> Iterator[Any]:
    def first_raise(evidence: Evidence, setting: StandbySetting, missing: Refusal) -> StandbysNow:
        return StandbysNow(record=None, steps=(SetStandbys(replicas=setting.replicas + 1, reason=missing.reason),))

    yield patch.object(standbys, "_first_raise", first_raise)


def _never_put_back() -> Iterator[Any]:
    yield patch.object(standbys, "_put_back", lambda evidence, raised, setting: StandbysNow(record=None))


def _put_back_whatever_is_set() -> Iterator[Any]:
    def put_back(evidence: Evidence, raised: RaisedStandbys, setting: StandbySetting) -> StandbysNow:
        is_there = (setting.replicas if setting.is_set else None) == raised.before
        step = SetStandbys(replicas=raised.before, reason=Reason.StandbysRestored)
        return StandbysNow(record=None) if is_there else StandbysNow(record=raised, steps=(step,))

    yield patch.object(standbys, "_put_back", put_back)


def _raised_whatever_is_set() -> Iterator[Any]:
    """What another hand set is taken for a write that was lost, and is repeated."""
    yield patch.object(standbys, "_as_seen", lambda raised, setting: raised)


def _no_late_writes() -> Iterator[Any]:
    yield patch.object(standbys, "LATE", timedelta(0))


def _left_after_the_end() -> Iterator[Any]:
    async def leave(self: Applier, key: Any, application: Any) -> None:
        """Nothing."""

    yield patch.object(Applier, "leave_group_as_it_was", leave)


def _no_ends_for_rollouts() -> Iterator[Any]:
    yield patch.object(poller, "_is_awaited", lambda watch, memory: watch.is_busy)


STREAMS_MUTANTS = (
    Mutant("what the broker would do is not asked", _without_prediction, "streams-down-4-2"),
    Mutant("readings are three seconds apart", _readings_close_together, "streams-threads-3-2"),
    Mutant("standbys are raised without a record", _without_a_record, "streams-demand-down-3-2"),
    Mutant("standbys are never put back", _never_put_back, "streams-demand-down-3-2"),
    Mutant("the old value is written over another hand's", _put_back_whatever_is_set, "streams-demand-set-in-hold"),
    Mutant("the raise is written over another hand's", _raised_whatever_is_set, "streams-demand-set-in-hold"),
    Mutant("standbys stay raised after the StreamApp", _left_after_the_end, "streams-demand-deleted"),
    Mutant("no ends are read for a rollout", _no_ends_for_rollouts, "streams-rollout"),
    Mutant("no write arrives late", _no_late_writes, "streams-demand-down-3-2", ("freeze",), "config-write"),
)
