"""docs/kafka-rights.md on a real authorizer: its commands are enough, and each missing right is named."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

import pytest

from streamapp.controller.ports import ApplicationGroup, KafkaStepError
from streamapp.core.facts.containers import MemberKey
from streamapp.core.facts.group import GroupDescription, StandbySetting
from streamapp.core.facts.ids import TopicPartition
from streamapp.core.facts.lag import EndOffsets
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.facts.topic_configs import ConfigUnread
from tests.brokers.access import group, looked_over, scram
from tests.brokers.members import APPLICATION, CHANGELOG, SOURCE, joined
from tests.brokers.secured import USER, Cluster, Right

pytestmark = pytest.mark.brokers

T = TypeVar("T")


@dataclass(frozen=True)
class Answers:
    """What the operator gets of one application: `ok`, or the reason."""

    group: str
    tasks: str = "not asked"
    ends: str = "not asked"
    tails: str = "not asked"
    configs: str = "not asked"
    rebalance: str = "not asked"
    eviction: str = "not asked"


ALL = Answers(*["ok"] * 7)


async def answers(one: ApplicationGroup) -> Answers:
    """Ask for everything that the operator ever asks for."""
    found = await looked_over(one)
    if not isinstance(found, GroupDescription):
        return Answers(found)
    tasks = await one.task_set()
    if not isinstance(tasks, TaskSet):
        return Answers("ok", tasks.reason)
    ends = await one.ends(tasks)
    if not isinstance(ends, EndOffsets):
        return Answers("ok", "ok", ends.detail)
    assert set(ends.partitions) == {TopicPartition(CHANGELOG, number) for number in range(6)}
    tails = await one.tails(ends.partitions)
    configs = await one.configs([CHANGELOG])
    wrong = {str(value.why) for value in tails.values() if not isinstance(value, int)}
    unread = {value.why for value in configs.values() if isinstance(value, ConfigUnread)}
    return Answers(
        "ok",
        "ok",
        "ok",
        wrong.pop() if wrong else "ok",
        unread.pop() if unread else "ok",
        await step(one.trigger_rebalance(found.members[0].id)),
        await step(one.evict([MemberKey("a-member-that-left", None)], "a test")),
    )


async def step(made: Awaitable[None]) -> str:
    try:
        await made
    except KafkaStepError as error:
        return str(error)
    return "ok"


def asked(cluster: Cluster) -> Answers:
    """Ask as the user `operator`, of a group that has members."""

    async def main() -> Answers:
        async with joined(cluster.at("ADMIN")):
            one = group(cluster.at("SCRAM"), scram(cluster))
            try:
                return await answers(one)
            finally:
                one.close()

    return asyncio.run(main())


def until(cluster: Cluster, is_in_force: Callable[[Answers], bool], give: Callable[[Answers], T]) -> T:
    """Ask until an ACL that was just changed is in force, and give what it shows; the last answer if it never is."""
    ends = time.monotonic() + 10
    while True:
        found = asked(cluster)
        if is_in_force(found) or time.monotonic() > ends:
            return give(found)


def test_the_commands_of_the_page_are_enough(cluster: Cluster) -> None:
    assert until(cluster, lambda found: found == ALL, lambda found: found) == ALL


GROUP = Right("READ", "group", APPLICATION)
TOPICS = Right("READ", "topic", f"{APPLICATION}-", prefixed=True)
CONFIGS = Right("DESCRIBE_CONFIGS", "topic", f"{APPLICATION}-", prefixed=True)
ORDERS = Right("DESCRIBE", "topic", SOURCE)


@contextmanager
def without(cluster: Cluster, right: Right, instead: Right | None = None) -> Iterator[None]:
    """Take one right away, or leave a smaller one, for the time of the block."""
    if instead is not None:
        cluster.allow(USER, instead)
    cluster.take(USER, right)
    try:
        yield
    finally:
        cluster.allow(USER, right)
        if instead is not None:
            cluster.take(USER, instead)


Missing = tuple[Right, Right | None, Callable[[Answers], str], str]

MISSING: dict[str, Missing] = {
    "DESCRIBE on the group": (GROUP, None, lambda a: a.group, f"grant DESCRIBE on group {APPLICATION}"),
    "READ on the group, for a rebalance": (
        GROUP,
        Right("DESCRIBE", "group", APPLICATION),
        lambda a: a.rebalance,
        f"grant READ on group {APPLICATION}",
    ),
    "READ on the group, for an eviction": (
        GROUP,
        Right("DESCRIBE", "group", APPLICATION),
        lambda a: a.eviction,
        f"grant READ on group {APPLICATION}",
    ),
    "DESCRIBE on the changelogs": (
        TOPICS,
        None,
        lambda a: a.tasks,
        "grant DESCRIBE on topics with the prefix counter-",
    ),
    "READ on the changelogs": (
        TOPICS,
        Right("DESCRIBE", "topic", f"{APPLICATION}-", prefixed=True),
        lambda a: a.tails,
        f"grant READ on topic {CHANGELOG}",
    ),
    "DESCRIBE_CONFIGS on the changelogs": (
        CONFIGS,
        None,
        lambda a: a.configs,
        f"grant DESCRIBE_CONFIGS on topic {CHANGELOG}",
    ),
    "DESCRIBE on the source topic": (ORDERS, None, lambda a: a.tasks, f"grant DESCRIBE on topic {SOURCE}"),
}


@pytest.mark.parametrize(("right", "instead", "answer", "why"), MISSING.values(), ids=MISSING.keys())
def test_a_missing_right_is_named_with_its_object(
    cluster: Cluster, right: Right, instead: Right | None, answer: Callable[[Answers], str], why: str
) -> None:
    with without(cluster, right, instead):
        assert why in until(cluster, lambda found: why in answer(found), answer)
    assert until(cluster, lambda found: found == ALL, lambda found: found) == ALL


async def shows(one: ApplicationGroup, setting: StandbySetting) -> StandbySetting:
    """Wait until the brokers show it, with the cluster that they are of: they learn of a write milliseconds later."""
    for _ in range(200):
        found = await one.standbys()
        if isinstance(found, StandbySetting) and found == setting:
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(f"not {setting} but {await one.standbys()}")


def test_the_standbys_of_a_classic_group_are_read_and_put_back(cluster: Cluster) -> None:
    async def play() -> None:
        async with joined(cluster.at("ADMIN")):
            one = group(cluster.at("ADMIN"), {})
            try:
                shown = (await one.describe()).group
                assert isinstance(shown, GroupDescription)
                assert (shown.streams, bool(shown.members)) == (None, True)
                await shows(one, StandbySetting(0, is_set=False))
                await one.set_standbys(1)
                found = await shows(one, StandbySetting(1, is_set=True))
                with pytest.raises(KafkaStepError, match="is set since"):
                    await one.set_standbys(None, replace(found, cluster="another"))
                await one.set_standbys(None, found)
                await shows(one, StandbySetting(0, is_set=False))
            finally:
                one.close()

    asyncio.run(play())
