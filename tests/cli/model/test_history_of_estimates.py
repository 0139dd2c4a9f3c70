"""How far estimates were off: the truth of each is the next step of its hold, and each hold weighs the same."""

from typing import Any

import pytest

from streamapp.api.http.messages import Recorded
from streamapp.cli.model.history.of_estimates import EstimateErrors, estimate_errors
from streamapp.flightrecord import schema as flight
from tests.cli.model.test_history_from_record import decided
from tests.streamapps import UID


def held(seconds_ago: float, estimate: float | None, hold: str = "h-1") -> flight.Record:
    fields: dict[str, Any] = {"hold_id": hold, "eta_seconds": estimate, "target": 2}
    return decided(seconds_ago, 1000 - round(seconds_ago), "LearnersCatchingUp", **fields)


def released(seconds_ago: float, hold: str = "h-1") -> flight.Record:
    return decided(seconds_ago, 1000 - round(seconds_ago), "Covered", "Step", hold_id=hold)


def errors(*lines: flight.Record, uid: str = UID) -> EstimateErrors | None:
    return estimate_errors([Recorded.model_validate_json(flight.to_line(one)) for one in lines], uid)


def test_the_truth_of_an_estimate_is_the_next_step_of_its_hold() -> None:
    found = errors(held(100, 40.0), released(50), held(40, 30.0), released(20), held(90, 500.0, "h-2"))
    assert found == EstimateErrors(p10=-10.0, p50=-10.0, p90=10.0, estimates=2, holds=1)


def test_each_hold_weighs_the_same_however_often_it_was_looked_at() -> None:
    often = [held(100 - number, 100.0 - number) for number in range(40)]
    found = errors(*often, released(0), held(300, 70.0, "h-2"), released(200, "h-2"))
    assert found == EstimateErrors(p10=0.0, p50=0.0, p90=30.0, estimates=41, holds=2)


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param((), id="an empty record"),
        pytest.param((held(100, 40.0),), id="no step yet"),
        pytest.param((held(100, None), released(50)), id="no estimate"),
        pytest.param((held(100, 40.0), released(50, "h-2")), id="a step of another hold"),
    ],
)
def test_without_an_estimate_and_its_release_there_is_nothing_to_say(lines: tuple[flight.Record, ...]) -> None:
    assert errors(*lines) is None


def test_another_streamapp_of_the_name_does_not_count() -> None:
    assert errors(held(100, 40.0), released(50), uid="another") is None
