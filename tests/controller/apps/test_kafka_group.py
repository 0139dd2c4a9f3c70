"""The Kafka side, as far as it needs no broker."""

import asyncio

from structlog.typing import EventDict

from streamapp.controller.apps.apps import ClusterAccess
from streamapp.controller.apps.kafka_group import UnreachableGroup, connect
from streamapp.core.facts.topic_configs import ConfigUnread


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
