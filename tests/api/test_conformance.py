"""The checker of statuses itself: a sound status passes, and every kind of breach is named."""

from datetime import timedelta
from typing import Any

import pytest

from tests.builders import NOW
from tests.conformance import kstatus, violations
from tests.statuses import held_status
from tests.streamapps import ABSENT, changed

Json = dict[str, Any]


def test_a_sound_status_passes() -> None:
    assert violations(held_status(), generation=1, now=NOW, previous=held_status()) == []


@pytest.mark.parametrize(
    ("changes", "breach"),
    {
        "a null": ({"statefulSetReplicas": None}, "something in it is null"),
        "no generation": ({"observedGeneration": ABSENT}, "observedGeneration is None, of 1"),
        "a generation that does not exist": ({"observedGeneration": 2}, "observedGeneration is 2, of 1"),
        "a condition of another generation": (
            {"conditions.0.observedGeneration": 0},
            "Ready: observedGeneration is 0, not 1",
        ),
        "an odd reason": ({"conditions.0.reason": "BadLuck"}, "Ready: BadLuck is no documented reason"),
        "no sentence": ({"conditions.0.message": "3 of 3"}, "Ready: the message is no sentence: '3 of 3'"),
        "a time with fractions": (
            {"conditions.0.lastTransitionTime": "2026-11-21T11:00:00.5Z"},
            "Ready: 2026-11-21T11:00:00.5Z is no time as Kubernetes writes it",
        ),
        "a time to come": (
            {"conditions.0.lastTransitionTime": "2026-11-21T12:00:01Z"},
            "Ready: it moved in the future, at 2026-11-21T12:00:01Z",
        ),
        "reconciling and stalled": (
            {"conditions.1.status": "True", "conditions.1.reason": "Growing", "conditions.2.status": "True"},
            "it is Reconciling and Stalled at once",
        ),
        "a hold that is waited for": (
            {"conditions.1.status": "True"},
            "a hold makes it Reconciling, so that tools would wait for its end",
        ),
        "a hold without words": ({"scaleDown": ABSENT}, "a scale-down is held, but not described"),
        "two answers about convergence": (
            {"conditions.3.status": "True"},
            "Converged is True, convergence.state is Converging",
        ),
        "too many ready": ({"readyReplicas": 4}, "more pods are ready than exist"),
    }.values(),
    ids=str,
)
def test_a_breach_is_named(changes: Json, breach: str) -> None:
    assert breach in violations(changed(held_status(), changes), generation=1, now=NOW)


def test_a_condition_that_is_missing_is_named() -> None:
    status = held_status()
    del status["conditions"][0]
    assert [breach for breach in violations(status, generation=1, now=NOW) if breach.startswith("the conditions are")]


def test_a_time_that_moves_without_its_status_is_named() -> None:
    before = changed(held_status(), {"conditions.0.lastTransitionTime": "2026-11-21T11:00:00Z"})
    found = violations(held_status(), generation=1, now=NOW, previous=before)
    assert found == ["Ready: lastTransitionTime is 2026-11-21T12:00:00Z, not 2026-11-21T11:00:00Z"]


def test_a_time_that_stays_while_its_status_moves_is_named() -> None:
    before = changed(held_status(), {"conditions.0.status": "Unknown"})
    found = violations(held_status(), generation=1, now=NOW + timedelta(seconds=5), previous=before)
    assert found == ["Ready: lastTransitionTime is 2026-11-21T12:00:00Z, not 2026-11-21T12:00:05Z"]


@pytest.mark.parametrize(
    ("answers", "verdict"),
    {
        "ready": ({"Ready": "True"}, "Current"),
        "not ready": ({"Ready": "False"}, "InProgress"),
        "reconciling": ({"Ready": "True", "Reconciling": "True"}, "InProgress"),
        "stalled": ({"Ready": "True", "Stalled": "True"}, "Failed"),
        "nothing yet": ({}, "InProgress"),
    }.values(),
    ids=str,
)
def test_kstatus_is_what_tools_compute(answers: dict[str, str], verdict: str) -> None:
    conditions = [{"type": kind, "status": status} for kind, status in answers.items()]
    assert kstatus({"observedGeneration": 1, "conditions": conditions}, 1) == verdict
