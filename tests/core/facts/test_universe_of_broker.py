"""The universe by the brokers' own topology: complete, or unknown with what is wrong."""

import pytest

from streamapp.core.facts.ids import TaskId, TopicPartition
from streamapp.core.facts.tasks import TaskFacts, TaskSet, TopologyUnknown
from streamapp.core.facts.topology import BrokerSubtopology, universe_of_broker

LINES = BrokerSubtopology(number=0, sources=frozenset({"lines"}), changelogs=frozenset({"app-counts-changelog"}))
JOIN = BrokerSubtopology(
    number=1,
    sources=frozenset({"app-words-repartition", "table"}),
    changelogs=frozenset({"table", "app-sums-changelog"}),
)
PARTITIONS = {
    "lines": 2,
    "app-counts-changelog": 2,
    "app-words-repartition": 3,
    "table": 1,
    "app-sums-changelog": 3,
}


def test_every_task_has_its_changelogs_and_a_narrow_table_is_behind_those_that_read_it() -> None:
    found = universe_of_broker("app", (LINES, JOIN), PARTITIONS, None)
    assert isinstance(found, TaskSet)
    assert {str(task.id): [each.topic for each in task.changelogs] for task in found.tasks} == {
        "0_0": ["app-counts-changelog"],
        "0_1": ["app-counts-changelog"],
        "1_0": ["app-sums-changelog", "table"],
        "1_1": ["app-sums-changelog"],
        "1_2": ["app-sums-changelog"],
    }
    first = found.get(TaskId(1, 0))
    assert first is not None
    assert first.stores == {"sums": TopicPartition("app-sums-changelog", 0), "table": TopicPartition("table", 0)}
    assert first.source_changelogs == (TopicPartition("table", 0),)


def test_a_sub_topology_without_stores_has_tasks_without_state() -> None:
    plain = BrokerSubtopology(number=0, sources=frozenset({"lines"}), changelogs=frozenset())
    found = universe_of_broker("app", (plain,), PARTITIONS, None)
    assert isinstance(found, TaskSet)
    assert (found.ids, found.stateful) == (frozenset({TaskId(0, 0), TaskId(0, 1)}), ())


def test_a_text_that_says_the_same_names_the_stores() -> None:
    by_text = TaskSet(
        tuple(
            TaskFacts(
                id=TaskId(0, number),
                stateful=True,
                changelogs=(TopicPartition("app-counts-changelog", number),),
                source_partitions=(TopicPartition("lines", number),),
                stores={"a-store": TopicPartition("app-counts-changelog", number)},
            )
            for number in range(2)
        )
    )
    assert universe_of_broker("app", (LINES,), PARTITIONS, by_text) is by_text
    other = universe_of_broker("app", (LINES, JOIN), PARTITIONS, by_text)
    assert isinstance(other, TopologyUnknown)
    assert "show other tasks" in other.reason


@pytest.mark.parametrize(
    ("partitions", "why"),
    [
        ({"lines": 2}, "topic app-counts-changelog of sub-topology 0 is not on the cluster"),
        ({"lines": 3, "app-counts-changelog": 2}, "app-counts-changelog has 2 partitions, sub-topology 0 has 3 tasks"),
    ],
)
def test_what_does_not_fit_is_unknown(partitions: dict[str, int], why: str) -> None:
    found = universe_of_broker("app", (LINES,), partitions, None)
    assert isinstance(found, TopologyUnknown)
    assert why in found.reason


def test_a_topology_without_a_task_is_unknown() -> None:
    assert isinstance(universe_of_broker("app", (), {}, None), TopologyUnknown)
