"""Lines of the flight record about settings: those of the StreamApp, and those that agents tell of the clients."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from streamapp.core.facts.agent_reports import AgentReport, AgentsSeen, ClientSettings
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.flightrecord.changes import FlightLog
from streamapp.flightrecord.schema import ConfigLine
from tests.flightrecord.test_lines import HEAD, later, look, of
from tests.support import example

POLICY = ScalingPolicy(agent=True)
CLIENT = ClientSettings(
    heartbeat=timedelta(seconds=3),
    session_timeout=timedelta(seconds=45),
    is_static=False,
    leaves_on_close=True,
    kafka_version="4.2.1",
)


def with_clients(*settings: ClientSettings) -> AgentsSeen:
    """Each agent tells other settings."""
    seen = example.agents(example.members())
    return replace(
        seen,
        words={
            ordinal: tuple(replace(word, settings=one) for word in seen.words[ordinal] if isinstance(word, AgentReport))
            for ordinal, one in zip(sorted(seen.words), settings, strict=True)
        },
    )


def told(log: FlightLog, agents: AgentsSeen, minutes: float = 0) -> list[dict[str, Any]]:
    names = ("heartbeat_seconds", "session_timeout_seconds", "is_static", "leaves_on_close", "streams_versions")
    snapshot = replace(example.snapshot(), agents=agents)
    if minutes:
        snapshot = later(snapshot, timedelta(minutes=minutes))
    return [{name: getattr(line, name) for name in names} for line in of(log.lines(look(snapshot, POLICY)), ConfigLine)]


def test_the_settings_of_the_clients_are_on_record_and_stay_while_agents_are_silent() -> None:
    log = FlightLog(HEAD)
    assert told(log, with_clients(CLIENT, CLIENT, CLIENT)) == [
        {
            "heartbeat_seconds": 3.0,
            "session_timeout_seconds": 45.0,
            "is_static": False,
            "leaves_on_close": True,
            "streams_versions": ("4.2.1",),
        }
    ]
    assert told(log, with_clients(ClientSettings(), ClientSettings(), CLIENT)) == []


def test_of_pods_that_differ_the_record_has_what_makes_a_departure_slow() -> None:
    slow = replace(CLIENT, session_timeout=timedelta(minutes=3), leaves_on_close=False, kafka_version="3.9.0")
    static = replace(CLIENT, is_static=True)
    assert told(FlightLog(HEAD), with_clients(CLIENT, slow, static)) == [
        {
            "heartbeat_seconds": 3.0,
            "session_timeout_seconds": 180.0,
            "is_static": True,
            "leaves_on_close": False,
            "streams_versions": ("3.9.0", "4.2.1"),
        }
    ]


def test_the_objective_is_on_record() -> None:
    (line,) = of(FlightLog(HEAD).lines(look(example.snapshot())), ConfigLine)
    assert line.availability == 99.9


def test_after_a_time_without_a_look_the_tasks_are_told_again() -> None:
    log, snapshot = FlightLog(HEAD), example.snapshot()
    before, after = (of(log.lines(look(one)), ConfigLine) for one in (snapshot, later(snapshot, timedelta(minutes=20))))
    assert [line.tasks for line in (*before, *after)] == [6, 6]
