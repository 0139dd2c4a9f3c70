"""The range of an estimate: from insight, and the only thing that insight changes."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.api.insight import EtaScore
from streamapp.api.status.progress import completion_range
from streamapp.api.status.translate import policy_of, status_of
from streamapp.api.v1alpha1.status import StreamAppStatus
from streamapp.core.decide import decide
from streamapp.core.evidence.eta import Estimate, EtaAt, NeverAtThisSpeed, NotKnown
from tests.builders import NOW, a_snapshot, ago, seconds
from tests.streamapps import a_streamapp
from tests.support import example

GOOD = EtaScore(cover=0.9, median_error_seconds=0.0, low=0.5, high=2.0, holds=40, days=20)
RANGE = {"earliestCompletionTime", "latestCompletionTime"}
SCORES = st.fixed_dictionaries(
    {
        "cover": st.floats(0, 1),
        "median_error_seconds": st.floats(-1e9, 1e9),
        "low": st.floats(0, 1000),
        "high": st.floats(0, 1000),
        "holds": st.integers(0, 2**53),
        "days": st.integers(0, 2**53),
    }
).map(EtaScore.model_validate)
CLOSING = a_snapshot(
    readings=(
        example.reading(example.members(3, lag=50_000), seconds(1)),
        example.reading(example.members(3, lag=80_000), seconds(15)),
    )
)


def status(score: EtaScore | None) -> dict[str, Any]:
    found = a_streamapp()
    decision = decide(CLOSING, policy_of(found))
    return status_of(found, decision, CLOSING, StreamAppStatus(), score=score)


def without_range(found: dict[str, Any]) -> dict[str, Any]:
    held = {name: value for name, value in found["scaleDown"].items() if name not in RANGE}
    return {**found, "scaleDown": held}


@pytest.mark.parametrize(
    ("estimate", "score", "expected"),
    {
        "a good score": (EtaAt(NOW + seconds(100)), GOOD, (NOW + seconds(50), NOW + seconds(210))),
        "no score": (EtaAt(NOW + seconds(100)), None, (None, None)),
        "a cover too low": (EtaAt(NOW + seconds(100)), GOOD.model_copy(update={"cover": 0.84}), (None, None)),
        "a cover too high": (EtaAt(NOW + seconds(100)), GOOD.model_copy(update={"cover": 0.98}), (None, None)),
        "no estimate": (NotKnown(), GOOD, (None, None)),
        "never": (NeverAtThisSpeed(), GOOD, (None, None)),
        "more than a year": (EtaAt(NOW + timedelta(days=200)), GOOD, (None, None)),
        "in the past": (EtaAt(ago(100)), GOOD, (NOW, NOW)),
    }.values(),
    ids=str,
)
def test_a_range_has_an_estimate_and_a_good_score(
    estimate: Estimate, score: EtaScore | None, expected: tuple[datetime | None, datetime | None]
) -> None:
    assert completion_range(estimate, NOW, score) == expected


def test_the_status_of_a_scale_down_has_the_range() -> None:
    held = status(GOOD)["scaleDown"]
    assert held["estimatedCompletionTime"] == "2026-11-21T12:00:20Z"
    assert held["earliestCompletionTime"] == "2026-11-21T12:00:10Z"
    assert held["latestCompletionTime"] == "2026-11-21T12:00:35Z"


@given(score=SCORES)
def test_no_insight_changes_anything_but_the_range(score: EtaScore) -> None:
    found = status(score)
    assert without_range(found) == status(None)
    has_range = RANGE & set(found["scaleDown"])
    assert has_range == (RANGE if score.is_good else set())
