"""Topologies that no application has, but that a text or a broker can describe: they must not fill the memory."""

import pytest

from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.facts.topology import (
    MOST_PARTS,
    BrokerSubtopology,
    TopicEvidence,
    Topology,
    parse_topology,
    universe_of,
    universe_of_broker,
)

WHY = "the topology has more than 300000 tasks, inputs and stores together"


def by_text(text: str, partitions: int) -> TaskSet | TopologyUnknown:
    topology = parse_topology(text)
    assert isinstance(topology, Topology)
    return universe_of(topology, TopicEvidence("app", {"in": partitions}, {}))


def subtopologies(count: int) -> str:
    return "".join(f"Sub-topology: {number}\n Source: S{number} (topics: [in])\n" for number in range(count))


def tables(count: int) -> str:
    stores = ", ".join(f"s{number}" for number in range(count))
    processor = f" Processor: KTABLE-SOURCE-1 (stores: [{stores}])\n  <-- S\n"
    return f"Sub-topology: 0\n Source: S (topics: [in])\n{processor}"


@pytest.mark.guarantee(3)
@pytest.mark.parametrize("digits", [10, 5_000])
def test_a_number_of_a_sub_topology_that_no_task_can_have_is_not_understood(digits: int) -> None:
    found = parse_topology(f"Sub-topology: {'1' * digits}\n Source: S (topics: [in])\n")
    assert isinstance(found, TopologyUnknown)
    assert found.reason.startswith("line 1 of spec.topology is not understood")


@pytest.mark.guarantee(3)
@pytest.mark.parametrize("text", [subtopologies(2_500), tables(10_000)], ids=["sub-topologies", "tables"])
def test_a_text_that_multiplies_one_topic_holds_and_takes_no_memory(text: str) -> None:
    assert len(text) < 128 * 1024
    found = by_text(text, 50_000)
    assert isinstance(found, TopologyUnknown)
    assert found.reason.startswith(WHY)


@pytest.mark.guarantee(3)
def test_a_broker_that_multiplies_one_topic_holds_likewise() -> None:
    one = frozenset({"in"})
    each = [BrokerSubtopology(number=number, sources=one, changelogs=frozenset()) for number in range(2_500)]
    found = universe_of_broker("app", each, {"in": 50_000}, None)
    assert isinstance(found, TopologyUnknown)
    assert found.reason.startswith(WHY)


def test_as_many_parts_as_are_allowed_are_counted_exactly() -> None:
    partitions = MOST_PARTS // 100 // 2  # each task, and what it reads
    assert isinstance(by_text(subtopologies(100), partitions), TaskSet)
    assert isinstance(by_text(subtopologies(100), partitions + 1), TopologyUnknown)
