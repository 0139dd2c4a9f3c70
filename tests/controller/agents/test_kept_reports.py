"""What is kept of the agents' reports is bounded for all applications together: a tenant chooses how many there are."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from streamapp.controller.agents.kept_reports import NO_ROOM, KeptReports
from streamapp.controller.agents.poller import AgentPoller
from streamapp.core.facts.agent_reports import AgentSilent, AgentsSeen
from streamapp.core.facts.ids import Ordinal
from streamapp.kube.client.kinds import Key
from streamapp.wire.agent_report import Expected, read_report
from tests.wire.agent_reports import ASKED_AT, FULL, POD_UID, body

EXPECTED = Expected(ordinal=Ordinal(1), pod_uid=POD_UID, application_id="wordcount", asked_at=ASKED_AT)
REPORT = read_report(body(FULL), EXPECTED).report


def seen(*parts: int) -> AgentsSeen:
    """One pod of which so many reports are kept, each with so many parts; and a silent one."""
    reports = tuple(replace(REPORT, parts=number) for number in parts)
    return AgentsSeen({Ordinal(1): reports, Ordinal(2): (AgentSilent(Ordinal(2), "?"),)})


def test_the_namespace_that_keeps_most_loses_its_reports_and_no_other_one_does() -> None:
    kept = KeptReports(most=100)
    assert kept.have_room(Key("small", "a"), seen(10, 10))
    assert kept.have_room(Key("large", "a"), seen(40))
    assert not kept.have_room(Key("large", "b"), seen(20, 30))
    assert kept.have_room(Key("small", "a"), seen(20, 20))
    assert kept.have_room(Key("large", "b"), seen(20))
    assert kept.have_room(Key("small", "a"), seen(45)), "another namespace keeps more"
    assert not kept.have_room(Key("large", "a"), seen(40))


def test_what_is_forgotten_counts_no_longer() -> None:
    kept = KeptReports(most=100)
    assert kept.have_room(Key("one", "a"), seen(90))
    kept.forget(Key("one", "a"))
    assert kept.have_room(Key("two", "a"), seen(90))


def test_agents_whose_reports_have_no_room_count_as_silent_with_the_reason() -> None:
    gateway, key = SimpleNamespace(kept=KeptReports(most=1)), Key("large", "a")
    poller = AgentPoller(cast("Any", gateway), lambda: ASKED_AT, cast("Any", None))
    found = poller._kept(key, seen(5)).words
    assert found == {
        ordinal: (AgentSilent(ordinal, f"agent of ordinal {ordinal}: {NO_ROOM}"),)
        for ordinal in (Ordinal(1), Ordinal(2))
    }
    sound = seen(1)
    assert poller._kept(key, sound) is sound


@pytest.mark.parametrize(
    ("instance", "more"),
    [
        pytest.param({"clientState": "x" * 50_000}, 500, id="a long text"),
        pytest.param({"tasks": [{"id": f"0_{n}", "role": "standby"} for n in range(700)]}, 700, id="tasks"),
        pytest.param({"taskTimes": [{"id": f"0_{n}"} for n in range(700)]}, 700, id="times"),
    ],
)
def test_the_parts_of_a_report_grow_with_what_is_kept_of_it(instance: dict[str, object], more: int) -> None:
    first, *others = FULL["instances"]
    larger = {**FULL, "instances": [{**first, **instance}, *others]}
    assert more - 100 < read_report(body(larger), EXPECTED).report.parts - REPORT.parts <= more
