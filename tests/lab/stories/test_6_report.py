"""The chain to its end: the record that the stories left goes through Spark, and the report shows what they saw.

Each story left the flight record of the operator and what it saw of its application. The pipeline runs by its commands.
"""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lab.meter.costs import Step, compared, steps_of
from lab.meter.measure import measure_gaps
from lab.scenarios.observed_app import start_all
from lab.scenarios.record import report
from tests.lab.stories.order import holds
from tests.lab.stories.telling import LEFT, Seen, Stage, keep_for_the_report


@pytest.mark.lab
@pytest.mark.timeout(900)
@pytest.mark.steps(1)
@pytest.mark.usefixtures("operator")
def test_report(stage: Stage, tmp_path: Path) -> None:
    if not Seen.left_in(stage.cluster):
        leave_one(stage)
    with stage.story.step("the report has exactly the steps and holds that the stories saw"):
        report.clear(tmp_path)
        shutil.copytree(LEFT / "record", tmp_path / "record")
        made = report.make(tmp_path)
        assert "0 in quarantine" in made.ingested
        for seen in Seen.left_in(stage.cluster):
            figures = made.application(seen.namespace, seen.name, seen.uid)
            steps = steps_of(figures)
            tell_gaps(stage, seen, steps)
            is_shown(figures, made.page.read_text(), seen, steps)
    shutil.rmtree(LEFT)


def is_shown(figures: Mapping[str, Any], page: str, seen: Seen, steps: Sequence[Step]) -> None:
    """Figures and page have its steps and no other one, and each scale-down was held as the story saw it."""
    assert tuple((step.before, step.after) for step in steps) == seen.steps
    assert [step.held_s > 0 for step in steps if step.after < step.before] == [True] * len(seen.holds)
    # A raise that calls a scale-down off ends its hold.
    outcomes = ["", *(step.outcome for step in steps)]
    raises = [step for before, step in zip(outcomes, steps, strict=False) if before != "cancelled"]
    assert [step for step in raises if step.after > step.before and step.held_s > 0] == []
    assert {row["hold_id"] for row in figures["gaps"] if row["source"] == "step"} <= set(seen.holds)
    assert [step for step in steps if f"{step.before} → {step.after}" not in page] == []


def tell_gaps(stage: Stage, seen: Seen, steps: Iterable[Step]) -> None:
    """Print what the record says that users waited beside what the meter finds.

    The part `record` judges both where records count at least once. Under exactly-once nothing judges them yet:
    the gap on record is shorter by up to three seconds, and it names no error that would cover them.
    """
    for step in steps:
        metered = measure_gaps(stage.bootstrap, seen.input_topic, seen.output_topic, step.window)
        cost = compared(seen.namespace, step, metered)
        stage.story.show(f"{cost.name}: {step.gap or 'no gap'} on record, {cost.meter or 'nothing'} metered")


def leave_one(stage: Stage) -> None:
    """Where no story was played before: three pods become two."""
    one = stage.application({"STREAMS_NUM_STANDBY_REPLICAS": "1"}, keys=2_000, rate=50)
    start_all({one: 3})
    with stage.watched("statefulset") as statefulsets:
        one.app.scale(2)
        one.app.wait_until_converged(2)
        keep_for_the_report(one, [(3, 2)], holds(statefulsets.changes()))
