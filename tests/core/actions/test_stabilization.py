"""How long a lower wish must last before anything is prepared for it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from streamapp.core.decide import decide
from streamapp.core.facts.snapshot import DesiredReplicas
from tests.builders import NOW, POLICY, a_snapshot, a_wish, ago, told


def dated(replicas: int, written: float, *seen: tuple[float, int]) -> DesiredReplicas:
    """A wish with its history, and how many seconds ago the field was written."""
    return replace(a_wish(replicas, *seen), unchanged_since=ago(written))


@pytest.mark.parametrize(
    ("desired", "verdict"),
    [
        pytest.param(a_wish(2, (600, 3), (30, 2)), ("Step", "Covered"), id="lower for the whole window"),
        pytest.param(a_wish(2, (600, 3), (29, 2)), ("Hold", "Stabilizing"), id="lower for a second less"),
        pytest.param(a_wish(2, (29, 2)), ("Hold", "Stabilizing"), id="memory does not reach back"),
        pytest.param(a_wish(2), ("Hold", "Stabilizing"), id="no memory at all"),
        pytest.param(a_wish(2, (600, 2), (20, 3), (10, 2)), ("Hold", "Stabilizing"), id="it rose in between"),
        pytest.param(dated(2, 30, (5, 2)), ("Step", "Covered"), id="written before the memory began"),
        pytest.param(dated(2, 30), ("Step", "Covered"), id="no memory, but a date"),
        pytest.param(dated(2, 29, (5, 2)), ("Hold", "Stabilizing"), id="written a second too late"),
        pytest.param(dated(2, -5, (5, 2)), ("Hold", "Stabilizing"), id="the API server's clock is ahead"),
        pytest.param(dated(2, 600, (20, 3), (10, 2)), ("Hold", "Stabilizing"), id="memory contradicts the date"),
    ],
)
def test_a_wish_must_have_been_lower_for_the_whole_window(desired: object, verdict: tuple[str, str]) -> None:
    assert told(decide(a_snapshot(app={"desired": desired}), POLICY)) == verdict


@pytest.mark.parametrize(
    ("desired", "until"),
    [
        pytest.param(a_wish(2, (600, 3), (29, 2)), 1, id="since it fell"),
        pytest.param(a_wish(2, (29, 2)), 1, id="as far back as is known"),
        pytest.param(a_wish(1, (600, 2), (20, 3), (10, 2), (5, 1)), 20, id="since it fell for the last time"),
        pytest.param(a_wish(2), None, id="nothing is known"),
        pytest.param(dated(2, 20, (5, 2)), 10, id="since it was written"),
    ],
)
def test_how_long_it_must_last_is_a_time_of_day(desired: DesiredReplicas, until: int | None) -> None:
    detail = decide(a_snapshot(app={"desired": desired}), POLICY).detail
    last = "" if until is None else f", which is until {NOW + timedelta(seconds=until):%H:%M:%S} UTC"
    assert detail == f"It must last for 30 s{last}."


def test_nothing_is_prepared_before_the_wish_is_stable() -> None:
    assert decide(a_snapshot(record=None, app={"desired": a_wish(2, (10, 2))}), POLICY).plan == ()


def test_a_hold_on_record_survives_a_restart_of_the_operator_while_the_memory_fills() -> None:
    assert decide(a_snapshot(app={"desired": a_wish(2, (10, 2))}), POLICY).plan == ()
