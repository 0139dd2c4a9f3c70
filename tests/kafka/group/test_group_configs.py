"""The standbys of a streams group: read with where the value comes from, set, and removed."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.describe_configs.v4.response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1.request import AlterableConfig, IncrementalAlterConfigsRequest
from kio.schema.incremental_alter_configs.v1.response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from kio.schema.metadata.v12.response import MetadataResponse
from kio.static.primitive import i8

from streamapp.core.facts.group import StandbySetting
from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.errors import NotAuthorisedError, UnexpectedAnswerError
from streamapp.kafka.group.group_configs import ASSIGNMENT_INTERVAL, SESSION_TIMEOUT, STANDBYS, GroupConfig
from tests.kafka import answers
from tests.kafka.scripted import NO_THROTTLE, ScriptedBroker, always, in_turn


def a_setting(
    value: str | None, source: int, name: str = STANDBYS, code: ErrorCode = ErrorCode.none, group: str = "app"
) -> DescribeConfigsResponse:
    entry = DescribeConfigsResourceResult(
        name=name,
        value=value,
        read_only=False,
        config_source=i8(source),
        is_sensitive=False,
        synonyms=(),
        documentation=None,
    )
    result = DescribeConfigsResult(
        error_code=code, error_message=None, resource_type=i8(32), resource_name=group, configs=(entry,)
    )
    return DescribeConfigsResponse(throttle_time=NO_THROTTLE, results=(result,))


def a_write(code: ErrorCode, message: str | None = None) -> IncrementalAlterConfigsResponse:
    done = AlterConfigsResourceResponse(
        error_code=code, error_message=message, resource_type=i8(32), resource_name="app"
    )
    return IncrementalAlterConfigsResponse(throttle_time=NO_THROTTLE, responses=(done,))


def on_broker(broker: ScriptedBroker, work: Callable[[KafkaCluster], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with broker.running():
            cluster = KafkaCluster(broker.settings(), "app")
            try:
                return await work(cluster)
            finally:
                cluster.close()

    return asyncio.run(main())


def read(answer: DescribeConfigsResponse) -> Any:
    return on_broker(
        ScriptedBroker({"DescribeConfigs": always(answer), "Metadata": always(answers.cluster([], {}))}),
        lambda cluster: cluster.configs.read(deadline_seconds=5),
    )


def write(answer: IncrementalAlterConfigsResponse, replicas: int | None) -> tuple[AlterableConfig, ...]:
    broker = ScriptedBroker({"IncrementalAlterConfigs": always(answer)})
    on_broker(broker, lambda cluster: cluster.configs.set_standbys(replicas, deadline_seconds=5))
    (sent,) = [one.request for one in broker.seen if isinstance(one.request, IncrementalAlterConfigsRequest)]
    (resource,) = sent.resources
    assert (resource.resource_type, resource.resource_name, sent.validate_only) == (32, "app", False)
    return resource.configs


@pytest.mark.parametrize(("source", "is_set"), [(8, True), (5, False), (4, False)])
def test_a_value_of_the_group_is_told_from_the_brokers_default(source: int, is_set: bool) -> None:
    assert read(a_setting("1", source)) == GroupConfig(StandbySetting(1, is_set=is_set), None)


def of_cluster(cluster: str | None) -> MetadataResponse:
    return replace(answers.cluster([], {}), cluster_id=cluster)


@pytest.mark.parametrize(("told", "known"), [("one", "one"), (None, None), ("", None), ("x" * 256, None)])
def test_the_setting_names_its_cluster_if_brokers_do(told: str | None, known: str | None) -> None:
    broker = ScriptedBroker({"DescribeConfigs": always(a_setting("1", 8)), "Metadata": always(of_cluster(told))})
    assert on_broker(broker, lambda cluster: cluster.configs.read(5)).standbys.cluster == known


def test_brokers_say_once_which_cluster_they_are_of_and_anew_before_a_write() -> None:
    metadata = in_turn(of_cluster("one"), of_cluster("two"))
    broker = ScriptedBroker({"DescribeConfigs": always(a_setting("1", 8)), "Metadata": metadata})

    async def work(cluster: KafkaCluster) -> list[str | None]:
        found = [await cluster.configs.read(5, asks_cluster=anew) for anew in (False, False, True, False)]
        return [one.standbys.cluster for one in found]

    assert on_broker(broker, work) == ["one", "one", "two", "two"]


@pytest.mark.parametrize(
    ("name", "times"),
    [(ASSIGNMENT_INTERVAL, (timedelta(seconds=1), None)), (SESSION_TIMEOUT, (None, timedelta(seconds=1)))],
)
def test_times_are_read_where_brokers_have_them(name: str, times: tuple[timedelta | None, timedelta | None]) -> None:
    (standbys,) = a_setting("1", 8).results
    (time,) = a_setting("1000", 5, name=name).results
    both = replace(standbys, configs=(*standbys.configs, *time.configs))
    found = read(DescribeConfigsResponse(throttle_time=NO_THROTTLE, results=(both,)))
    assert found == GroupConfig(StandbySetting(1, is_set=True), *times)


@pytest.mark.parametrize(
    "answer", [a_setting("1", 8, name="other"), a_setting(None, 8), a_setting("x", 8), a_setting("1", 8, group="other")]
)
def test_an_answer_without_the_value_is_not_guessed(answer: DescribeConfigsResponse) -> None:
    with pytest.raises(UnexpectedAnswerError):
        read(answer)


def test_a_value_is_set_and_removed() -> None:
    done = a_write(ErrorCode.none)
    assert write(done, 1) == (AlterableConfig(name=STANDBYS, config_operation=i8(0), value="1"),)
    assert write(done, None) == (AlterableConfig(name=STANDBYS, config_operation=i8(1), value=None),)


def test_the_missing_rights_are_named() -> None:
    denied = ErrorCode.group_authorization_failed
    with pytest.raises(NotAuthorisedError) as caught:
        read(a_setting("1", 8, code=denied))
    assert caught.value.acl == "DESCRIBE_CONFIGS on group app"
    with pytest.raises(NotAuthorisedError) as caught:
        write(a_write(denied), 1)
    assert caught.value.acl == "ALTER_CONFIGS on group app"


def test_a_value_that_the_brokers_do_not_allow_is_said_in_their_words() -> None:
    with pytest.raises(UnexpectedAnswerError, match="must be less than 2"):
        write(a_write(ErrorCode.invalid_config, "it must be less than 2"), 3)
