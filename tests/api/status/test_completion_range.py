"""The estimate and its range: from insight, and the only things that insight changes."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.api.insight import AppInsight, EtaScore, LearnedEta
from streamapp.api.status.progress import completion_range
from streamapp.api.status.translate import policy_of, status_of
from streamapp.api.v1alpha1.status import StreamAppStatus
from streamapp.core.decide import decide
from streamapp.core.evidence.eta import Estimate, EtaAt, NeverAtThisSpeed, NotKnown
from streamapp.core.facts.snapshot import Snapshot
from tests.builders import NOW, a_snapshot, ago, seconds
from tests.streamapps import a_streamapp
from tests.support import example

GOOD = EtaScore(cover=0.9, median_error_seconds=0.0, low=0.5, high=2.0, holds=40, days=20)
BAD = GOOD.model_copy(update={"cover": 0.84})
RATES = {"0": 1000.0}
RANGE = {"earliestCompletionTime", "latestCompletionTime"}
ESTIMATE = {*RANGE, "estimatedCompletionTime", "estimateSource"}
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
LEARNED = st.builds(
    LearnedEta, rates=st.dictionaries(st.sampled_from(["0", "1", "", "x"]), st.floats(0, 1e15)), score=SCORES
)
INSIGHTS = st.builds(
    AppInsight,
    namespace=st.just("demo"),
    app=st.just("wordcount"),
    uid=st.just("u"),
    eta=st.none() | SCORES,
    learned_eta=st.none() | LEARNED,
)
CLOSING = a_snapshot(
    readings=(
        example.reading(example.members(3, lag=50_000), seconds(1)),
        example.reading(example.members(3, lag=80_000), seconds(15)),
    )
)
GROWING = a_snapshot(
    readings=(
        example.reading(example.members(3, lag=80_000), seconds(1)),
        example.reading(example.members(3, lag=50_000), seconds(15)),
    )
)
SINGLE = a_snapshot(readings=(example.reading(example.members(3, lag=50_000), seconds(1)),))
"""One measurement: there is no live estimate."""


def insight(eta: EtaScore | None = None, learned: LearnedEta | None = None) -> AppInsight:
    return AppInsight(namespace="demo", app="wordcount", uid="u", eta=eta, learned_eta=learned)


def status(known: AppInsight | None, snapshot: Snapshot = CLOSING) -> dict[str, Any]:
    found = a_streamapp()
    decision = decide(snapshot, policy_of(found))
    return status_of(found, decision, snapshot, StreamAppStatus(), insight=known)


def without(names: set[str], found: dict[str, Any]) -> dict[str, Any]:
    held = {name: value for name, value in found["scaleDown"].items() if name not in names}
    return {**found, "scaleDown": held}


def estimate_of(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found["scaleDown"].items() if name in ESTIMATE}


RANGES = {
    "a good score": (EtaAt(NOW + seconds(100)), GOOD, (NOW + seconds(50), NOW + seconds(210))),
    "no score": (EtaAt(NOW + seconds(100)), None, (None, None)),
    "a cover too low": (EtaAt(NOW + seconds(100)), GOOD.model_copy(update={"cover": 0.84}), (None, None)),
    "a cover too high": (EtaAt(NOW + seconds(100)), GOOD.model_copy(update={"cover": 0.98}), (None, None)),
    "no estimate": (NotKnown(), GOOD, (None, None)),
    "never": (NeverAtThisSpeed(), GOOD, (None, None)),
    "more than a year": (EtaAt(NOW + timedelta(days=200)), GOOD, (None, None)),
    "in the past": (EtaAt(ago(100)), GOOD, (NOW, NOW)),
}


@pytest.mark.parametrize(
    ("estimate", "score", "expected"),
    RANGES.values(),
    ids=RANGES,
)
def test_a_range_has_an_estimate_and_a_good_score(
    estimate: Estimate, score: EtaScore | None, expected: tuple[datetime | None, datetime | None]
) -> None:
    assert completion_range(estimate, NOW, score) == expected


def test_the_status_of_a_scale_down_has_the_range() -> None:
    assert estimate_of(status(insight(GOOD))) == {
        "estimatedCompletionTime": "2026-11-21T12:00:20Z",
        "earliestCompletionTime": "2026-11-21T12:00:10Z",
        "latestCompletionTime": "2026-11-21T12:00:35Z",
        "estimateSource": "Live",
    }


def test_with_one_measurement_the_estimate_is_by_learned_rates() -> None:
    assert estimate_of(status(None, SINGLE)) == {}
    assert estimate_of(status(insight(None, LearnedEta(rates=RATES, score=GOOD)), SINGLE)) == {
        "estimatedCompletionTime": "2026-11-21T12:00:50Z",
        "earliestCompletionTime": "2026-11-21T12:00:25Z",
        "latestCompletionTime": "2026-11-21T12:01:40Z",
        "estimateSource": "Learned",
    }


WITHOUT_LEARNED_RANGE = {
    "a score that is not good": (LearnedEta(rates=RATES, score=BAD), SINGLE),
    "no rate of this subtopology": (LearnedEta(rates={"7": 1000.0}, score=GOOD), SINGLE),
    "a rate of zero": (LearnedEta(rates={"0": 0.0}, score=GOOD), SINGLE),
    "more than a year": (LearnedEta(rates={"0": 1e-300}, score=GOOD), SINGLE),
    "a range of more than a year": (
        LearnedEta(rates={"0": 50_000 / (200 * 86_400)}, score=GOOD),
        SINGLE,
    ),
    "a lag that grows": (LearnedEta(rates=RATES, score=GOOD), GROWING),
}


@pytest.mark.parametrize(
    ("learned", "snapshot"),
    WITHOUT_LEARNED_RANGE.values(),
    ids=WITHOUT_LEARNED_RANGE,
)
def test_a_learned_estimate_is_not_shown_without_a_good_score_or_against_what_is_measured(
    learned: LearnedEta, snapshot: Snapshot
) -> None:
    assert estimate_of(status(insight(GOOD, learned), snapshot)) == {}


@given(known=INSIGHTS)
def test_no_insight_changes_anything_but_the_range_of_a_live_estimate(known: AppInsight) -> None:
    found = status(known)
    assert without(RANGE, found) == without(RANGE, status(None))
    has_range = RANGE & set(found["scaleDown"])
    assert has_range == (RANGE if known.eta is not None and known.eta.is_good else set())


@given(known=INSIGHTS)
def test_no_insight_changes_anything_but_a_missing_estimate(known: AppInsight) -> None:
    found = status(known, SINGLE)
    assert without(ESTIMATE, found) == status(None, SINGLE)
    shown = estimate_of(found)
    assert set(shown) in (set(), ESTIMATE)
    if shown:
        assert known.learned_eta is not None
        assert known.learned_eta.score.is_good
        assert shown["estimateSource"] == "Learned"


@given(known=INSIGHTS)
def test_no_insight_changes_the_status_of_a_lag_that_grows(known: AppInsight) -> None:
    assert status(known, GROWING) == status(None, GROWING)
