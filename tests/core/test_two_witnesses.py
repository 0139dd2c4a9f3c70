"""Each fact that lets a pod go has two witnesses: without one of them, or where they disagree, the pod stays.

The page of that decision has a row for each fact, with the reasons. Here every row is played, from a state in which the
next decision is a removal.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from streamapp.core.decide import decide
from streamapp.core.facts.agent_reports import AgentSilent
from streamapp.core.facts.group import GroupReading, Member
from streamapp.core.facts.hold_record import RecordUnreadable
from streamapp.core.facts.ids import Ordinal, ProcessId
from streamapp.core.facts.lag import EndsUnreadable
from streamapp.core.facts.policy import LearnerSource, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TopologyUnknown
from streamapp.core.facts.workload import Container
from tests.builders import POLICY, a_pod, a_snapshot, a_wish, not_running, pods, seconds, told, volumes
from tests.support import example
from tests.support.streams import streams_reading

PAGE = Path(__file__).parents[2] / "docs" / "decisions" / "0024-two-witnesses.md"
GROUP = example.members(3)
OTHERS = example.members(3, standbys=False)
AGENTS = ScalingPolicy(agent=True, source=LearnerSource.STANDBYS)
STRANGER = ProcessId(UUID(int=9))


def readings(*groups: tuple[Member, ...]) -> tuple[GroupReading, ...]:
    now, before = groups
    return example.reading(now, seconds(1)), example.reading(before, seconds(15))


def unread_ends() -> tuple[GroupReading, ...]:
    unread = EndsUnreadable("timed out")
    return tuple(
        replace(one, rebalance=one.rebalance and replace(one.rebalance, ends=unread))
        for one in example.two_readings(GROUP)
    )


def with_lower_ends(one: GroupReading) -> GroupReading:
    """Members have applied more than the changelogs have: they were made anew."""
    below = example.ends(one.ended_at, example.END // 2)
    return replace(one, rebalance=one.rebalance and replace(one.rebalance, ends=below))


def since(ago: float) -> Container:
    return Container(id="c-new", running_since=example.NOW - seconds(ago), ever_ran=True)


def process(process_id: ProcessId) -> tuple[Member, ...]:
    first = GROUP[0]
    assert first.subscription is not None
    return (replace(first, subscription=replace(first.subscription, process_id=process_id)), *GROUP[1:])


def elsewhere(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """The first one joined from an address that no pod has."""
    return (replace(members[0], client_host="10.9.9.9"), *members[1:])


def said_by(ordinal: int, words: Any) -> Snapshot:
    """All agents are well, but one."""
    seen = example.agents(GROUP)
    return a_snapshot(agents=replace(seen, words={**seen.words, Ordinal(ordinal): words}))


def by_brokers(snapshot: Snapshot) -> Snapshot:
    """The same on the streams protocol, where only agents report positions."""
    return replace(snapshot, readings=(streams_reading(GROUP, 1), streams_reading(GROUP, 15)))


def of_pod_0(members: tuple[Member, ...]) -> Any:
    return example.agents(members).words[Ordinal(0)]


@dataclass(frozen=True, slots=True)
class Fact:
    """How one row of the page is played."""

    missing: Snapshot
    disagree: Snapshot
    policy: ScalingPolicy = POLICY


FACTS: Mapping[str, Fact] = {
    "layout of the group": Fact(
        missing=a_snapshot(readings=example.two_readings(GROUP)[:1]),
        disagree=a_snapshot(readings=readings(GROUP, OTHERS)),
    ),
    "positions of copies": Fact(
        missing=a_snapshot(members=example.members(3, lag=None)),
        disagree=a_snapshot(readings=readings(GROUP, example.members(3, lag=500_000))),
    ),
    "ends of changelogs": Fact(
        missing=a_snapshot(readings=unread_ends()),
        disagree=a_snapshot(readings=tuple(map(with_lower_ends, example.two_readings(GROUP)))),
    ),
    "tasks there are": Fact(
        missing=a_snapshot(task_set=TopologyUnknown("not read")),
        disagree=a_snapshot(task_set=example.stateless_task_set()),
    ),
    "pod of a member": Fact(
        missing=a_snapshot(members=elsewhere(process(STRANGER))),
        disagree=a_snapshot(members=process(example.process_id(1))),
    ),
    "process ID of a volume": Fact(
        missing=a_snapshot(workload={"volumes": (example.volume(0, process_id=None), *volumes(3)[1:])}),
        disagree=a_snapshot(members=process(STRANGER)),
    ),
    "volume of a pod": Fact(
        missing=a_snapshot(workload={"volumes": volumes(3)[1:]}),
        disagree=a_snapshot(workload={"volumes": volumes(3)[:2]}),
    ),
    "run of a container": Fact(
        missing=a_snapshot(workload={"pods": pods(3, p0=a_pod(0, container=not_running()))}),
        disagree=a_snapshot(workload={"pods": pods(3, p0=a_pod(0, container=since(5)))}),
    ),
    "StatefulSet as it is written": Fact(
        missing=a_snapshot(statefulset={"generation": 7}),
        disagree=a_snapshot(statefulset={"drift": "retention policy"}),
    ),
    "end of the last removal": Fact(
        missing=a_snapshot(record=RecordUnreadable("no JSON")),
        disagree=a_snapshot(workload={"pods": (*pods(3), a_pod(3, terminating=True))}),
    ),
    "desired replicas": Fact(
        missing=a_snapshot(app={"desired": a_wish(2, (1, 2))}, record=None),
        disagree=a_snapshot(app={"desired": a_wish(2, (600, 2), (30, 3), (10, 2))}, record=None),
    ),
    "words of agents": Fact(
        missing=by_brokers(said_by(0, (AgentSilent(Ordinal(0), "refused"),))),
        disagree=said_by(0, of_pod_0(OTHERS)),
        policy=AGENTS,
    ),
}


def answer(snapshot: Snapshot, policy: ScalingPolicy) -> tuple[str, str]:
    return told(decide(snapshot, policy))


def page() -> Mapping[str, tuple[str, str]]:
    """Each fact of the page, with the reason if a witness is missing, and if the two disagree."""
    rows = re.findall(r"^\| (.+?) \| .+ \| `(\w+)` \| `(\w+)` \|$", PAGE.read_text(), re.MULTILINE)
    return {fact: (missing, disagree) for fact, missing, disagree in rows}


def test_the_page_has_every_fact_that_is_played() -> None:
    assert list(page()) == list(FACTS)


@pytest.mark.guarantee(1)
@pytest.mark.parametrize("name", FACTS)
def test_without_its_second_witness_or_against_it_no_pod_goes(name: str) -> None:
    fact, (missing, disagree) = FACTS[name], page()[name]
    well = a_snapshot(agents=example.agents(GROUP) if fact.policy.agent else None)
    assert answer(well, fact.policy)[0] == "Step"
    assert answer(fact.missing, fact.policy) == ("Hold", missing)
    assert answer(fact.disagree, fact.policy) == ("Hold", disagree)
