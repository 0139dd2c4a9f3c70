"""The report of what just happened: real steps under load, the operator's record of them, the pipeline, the page.

Two applications grow and shrink side by side, one with learners on demand, one with a standby and no agent. What the
record says of each step is held against the operator's own status and against what the gap meter finds on the topics.
"""

import gzip
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lab.clusters.kubectl import Kubectl, wait_until
from lab.meter.costs import Cost, compared, steps_of
from lab.meter.measure import measure_gaps
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.observed_app import ObservedApp, remove_all, start_all, unique_name
from lab.scenarios.record import flight_record, report
from lab.scenarios.record.report import Report
from lab.scenarios.stream_app import ON_DEMAND

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(600)]

KINDS = {"ondemand": ("0", ON_DEMAND), "standby": ("1", {})}
KEYS = 60_000
WISHES = (3, 4, 2)
SECONDS_BETWEEN_TWO_LOOKS = 4.0


@dataclass(frozen=True)
class Made:
    """The applications after their steps, and the report of them."""

    apps: Mapping[str, ObservedApp]
    report: Report
    files: tuple[Path, ...]

    def figures(self, kind: str) -> dict[str, Any]:
        """What the report has of one."""
        app = self.apps[kind].app
        return self.report.application(app.namespace, app.name, app.read()["metadata"]["uid"])

    def costs(self, kind: str) -> list[Cost]:
        """Its steps, with what the meter finds in the window of each."""
        one = self.apps[kind]
        topics = one.app.application.input_topic, one.app.application.output_topic
        return [
            compared(kind, step, measure_gaps(one.bootstrap, *topics, step.window))
            for step in steps_of(self.figures(kind))
        ]


@pytest.fixture(scope="module")
def made(
    kubectl: Kubectl,
    bootstrap: str,
    operator: None,  # noqa: ARG001 (it must run)
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Made]:
    applications = {
        kind: DemoApplication(
            unique_name(f"report-{kind}"),
            {"STREAMS_NUM_STANDBY_REPLICAS": standbys},
            KEYS,
            200,
            f"t-report-{kind}",
            cpu_request="20m",
        )
        for kind, (standbys, _) in KINDS.items()
    }
    remove_all(kubectl, bootstrap, list(applications.values()))
    observed = {kind: ObservedApp.of(kubectl, bootstrap, one) for kind, one in applications.items()}
    specs = {one.app.namespace: KINDS[kind][1] for kind, one in observed.items()}
    start_all(dict.fromkeys(observed.values(), WISHES[0]), lambda one: specs[one.app.namespace])
    for wish in WISHES[1:]:
        for one in observed.values():
            one.app.scale(wish)
        for one in observed.values():
            one.app.wait_until_converged(wish)
            wait_until(f"tasks on {wish} pods", lambda one=one, wish=wish: len(owners(one)) == wish, 120)  # type: ignore[misc]
            one.app.wait_until_converged(wish)
    time.sleep(flight_record.WRITTEN_WITHIN_SECONDS + 2)
    folder = tmp_path_factory.mktemp("report")
    files = flight_record.take(kubectl, report.clear(folder))
    yield Made(observed, report.make(folder), tuple(files))
    remove_all(kubectl, bootstrap, list(applications.values()))


def owners(one: ObservedApp) -> set[str]:
    return set(one.group.ownership().owners.values())


def lines(files: tuple[Path, ...]) -> list[dict[str, Any]]:
    return [json.loads(line) for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]


def test_no_line_of_the_record_is_lost_doubled_or_in_quarantine(made: Made) -> None:
    numbers: dict[str, list[int]] = defaultdict(list)
    every = lines(made.files)
    for line in every:
        numbers[line["recorder"]].append(line["seq"])
    for recorder, found in numbers.items():
        ordered = sorted(found)
        assert all(after - before == 1 for before, after in pairwise(ordered)), recorder
        assert ordered[0] == 0, recorder
    assert [line for line in every if line.get("mark") == "DROPPED"] == []
    assert f"{len(every)} lines: {len(every)} taken in, 0 doubled, 0 in quarantine" in made.report.ingested


@pytest.mark.parametrize("kind", KINDS)
def test_every_change_of_the_wish_is_a_step_that_converged(made: Made, kind: str) -> None:
    steps = steps_of(made.figures(kind))
    assert [(step.before, step.after, step.outcome) for step in steps] == [
        (3, 4, "converged"),
        (4, 2, "converged"),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_removal_has_the_reasons_for_which_it_was_held_and_as_long_as_the_operator_says(
    made: Made, kind: str
) -> None:
    up, down = steps_of(made.figures(kind))
    assert (up.held_s, up.held_by) == (0, ())
    assert down.held_by
    assert sum(seconds for _, seconds in down.held_by) == pytest.approx(down.held_s)
    told = [step for step in made.apps[kind].app.status()["lastSteps"] if step["from"] <= 4]
    longest = max(seconds(step["heldDuration"]) for step in told)
    assert down.held_s == pytest.approx(longest, abs=SECONDS_BETWEEN_TWO_LOOKS)
    closed = [row["hold_id"] for row in made.figures(kind)["gaps"] if row["source"] == "step"]
    assert len(closed) <= len(told)


def seconds(text: str) -> float:
    """A duration as the resource tells it: `1m3s`, `9s163ms`."""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
    return sum(int(number) * units[unit] for number, unit in re.findall(r"(\d+)(ms|h|m|s)", text))


@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_of_each_step_agrees_with_what_its_users_waited(made: Made, kind: str) -> None:
    for cost in made.costs(kind):
        assert cost.step.gap is not None, f"{kind} {cost.step.before} -> {cost.step.after}: no gap on record"
        assert cost.meter is not None
        assert cost.agree is True, f"{kind} {cost.step.before} -> {cost.step.after}: {cost.step.gap} and {cost.meter}"


def test_the_agents_tell_gaps_closely_and_members_only_at_their_next_join(made: Made) -> None:
    (_, close), (_, wide) = (steps_of(made.figures(kind)) for kind in KINDS)
    assert close.gap is not None
    assert wide.gap is not None
    assert close.gap.most - close.gap.least < wide.gap.most - wide.gap.least


def test_the_page_names_each_step_with_its_gap_and_what_held_it(made: Made) -> None:
    text = made.report.page.read_text()
    for kind in KINDS:
        for step in steps_of(made.figures(kind)):
            assert f"{step.before} → {step.after}" in text
            for reason, _ in step.held_by:
                assert reason in text
            for task, _ in step.waited_for[:1]:
                assert task in text
        assert made.figures(kind)["sentence"] in text
