"""Lines of the flight record about autoscalers: on change only, and never from what is not known."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from streamapp.core.facts.autoscalers import NOT_LISTED, Aim, Autoscaler, ReplicaWriters, ReplicaWritersUnknown
from streamapp.flightrecord.autoscalers import AutoscalerLog
from streamapp.flightrecord.changes import FlightLog
from streamapp.flightrecord.schema import AutoscalerLine, to_line
from tests.flightrecord.test_lines import HEAD, look, of
from tests.support import example
from tests.support.example import NOW

CPU = Autoscaler(name="cpu", aim=Aim.STREAM_APP, least=2, most=6, current=3, desired=4, is_active=True)
PAST = Autoscaler(name="past", aim=Aim.STATEFUL_SET, least=1, most=9)


LIMITS: tuple[dict[str, Any], ...] = (
    {"hindrance": "FailedGetResourceMetric"},
    {"limited_by": "TooFewReplicas"},
    {"up_window": timedelta(minutes=2)},
    {"down_window": timedelta(0)},
)


@pytest.fixture
def log() -> AutoscalerLog:
    return AutoscalerLog()


def added(log: AutoscalerLog, *autoscalers: Autoscaler, later: int = 0) -> list[AutoscalerLine]:
    return list(log.lines(HEAD, NOW + timedelta(seconds=later), ReplicaWriters(autoscalers=autoscalers)))


def test_each_is_told_once_with_what_is_known_of_it(log: AutoscalerLog) -> None:
    cpu, past = (line.model_dump(by_alias=True, exclude_none=True) for line in added(log, CPU, PAST))
    assert {key: value for key, value in cpu.items() if key not in {*HEAD, "v", "seq"}} == {
        "kind": "autoscaler",
        "ts": NOW.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "name": "cpu",
        "aimsAt": "StreamApp",
        "minReplicas": 2,
        "maxReplicas": 6,
        "currentReplicas": 3,
        "desiredReplicas": 4,
        "isActive": True,
        "cannotAct": "",
        "limitedBy": "",
    }
    assert past["aimsAt"] == "StatefulSet"
    assert {"currentReplicas", "desiredReplicas", "isActive"} & past.keys() == set()
    assert added(log, CPU, PAST, later=30) == []


@pytest.mark.parametrize(
    "change", [{"least": 3}, {"most": 5}, {"current": 4}, {"desired": 6}, {"is_active": False}, *LIMITS]
)
def test_a_change_is_told_of_the_one_that_changed(log: AutoscalerLog, change: dict[str, Any]) -> None:
    added(log, CPU, PAST)
    changed = replace(CPU, **change)
    assert [(line.name, line.ts) for line in added(log, changed, PAST, later=30)] == [
        ("cpu", NOW + timedelta(seconds=30))
    ]
    assert added(log, changed, PAST, later=60) == []


def test_what_it_cannot_do_and_its_windows_are_told(log: AutoscalerLog) -> None:
    limits = {name: value for limit in LIMITS for name, value in limit.items()}
    (line,) = added(log, replace(CPU, **limits))
    assert (line.cannot_act, line.limited_by) == ("FailedGetResourceMetric", "TooFewReplicas")
    assert (line.up_window_seconds, line.down_window_seconds) == (120, 0)


def test_other_words_for_why_it_cannot_act_are_no_change(log: AutoscalerLog) -> None:
    added(log, CPU)
    assert added(log, replace(CPU, cannot_act="no metrics for 31s")) == []


def test_one_that_is_gone_has_a_last_line_and_is_told_anew_when_it_comes_back(log: AutoscalerLog) -> None:
    added(log, CPU, PAST)
    (gone,) = added(log, PAST, later=30)
    assert (gone.name, gone.is_active, gone.max_replicas, gone.desired_replicas) == ("cpu", False, None, None)
    assert added(log, PAST, later=60) == []
    assert [line.name for line in added(log, CPU, PAST, later=90)] == ["cpu"]


def test_one_that_aims_elsewhere_is_another(log: AutoscalerLog) -> None:
    added(log, CPU)
    lines = added(log, replace(CPU, aim=Aim.STATEFUL_SET))
    assert [(line.aims_at, line.is_active) for line in lines] == [("StatefulSet", True), ("StreamApp", False)]


@pytest.mark.parametrize("unknown", [NOT_LISTED, ReplicaWritersUnknown("They could not be listed")])
def test_while_they_are_not_known_nothing_is_told_and_nothing_forgotten(
    log: AutoscalerLog, unknown: ReplicaWritersUnknown
) -> None:
    assert list(log.lines(HEAD, NOW, unknown)) == []
    added(log, CPU)
    assert list(log.lines(HEAD, NOW, unknown)) == []
    assert added(log, CPU, later=60) == []


def test_a_pass_writes_them() -> None:
    flight, snapshot = FlightLog(HEAD), replace(example.snapshot(), replica_writers=ReplicaWriters(autoscalers=(CPU,)))
    (line,) = of(flight.lines(look(snapshot)), AutoscalerLine)
    assert b'"kind":"autoscaler"' in to_line(line)
    assert flight.lines(look(snapshot)) == []
