"""Reading topics: widths, changelogs that may not be hidden, retention."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.request import MetadataRequest

from streamapp.core.facts.topic_configs import ConfigUnread, TopicConfig
from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.errors import KafkaAccessError, NotAuthorisedError, UnexpectedAnswerError
from streamapp.kafka.topics.topics import PROBE
from tests.kafka import answers
from tests.kafka.scripted import Handler, ScriptedBroker, always, in_turn

T = TypeVar("T")

PROBE_TOPIC = f"app-{PROBE}-changelog"
NO_PROBE = answers.cluster([], {}, {PROBE_TOPIC: answers.UNKNOWN_TOPIC})


async def reading(broker: ScriptedBroker, read: Callable[[KafkaCluster], Awaitable[T]]) -> T:
    async with broker.running():
        cluster = KafkaCluster(broker.settings(), "app")
        try:
            return await read(cluster)
        finally:
            cluster.close()


def read(ask: Callable[[KafkaCluster], Awaitable[T]], **handlers: Handler) -> T:
    return asyncio.run(reading(ScriptedBroker(handlers), ask))


def refused(
    kind: type[KafkaAccessError], ask: Callable[[KafkaCluster], Awaitable[object]], **handlers: Handler
) -> KafkaAccessError:
    with pytest.raises(kind) as caught:
        read(ask, **handlers)
    return caught.value


def test_partition_counts_leave_out_what_is_not_there() -> None:
    answer = answers.cluster([], {"in": [0, 0, 0], "out": [0]}, {"gone": answers.UNKNOWN_TOPIC})
    counts = read(
        lambda cluster: cluster.topics.partition_counts(["out", "in", "gone", "in"], 5), Metadata=always(answer)
    )
    assert counts == {"in": 3, "out": 1}


def test_describing_a_topic_never_creates_it() -> None:
    broker = ScriptedBroker({"Metadata": always(answers.cluster([], {"in": [0]}))})
    asyncio.run(reading(broker, lambda cluster: cluster.topics.partition_counts(["in"], 5)))
    request = broker.seen[-1].request
    assert isinstance(request, MetadataRequest)
    assert not request.allow_auto_topic_creation


def test_a_topic_that_may_not_be_described_is_not_taken_for_absent() -> None:
    error = refused(
        NotAuthorisedError,
        lambda cluster: cluster.topics.partition_counts(["in"], 5),
        Metadata=always(answers.cluster([], {}, {"in": answers.DENIED})),
    )
    assert isinstance(error, NotAuthorisedError)
    assert error.acl == "DESCRIBE on topic in"


def test_an_answer_about_other_topics_is_not_believed() -> None:
    refused(
        UnexpectedAnswerError,
        lambda cluster: cluster.topics.partition_counts(["in"], 5),
        Metadata=always(answers.cluster([], {"other": [0]})),
    )


def test_changelogs_are_found_by_the_applications_prefix() -> None:
    everything = answers.cluster(
        [],
        {
            "app-counts-changelog": [0, 0],
            "app-KSTREAM-AGGREGATE-STATE-STORE-0000000001-changelog": [0],
            "app-again-repartition": [0],
            "app-changelog": [0],
            "app--changelog": [0],
            "application-counts-changelog": [0],
            "other-app-counts-changelog": [0],
            "in": [0],
        },
    )
    found = read(lambda cluster: cluster.topics.changelogs("app", 5), Metadata=in_turn(NO_PROBE, everything))
    assert found == {"app-counts-changelog": 2, "app-KSTREAM-AGGREGATE-STATE-STORE-0000000001-changelog": 1}


def test_a_user_who_may_not_see_the_whole_prefix_is_told_so() -> None:
    """The list would leave hidden changelogs out in silence, and a lag would look small."""
    broker = ScriptedBroker({"Metadata": always(answers.cluster([], {}, {PROBE_TOPIC: answers.DENIED}))})
    with pytest.raises(NotAuthorisedError) as caught:
        asyncio.run(reading(broker, lambda cluster: cluster.topics.changelogs("app", 5)))
    assert caught.value.acl == "DESCRIBE on topics with the prefix app-"
    assert broker.names() == ["Metadata"]


def test_retention_as_the_broker_applies_it() -> None:
    values = {"cleanup.policy": "compact,delete", "retention.ms": "604800000", "delete.retention.ms": "86400000"}
    found = read(lambda cluster: cluster.topics.configs(["a"], 5), DescribeConfigs=always(answers.configs("a", values)))
    assert found == {
        "a": TopicConfig(
            cleanup_policies=frozenset({"compact", "delete"}),
            retention=timedelta(days=7),
            delete_retention=timedelta(days=1),
        )
    }


def test_unlimited_retention_is_no_number() -> None:
    values = {"cleanup.policy": "compact", "retention.ms": "-1", "delete.retention.ms": "0"}
    found = read(lambda cluster: cluster.topics.configs(["a"], 5), DescribeConfigs=always(answers.configs("a", values)))
    assert found == {"a": TopicConfig(frozenset({"compact"}), None, timedelta(0))}


@pytest.mark.parametrize(
    "values",
    [
        {"cleanup.policy": "compact", "retention.ms": "-1"},
        {"cleanup.policy": "compact", "retention.ms": "a week", "delete.retention.ms": "0"},
        {"cleanup.policy": "compact", "retention.ms": None, "delete.retention.ms": "0"},
        {"cleanup.policy": "compact", "retention.ms": "9" * 30, "delete.retention.ms": "0"},
    ],
    ids=["missing", "no number", "null", "beyond all time"],
)
def test_a_setting_that_cannot_be_read_is_unknown(values: dict[str, str | None]) -> None:
    found = read(lambda cluster: cluster.topics.configs(["a"], 5), DescribeConfigs=always(answers.configs("a", values)))
    (config,) = found.values()
    assert isinstance(config, ConfigUnread)
    assert config.why.startswith("topic a: describe configs: ")


def test_settings_of_a_topic_that_is_not_there_or_not_ours_hide_nobody_elses() -> None:
    values = {"cleanup.policy": "compact", "retention.ms": "-1", "delete.retention.ms": "0"}
    answer = answers.configs("a", values)
    gone, denied = answers.configs("b", {}, answers.UNKNOWN_TOPIC), answers.configs("c", {}, answers.DENIED)
    whole = replace(answer, results=(*answer.results, *gone.results, *denied.results))
    found = read(lambda cluster: cluster.topics.configs(["c", "b", "a"], 5), DescribeConfigs=always(whole))
    assert found["a"] == TopicConfig(frozenset({"compact"}), None, timedelta(0))
    assert isinstance(found["b"], ConfigUnread)
    assert found["b"].why.startswith("topic b: describe configs: ")
    assert isinstance(found["c"], ConfigUnread)
    assert "grant DESCRIBE_CONFIGS on topic c" in found["c"].why


def test_an_answer_about_other_topics_is_none() -> None:
    refused(
        UnexpectedAnswerError,
        lambda cluster: cluster.topics.configs(["a", "b"], 5),
        DescribeConfigs=always(answers.configs("a", {})),
    )


def test_a_bootstrap_server_that_is_down_is_passed_over() -> None:
    async def main() -> dict[str, int]:
        down, up = ScriptedBroker(), ScriptedBroker({"Metadata": always(answers.cluster([], {"in": [0]}))})
        async with down.running():
            pass
        async with up.running():
            settings = up.settings()
            both = type(settings)((down.address, up.address))
            cluster = KafkaCluster(both, "app")
            try:
                return dict(await cluster.topics.partition_counts(["in"], 5))
            finally:
                cluster.close()

    assert asyncio.run(main()) == {"in": 1}


def test_the_first_bootstrap_servers_error_is_shown_when_all_are_down() -> None:
    async def main() -> None:
        down = ScriptedBroker()
        async with down.running():
            pass
        cluster = KafkaCluster(down.settings(), "app")
        try:
            await cluster.topics.partition_counts(["in"], 5)
        finally:
            cluster.close()

    with pytest.raises(KafkaAccessError, match=r"broker 127\.0\.0\.1:\d+: .*refused|Connect call failed"):
        asyncio.run(main())


def test_an_error_that_nobody_expects_is_named_with_its_number() -> None:
    answer = answers.cluster([], {}, {"in": ErrorCode.invalid_topic_exception})
    error = refused(
        UnexpectedAnswerError, lambda cluster: cluster.topics.partition_counts(["in"], 5), Metadata=always(answer)
    )
    assert error.why == "the broker answers invalid_topic_exception (17)"
