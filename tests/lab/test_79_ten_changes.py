"""Ten changes of the replicas, each predicted by `kubectl streamapp plan` before it is made, under load.

The prediction is written down first. Where every task ends must be as predicted eight times of ten. The time must lie
within the predicted tenths, eight of ten by their meaning, at least six times, by the test's own recording of the
group, not the operator's. What was predicted and seen is printed as a table.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.scenarios import operator_deployment
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.layouts.task_layouts import TaskLayout, TaskLayouts, layouts
from lab.scenarios.observed_app import ObservedApp, remove_all, start_all, unique_name
from lab.scenarios.stream_app import ON_DEMAND
from tests.lab.plugin import run_kubectl

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(1500)]
NAMESPACE = "t-ten-changes"
KINDS = {
    "on-demand": ({"STREAMS_NUM_STANDBY_REPLICAS": "0"}, ON_DEMAND),
    "standby": ({"STREAMS_NUM_STANDBY_REPLICAS": "1"}, {}),
    "streams": ({"STREAMS_GROUP_PROTOCOL": "streams"}, ON_DEMAND),
}
RECORDS = 600_000
"""A hundred thousand a task: what a pod restores in about a second."""
COUNTS = (2, 3, 4, 3, 2, 4, 2, 3, 4, 2, 3)
MOVES_RIGHT, TIMES_RIGHT = 8, 6
"""Of ten. What lies on the volume of a pod that comes back is not known, and decides what it takes over."""
QUIET_SECONDS = 12.0
"""A group that looks the same for so long after it has converged stays so."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change, predicted and seen."""

    before: int
    after: int
    predicted: dict[str, Any]
    """The outcome that `plan` chose."""
    seconds: float
    """From the write of `spec.replicas` until the group looked as it stayed."""
    moved: frozenset[tuple[str, int, int]]
    """Task, ordinal before, ordinal after."""

    @property
    def wrong(self) -> frozenset[tuple[str, int, int]]:
        """Moves that were predicted and not seen, or seen and not predicted."""
        return self.moved ^ {(one["task"], one["from"], one["to"]) for one in self.predicted["moved"]}

    @property
    def is_within(self) -> bool:
        """Whether the time lies between the predicted tenths."""
        spread = self.predicted["seconds"]
        return bool(spread["p10"] <= self.seconds <= spread["p90"])

    @property
    def factor(self) -> float:
        """How wide the predicted range is."""
        return float(self.predicted["seconds"]["p90"] / self.predicted["seconds"]["p10"])

    def row(self) -> str:
        """A line of the table."""
        spread = self.predicted["seconds"]
        seen = f"{self.seconds:5.1f} s {'within ' if self.is_within else 'OUTSIDE'}"
        moves = f"{self.predicted['moves']} moves, {len(self.wrong)} wrong"
        predicted = f"{spread['p10']:5.1f} to {spread['p90']:5.1f} s (factor {self.factor:.2f})"
        return f"{self.before} to {self.after}: predicted {predicted}, seen {seen}, {moves}"


@pytest.fixture(params=KINDS)
def app(
    request: pytest.FixtureRequest,
    kubectl: Kubectl,
    bootstrap: str,
    operator: None,  # noqa: ARG001 (it must run)
) -> Iterator[ObservedApp]:
    """Deploy one kind under a quiet load, with as many pods as the first change begins with."""
    settings, spec = KINDS[request.param]
    application = DemoApplication(
        unique_name(f"ten-{request.param}"), settings, RECORDS, 100, f"{NAMESPACE}-{request.param}", cpu_request="20m"
    )
    remove_all(kubectl, bootstrap, [application])
    observed = ObservedApp.of(kubectl, bootstrap, application)
    start_all({observed: COUNTS[0]}, lambda _: spec)
    yield observed
    remove_all(kubectl, bootstrap, [application])


def compared_by_operator(app: ObservedApp) -> float:
    """How many of its own predictions the operator has compared with what it saw."""
    lines = operator_deployment.metrics(app.app.kubectl).splitlines()
    own = [line for line in lines if line.startswith("streamapp_forecasts_total{")]
    return sum(float(line.rpartition(" ")[2]) for line in own if f'namespace="{app.app.namespace}"' in line)


def predicted(app: ObservedApp, session: Session, to: int, file: Path) -> dict[str, Any]:
    """Ask for the prediction, write it down, and give the outcome that it names."""
    asked = ("plan", app.app.name, "--to", str(to), "--namespace", app.app.namespace, "-o", "json")
    ran = run_kubectl(session, "streamapp", *asked)
    assert ran.code == 0, ran.err
    file.write_text(ran.out)
    chosen: dict[str, Any] = next(one for one in json.loads(ran.out)["outcomes"] if one["chosen"])
    return chosen


def owners(layout: TaskLayout) -> dict[str, int]:
    """The ordinal of each task."""
    return {task: ordinal for ordinal, tasks in layout.active.items() for task in tasks}


def settled(app: ObservedApp, seen: TaskLayouts, to: int) -> TaskLayout:
    """The layout that stays."""
    app.app.wait_until_converged(to)

    def is_quiet() -> bool:
        return (datetime.now(UTC) - seen.layouts[-1].at).total_seconds() >= QUIET_SECONDS

    wait_until("the group stays as it is", is_quiet, 120)
    return seen.layouts[-1]


def change(app: ObservedApp, session: Session, bootstrap: str, counts: tuple[int, int], folder: Path) -> Change:
    """Predict one change, make it, and see what comes of it."""
    before, to = counts
    with layouts(bootstrap, app.app.application.application_id) as seen:
        wait_until("a first layout", lambda: bool(seen.layouts), 60)
        forecasts, was = compared_by_operator(app), owners(seen.layouts[-1])
        chosen = predicted(app, session, to, folder / f"{len(list(folder.iterdir()))}-{before}-to-{to}.json")
        began = datetime.now(UTC)
        app.app.scale(to)
        last = settled(app, seen, to)
        wait_until("the operator has compared its own prediction", lambda: compared_by_operator(app) > forecasts, 120)
    assert seen.failure is None
    ends = owners(last)
    moved = [(task, ordinal, ends[task]) for task, ordinal in was.items() if ends[task] != ordinal]
    found = Change(
        before=before,
        after=to,
        predicted=chosen,
        seconds=(last.at - began).total_seconds(),
        moved=frozenset(moved),
    )
    print(found.row())  # noqa: T201 (the figures are what this proof is for)
    return found


def test_ten_changes_are_as_predicted(app: ObservedApp, session: Session, bootstrap: str, tmp_path: Path) -> None:
    made = [change(app, session, bootstrap, counts, tmp_path) for counts in pairwise(COUNTS)]
    table = "\n".join(one.row() for one in made)
    print(table)  # noqa: T201
    assert len(made) == len(list(tmp_path.iterdir())) == 10
    assert sum(not one.wrong for one in made) >= MOVES_RIGHT, table
    assert sum(one.is_within for one in made) >= TIMES_RIGHT, table
