from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from streamapp.api.status.throttle import is_worth_writing
from tests.statuses import held_status
from tests.streamapps import changed

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

MOVING: dict[str, dict[str, Any]] = {
    "progress": {"convergence.progress": 7},
    "lag": {"convergence.remainingLag": 7},
    "the slowest tasks": {"convergence.slowest": []},
    "an estimate": {"convergence.estimatedCompletionTime": "2026-11-21T12:00:05Z", "convergence.lagFalling": True},
    "what an estimate rests on": {"scaleDown.estimateSource": "Learned"},
    "what a hold waits for": {"scaleDown.waitingFor": 1},
    "the time of the last progress": {"scaleDown.lastProgress": "2026-11-21T12:00:05Z"},
    "the note of the window": {"scaleDown.desired": {}},
    "tasks of a pod": {"members.0.active": 7},
    "a message": {"conditions.0.message": "2 of 3."},
}

STANDING: dict[str, dict[str, Any]] = {
    "pods": {"replicas": 2},
    "granted": {"statefulSetReplicas": 2},
    "the generation": {"observedGeneration": 9},
    "ready": {"readyReplicas": 2},
    "the selector": {"selector": "streamapp.dev/app=other"},
    "a condition's status": {"conditions.0.status": "False"},
    "a condition's reason": {"conditions.0.reason": "Steady"},
    "the state of convergence": {"convergence.state": "Converged"},
    "why it is held": {"scaleDown.reason": "NoLearners"},
    "who goes next": {"scaleDown.nextOrdinal": 1},
    "a process ID": {"members.0.processId": "00000009-0000-4000-8f60-794595ad4eac"},
    "a finished step": {"lastSteps": [{"from": 3, "to": 2, "at": "2026-11-21T12:00:00Z", "duration": "5s"}]},
    "no scale-down any more": {"scaleDown": {}},
}


@pytest.mark.parametrize("change", MOVING.values(), ids=MOVING)
def test_what_only_moves_is_written_every_ten_seconds(change: dict[str, Any]) -> None:
    old = held_status()
    new = changed(old, change)
    assert new != old
    written = [NOW - timedelta(seconds=ago) for ago in (0, 9, 10, 60)]
    assert [is_worth_writing(old, new, last, NOW) for last in written] == [False, False, True, True]


@pytest.mark.parametrize("change", STANDING.values(), ids=STANDING)
def test_what_somebody_may_act_upon_is_written_at_once(change: dict[str, Any]) -> None:
    old = held_status()
    assert is_worth_writing(old, changed(old, change), NOW, NOW)


def test_nothing_new_is_never_written() -> None:
    assert not is_worth_writing(held_status(), held_status(), None, NOW)


def test_the_first_status_is_written_at_once() -> None:
    assert is_worth_writing({}, held_status(), NOW, NOW)


def test_a_process_that_has_not_written_yet_writes_what_moved() -> None:
    old = held_status()
    assert is_worth_writing(old, changed(old, {"convergence.progress": 7}), None, NOW)
