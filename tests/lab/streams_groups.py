"""A group of the streams protocol as the operator sees it, and its standbys as another hand sets them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from lab.clusters.kubectl import wait_until
from lab.scenarios.observed_app import ObservedApp
from streamapp.controller.apps.kafka_group import KafkaGroup
from streamapp.core.facts.group import GroupDescription, StandbySetting, StandbySettingUnread
from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.settings import read_settings

T = TypeVar("T")
UNSET = StandbySetting(0, is_set=False)
A_RAISE_IS_AWAITED = 60
"""Seconds after the last raise for which its record stays."""


def described(one: ObservedApp) -> GroupDescription:
    """Read the group as the operator does."""

    async def read(group: KafkaGroup) -> GroupDescription:
        found = (await group.describe()).group
        assert isinstance(found, GroupDescription), found
        return found

    return _asked(one, read)


def standbys(one: ObservedApp) -> StandbySetting | StandbySettingUnread:
    """The standbys that the group asks for."""
    group = described(one)
    assert group.streams is not None
    return group.streams.standbys


def set_standbys(one: ObservedApp, replicas: int | None) -> None:
    """Set them, or remove the value, as a person does; wait until the brokers show it."""
    _asked(one, lambda group: group.set_standbys(replicas))
    expected = UNSET if replicas is None else StandbySetting(replicas, is_set=True)
    wait_until(f"the group asks for {replicas}", lambda: standbys(one) == expected, 10)


def until_left_as_it_was(one: ObservedApp, setting: StandbySetting = UNSET) -> None:
    """Wait until the group has its users' setting again, and then until no raise can arrive late any more."""
    wait_until("standbys put back", lambda: standbys(one) == setting, 90)
    wait_until("nothing on record", lambda: "standbys" not in one.record(), A_RAISE_IS_AWAITED + 60)
    assert standbys(one) == setting


def _asked(one: ObservedApp, ask: Callable[[KafkaGroup], Awaitable[T]]) -> T:
    async def answered() -> T:
        name = one.app.application.application_id
        group = KafkaGroup(KafkaCluster(read_settings(one.bootstrap, {}), name), name, "", deadline_seconds=10)
        try:
            return await ask(group)
        finally:
            group.close()

    return asyncio.run(answered())
