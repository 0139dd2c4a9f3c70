"""Deliberate faults in what the operator does for evictions; the sweep has to notice each."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from streamapp.core.actions import disruption
from streamapp.core.actions.decision import Disruptions
from streamapp.core.facts.workload import Budget
from streamapp.core.gates import evaluate
from streamapp.core.reasons import Reason
from streamapp.kube.client.client import Json
from streamapp.kube.objects import owned_objects
from tests.prove.mutants import Mutant


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


def _one_reading() -> Iterator[Any]:
    yield patch.object(evaluate, "_agreed", lambda case, coverage: case.reading)


EVICTION_MUTANTS = (
    Mutant("the budget stays open", _stays_open, "evict"),
    Mutant("the budget does not close after an eviction", _does_not_close, "node-drain-two"),
    Mutant("a late opening is not fenced", _no_fence_of_budgets, "node-drain", ("freeze",), "write"),
    Mutant("one reading is enough to open", _one_reading, "node-drain"),
)
