"""The Kafka side, as far as it needs no broker."""

import asyncio
from collections.abc import Hashable, Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.typing import EventDict

from streamapp.controller.apps import kafka_group
from streamapp.controller.apps.apps import ClusterAccess
from streamapp.controller.apps.kafka_group import KafkaGroup, UnreachableGroup, connect
from streamapp.core.facts.ids import TaskId, TopicPartition
from streamapp.core.facts.lag import EndOffsets
from streamapp.core.facts.tasks import TaskFacts, TaskSet
from streamapp.core.facts.topic_configs import ConfigUnread
from streamapp.kafka.connection.settings import Address
from streamapp.kafka.group.groups import ClassicGroupState, DecodedGroup
from tests.builders import NOW

A, B = Address("a", 9092), Address("b", 9092)


def an_access(*properties: tuple[str, str], fault: str | None = None) -> ClusterAccess:
    return ClusterAccess(
        bootstrap="kafka:9092", properties=properties, application_id="wordcount", topology="", fault=fault
    )


def test_client_properties_that_have_no_meaning_here_are_told_by_name_alone(log_lines: list[EventDict]) -> None:
    connect(an_access(("acks", "all"), ("security.protocol", "PLAINTEXT")), 5).close()
    (line,) = log_lines
    assert (line["event"], line["names"]) == ("client properties without meaning here", ("acks",))
    assert "all" not in line.values()


def test_properties_that_all_have_a_meaning_are_told_of_nothing(log_lines: list[EventDict]) -> None:
    connect(an_access(("security.protocol", "PLAINTEXT")), 5).close()
    assert log_lines == []


def test_a_group_that_cannot_be_asked_for_knows_no_settings_of_topics() -> None:
    group = connect(an_access(fault="secret wordcount-kafka: not found"), 5)
    assert isinstance(group, UnreachableGroup)
    unread = ConfigUnread("secret wordcount-kafka: not found")
    assert asyncio.run(group.configs(["a", "b"])) == {"a": unread, "b": unread}


@pytest.mark.guarantee(1)
@pytest.mark.parametrize(
    ("before", "after", "named"), [(None, A, A), (A, A, A), (A, None, (A, None)), (A, B, (A, B))], ids=str
)
def test_a_look_beside_which_the_coordinator_was_looked_up_anew_names_both(
    before: Address | None, after: Address | None, named: Hashable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An eviction, say, looks it up: the answer that is being decoded can be of either broker."""
    coordinator: Any = SimpleNamespace(address=before)

    async def read(*_: object) -> DecodedGroup:
        coordinator.address = after
        return DecodedGroup("app", ClassicGroupState.DEAD, ())

    monkeypatch.setattr(kafka_group, "read_group", read)
    group = KafkaGroup(cast("Any", SimpleNamespace(group=coordinator)), "app", "", deadline_seconds=5)
    assert asyncio.run(group.describe()).coordinator == named


@pytest.mark.guarantee(1)
@pytest.mark.parametrize(
    ("answers", "log", "known"),
    [
        pytest.param([(0, 40)], (0, 900), 40, id="it has committed"),
        pytest.param([(0, 0)], (0, 900), 0, id="it has committed the beginning"),
        pytest.param([(0, None)], (0, 900), None, id="none, and there are records: a coordinator may resign"),
        pytest.param([(0, None), (119, None)], (0, 900), None, id="none, and one may have been loading since"),
        pytest.param([(0, None), (120, None)], (0, 900), 0, id="none for minutes: no record was consumed"),
        pytest.param([(0, 40), (1, None), (600, None)], (0, 900), None, id="none, and there was one"),
        pytest.param([(0, None)], (0, 0), 0, id="none, and there is no record"),
        pytest.param([(0, None)], (900, 900), 900, id="none, and each record was deleted"),
    ],
)
def test_no_committed_offset_is_not_the_beginning_until_it_was_none_for_minutes(
    answers: list[tuple[float, int | None]],
    log: tuple[int, int],
    known: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    partition, offset, now = TopicPartition("words", 0), cast("int | None", None), NOW

    async def answer(*_: object) -> Mapping[TopicPartition, int | None]:
        return {partition: offset}

    class Offsets:
        async def log_starts(self, *_: object) -> Mapping[TopicPartition, int]:
            return {partition: log[0]}

        async def ends(self, *_: object) -> Mapping[TopicPartition, int]:
            return {partition: log[1]}

    monkeypatch.setattr(kafka_group, "committed", answer)
    cluster = SimpleNamespace(group=SimpleNamespace(address=A), offsets=Offsets())
    group = KafkaGroup(cast("Any", cluster), "app", "", deadline_seconds=5, now=lambda: now)
    task = TaskFacts(id=TaskId(0, 0), stateful=True, changelogs=(partition,), source_partitions=(partition,))
    for seconds, committed in answers:
        offset = committed
        now = NOW + timedelta(seconds=seconds)
        read = asyncio.run(group.ends(TaskSet((task,))))
    assert isinstance(read, EndOffsets)
    assert read.committed.get(partition) == known
