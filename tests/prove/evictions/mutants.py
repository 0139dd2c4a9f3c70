"""Deliberate faults in what the operator does for evictions; the sweep has to notice each."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from streamapp.controller.leader.leadership import without_lease
from streamapp.core.actions import disruption, plan
from streamapp.core.actions.decision import CloseBudget, Disruptions, OpenBudget
from streamapp.core.facts.workload import Budget
from streamapp.core.gates import evaluate
from streamapp.core.reasons import Reason
from streamapp.kube.client.client import Json
from streamapp.kube.objects import owned_objects
from tests.prove import instance
from tests.prove.mutants import Mutant
from tests.support.example import NOW


def _stays_open() -> Iterator[Any]:
    wanted = Disruptions(allows=Budget.OPEN, reason=Reason.EveryTaskCovered)
    yield patch.object(disruption, "disruptions_now", lambda evidence, around: wanted)
    yield patch.object(disruption._Disruption, "allowed", lambda self: wanted)
    yield patch.object(disruption, "_busy_with", lambda around: None)


def _does_not_close() -> Iterator[Any]:
    """What is open needs no word at all."""
    yield patch.object(disruption, "still_covered", lambda case, age: None)
    yield patch.object(disruption, "the_other_pods_are_ready", lambda case: None)
    yield patch.object(disruption._Disruption, "_missing", lambda self: [])


def _no_fence_of_budgets() -> Iterator[Any]:
    sound = owned_objects.apply_budget

    async def apply_budget(client: Any, manifest: Json, live: Json | None, owner: str, *check: Any) -> None:
        metadata = {name: each for name, each in manifest["metadata"].items() if name not in {"uid", "resourceVersion"}}
        await sound(client, {**manifest, "metadata": metadata}, live, owner, *check)

    yield patch.object(owned_objects, "apply_budget", apply_budget)


def _one_number() -> Iterator[Any]:
    """A process without a Lease takes what one before it wrote for its own: all have the number of the first."""
    yield patch.object(instance, "without_lease", lambda _: without_lease(NOW))


def _one_reading() -> Iterator[Any]:
    yield patch.object(evaluate, "_agreed", lambda case, coverage: case.reading)


def _turns_pass_in_one_write() -> Iterator[Any]:
    sound = disruption.budget_step

    def budget_step(evidence: Any, wanted: Disruptions, around: Any) -> tuple[Any, ...]:
        steps, pod = sound(evidence, wanted, around), wanted.evictable
        is_fence = evidence.snapshot.workload.budget_lease != evidence.snapshot.lease
        if pod is None or is_fence or not any(isinstance(step, CloseBudget) for step in steps):
            return steps
        return (OpenBudget(reason=wanted.reason, evictable=pod.ordinal, judged_at=evidence.snapshot.now),)

    yield patch.object(plan, "budget_step", budget_step)


EVICTION_MUTANTS = (
    Mutant("the budget stays open", _stays_open, "evict"),
    Mutant("the budget does not close after an eviction", _does_not_close, "node-drain-two", is_long=True),
    Mutant("a late opening is not fenced", _no_fence_of_budgets, "node-drain", ("freeze",), "write"),
    Mutant("processes without a Lease have one number", _one_number, "node-drain", ("freeze",), "write"),
    Mutant("one reading is enough to open", _one_reading, "node-drain"),
    Mutant("a turn passes to another pod in one write", _turns_pass_in_one_write, "streams-node-turns"),
)
