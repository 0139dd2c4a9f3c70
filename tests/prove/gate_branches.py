"""What stands behind some gates and is no gate: rules of the product elsewhere, each with patches that take it away.

Some of them are the claims that a gate asks again. Those are made wrongly for the first 40 seconds of a story only: a
gate that refuses them for ever would keep its story from its end.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from streamapp.core.actions import open_step, scale_down
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.membership import MemberPlacement
from streamapp.core.facts.hold_record import OpenStep
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TopologyUnknown
from streamapp.core.gates import candidates, evaluate
from streamapp.core.gates.case import Gate, GateInput
from tests.support.example import NOW

CLAIMED_UNTIL = NOW + timedelta(seconds=40)
"""The end of wrong claims, by the world's clock."""


def _chain(name: str) -> tuple[Gate, ...]:
    """A chain as the end of a step asks it, without the gates that are taken out at present."""
    chain: tuple[Gate, ...] = vars(open_step)[name]
    return chain


def _joins_may_be_old() -> Iterator[Any]:
    yield patch.object(evaluate, "_join_is_old", lambda _: None)


def _pods_that_must_stay_are_drained() -> Iterator[Any]:
    yield patch.object(candidates, "least_replicas", lambda *_: 0)


def _a_step_asks_for_no_tasks() -> Iterator[Any]:
    def task_that_does_not_run(step: OpenStep, case: GateInput) -> Any:  # noqa: ARG001 (of the function it replaces)
        return evaluate.first_refusal(_chain("STEP_END_GATES"), case)

    yield patch.object(open_step, "_task_that_does_not_run", task_that_does_not_run)


def _unknown_tasks(case: GateInput) -> GateInput:
    """The same case, where nobody knows which tasks there are."""
    snapshot = replace(case.evidence.snapshot, task_set=TopologyUnknown("nobody knows"))
    return replace(case, evidence=Evidence(snapshot, case.evidence.policy))


def _a_step_ends_with_unknown_tasks() -> Iterator[Any]:
    """As of a step that did not rest on them."""

    def task_that_does_not_run(step: OpenStep, case: GateInput) -> Any:  # noqa: ARG001 (of the function it replaces)
        return evaluate.first_refusal(_chain("STEP_END_GATES"), _unknown_tasks(case))

    yield patch.object(open_step, "_task_that_does_not_run", task_that_does_not_run)


def _tasks_are_forgotten_in_a_step() -> Iterator[Any]:
    """As of a step that rested on them, at first."""

    def task_that_does_not_run(step: OpenStep, case: GateInput) -> Any:  # noqa: ARG001 (of the function it replaces)
        is_forgotten = case.snapshot.now < CLAIMED_UNTIL
        return evaluate.first_refusal(_chain("STEP_END_BY_TASKS_GATES"), _unknown_tasks(case) if is_forgotten else case)

    yield patch.object(open_step, "_task_that_does_not_run", task_that_does_not_run)


def _any_pod_never_ran() -> Iterator[Any]:
    sound = candidates.is_without_a_past

    def is_without_a_past(ordinal: Ordinal, placement: MemberPlacement, snapshot: Snapshot) -> bool:
        return snapshot.now < CLAIMED_UNTIL or sound(ordinal, placement, snapshot)

    yield patch.object(candidates, "is_without_a_past", is_without_a_past)


def _any_pod_is_idle() -> Iterator[Any]:
    sound = candidates._is_idle

    def is_idle(ordinal: Ordinal, placement: MemberPlacement, snapshot: Snapshot) -> bool:
        return snapshot.now < CLAIMED_UNTIL or sound(ordinal, placement, snapshot)

    yield patch.object(candidates, "_is_idle", is_idle)


def _any_pod_is_drained() -> Iterator[Any]:
    sound = candidates.next_drained

    def next_drained(evidence: Any, granted: int, target: int) -> Any:
        found = sound(evidence, granted, target)
        if evidence.snapshot.now >= CLAIMED_UNTIL or found.kind is not candidates.RemovalKind.DRAINED:
            return found
        top_down = tuple(Ordinal(number) for number in range(granted - 1, target - 1, -1))
        return candidates.RemovalCandidate(found.kind, top_down, target, found.drained_from)

    for module in (candidates, scale_down):
        yield patch.object(module, "next_drained", next_drained)


BESIDE: Mapping[str, Callable[[], Iterator[Any]]] = {
    "a join must be recent": _joins_may_be_old,
    "a pod that must stay is not drained": _pods_that_must_stay_are_drained,
    "the tasks are known as a step ends": _a_step_ends_with_unknown_tasks,
    "the tasks of a step stay known": _tasks_are_forgotten_in_a_step,
    "a step asks for its tasks": _a_step_asks_for_no_tasks,
    "only a pod that never ran is said to be one": _any_pod_never_ran,
    "only a pod without tasks is said to be one": _any_pod_is_idle,
    "only pods that are drained go together": _any_pod_is_drained,
}
"""By what each rule says."""
