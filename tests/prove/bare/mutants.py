"""Deliberate faults in restarts of applications without standbys; each fails in the scene that is made for it."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from streamapp.core.actions import rollout
from streamapp.core.gates import safety_gates
from tests.prove.mutants import Mutant


def _ended_containers_are_believed() -> Iterator[Any]:
    def believed(case: Any) -> frozenset[str]:
        rebalance = case.reading.rebalance
        return frozenset() if rebalance is None else rebalance.rejoined_members

    yield patch.object(safety_gates, "_believed", believed)


def _idle_tasks_do_not_matter() -> Iterator[Any]:
    yield patch.object(rollout, "every_task_runs", lambda _: None)


BARE_MUTANTS = (
    Mutant("the word of a container that has ended counts", _ended_containers_are_believed, "bare-rollout"),
    Mutant("a restart does not wait for tasks that run nowhere", _idle_tasks_do_not_matter, "bare-rollout"),
)
