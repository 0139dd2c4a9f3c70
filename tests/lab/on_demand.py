"""Applications whose learners come on demand, and what is promised to each of them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.layouts.task_layouts import TaskLayouts, layouts
from lab.scenarios.observed_app import ObservedApp, remove_all, start_all, unique_name
from lab.scenarios.stream_app import ON_DEMAND
from tests.lab.promises import SESSION_TIMEOUT_SECONDS

KEYS = 120_000
"""Twenty thousand a task: more than the 10,000 records that a copy may lag."""


@contextmanager
def applications(
    kubectl: Kubectl,
    bootstrap: str,
    kinds: Mapping[str, Mapping[str, str]],
    adapt: Callable[[str, ObservedApp], Mapping[str, Any]] = lambda _kind, _one: ON_DEMAND,
) -> Iterator[dict[str, ObservedApp]]:
    """Deploy one of each kind with three pods under load, side by side.

    `kinds` has the settings of each by name; `adapt` gives what is laid over the spec of each.
    """
    made = {
        kind: DemoApplication(
            unique_name(f"ondemand-{kind}"), settings, KEYS, 100, f"t-ondemand-{kind}", cpu_request="20m"
        )
        for kind, settings in kinds.items()
    }
    remove_all(kubectl, bootstrap, list(made.values()))
    observed = {kind: ObservedApp.of(kubectl, bootstrap, application) for kind, application in made.items()}
    kind_of = {one: kind for kind, one in observed.items()}
    start_all(dict.fromkeys(observed.values(), 3), lambda one: adapt(kind_of[one], one))
    yield observed
    remove_all(kubectl, bootstrap, list(made.values()))


def require_agents(one: ObservedApp) -> None:
    """Each of the three pods has an agent that is at work."""
    status = one.app.status()
    assert status["learnerSource"] == "OnDemand"
    assert [member["agent"] for member in status["members"]] == ["Active"] * 3
    assert one.app.condition("LearnersAvailable")["status"] == "True"


@dataclass(frozen=True)
class Scaled:
    """What became of one application when its replicas were changed."""

    seen: TaskLayouts
    """Every layout of the change."""
    worst_gap_seconds: float


@contextmanager
def recorded(kinds: Mapping[str, ObservedApp], bootstrap: str) -> Iterator[dict[str, TaskLayouts]]:
    """Record the layouts of all of them in the block."""
    with ExitStack() as stack:
        yield {
            kind: stack.enter_context(layouts(bootstrap, one.app.application.application_id))
            for kind, one in kinds.items()
        }


def drain_the_last_of_three(kinds: Mapping[str, ObservedApp], bootstrap: str) -> dict[str, Scaled]:
    """Scale all of them down by one, side by side: most of the time of each is spent waiting."""
    began = {kind: one.clock() for kind, one in kinds.items()}
    with recorded(kinds, bootstrap) as seen:
        for one in kinds.values():
            one.app.scale(2)
        for one in kinds.values():
            one.app.wait_until_converged(2)
    return {kind: Scaled(seen[kind], one.worst_gap_since(began[kind])) for kind, one in kinds.items()}


def require_drained(one: ObservedApp, drained: Scaled) -> None:
    """The pod had no task when it went, and each task moved to a copy."""
    assert one.steps()[0] == (3, 2)
    assert drained.seen.at(granted_at(one)).holds_nothing(2)
    assert len(drained.seen.moves()) >= 2
    assert [move for move in drained.seen.moves() if not move.had_copy] == []
    assert drained.worst_gap_seconds < SESSION_TIMEOUT_SECONDS


def grow_by_a_new_pod(kinds: Mapping[str, ObservedApp], bootstrap: str) -> dict[str, Scaled]:
    """Scale all of them up from two pods to four, side by side, until every pod has tasks.

    Ordinal 2 comes back with its volume, which may be near enough to take over at once; 3 has never been there.
    """
    began = {kind: one.clock() for kind, one in kinds.items()}
    with recorded(kinds, bootstrap) as seen:
        for one in kinds.values():
            one.raise_to(4)
        for kind, one in kinds.items():
            one.app.wait_until_converged(4)
            wait_until("tasks on all pods", partial(_is_shared_by_four, seen[kind]), 120)
            one.app.wait_until_converged(4)
    return {kind: Scaled(seen[kind], one.worst_gap_since(began[kind])) for kind, one in kinds.items()}


def _is_shared_by_four(seen: TaskLayouts) -> bool:
    return seen.shares() == [1, 1, 2, 2]


def require_grown(grown: Scaled) -> None:
    """The pod that was never there got its task behind a learner."""
    to_the_new_one = [move for move in grown.seen.moves() if move.after == 3]
    assert (len(to_the_new_one), [move for move in to_the_new_one if not move.had_copy]) == (1, [])
    assert grown.worst_gap_seconds < SESSION_TIMEOUT_SECONDS


def granted_at(one: ObservedApp) -> datetime:
    """When the last step was granted."""
    return datetime.fromisoformat(one.app.status()["lastSteps"][0]["at"])
