"""What is kept of equal readings is one object, and no value changes by that."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from streamapp.core.evidence.sharing import shared_ends, shared_group
from streamapp.core.facts.group import GroupDescription, GroupReading, GroupState, Member
from streamapp.core.facts.ids import TopicPartition
from streamapp.core.facts.lag import EndOffsets, EndsUnreadable, PartitionEnd
from tests.benchmarks.decisions import Size
from tests.benchmarks.reading_memory import as_polled, busy_minute, kept_by
from tests.builders import NOW, a_reading, an_unreadable, description, without_subscriptions
from tests.support import example

LATEST = a_reading(example.members(3, lag=500), at=1)


def read_anew(lag: int = 500) -> GroupDescription:
    """The same group, decoded once more."""
    return GroupDescription(GroupState.STABLE, example.members(3, lag=lag))


def shared(group: GroupDescription, *history: GroupReading) -> GroupDescription:
    found = shared_group(group, history)
    assert isinstance(found, GroupDescription)
    assert found == group
    return found


def rebalancing(members: tuple[Member, ...]) -> GroupReading:
    return a_reading(without_subscriptions(members), at=0.5, state=GroupState.PREPARING_REBALANCE, rebalance=None)


@pytest.mark.parametrize(
    "history",
    [
        pytest.param((LATEST,), id="in the poll before"),
        pytest.param((rebalancing(example.members(3)), LATEST), id="before a rebalance that changed nothing"),
        pytest.param((an_unreadable(0.5), LATEST), id="before the brokers were away"),
    ],
)
def test_an_equal_description_is_the_earlier_object(history: tuple[GroupReading, ...]) -> None:
    assert shared(read_anew(), *history) is LATEST.group


def test_a_join_renews_positions_and_nothing_else() -> None:
    before, after = description(LATEST), shared(read_anew(lag=100), LATEST)
    known = {id(task) for member in before.members if member.subscription for task in member.subscription.offsets}
    for old, new in zip(before.members, after.members, strict=True):
        assert old.subscription is not None
        assert new.subscription is not None
        assert new.assignment is old.assignment
        assert new.subscription.running is old.subscription.running
        assert new.subscription.owned_partitions is old.subscription.owned_partitions
        assert {id(task) for task in new.subscription.offsets} <= known
        assert new.subscription.offsets != old.subscription.offsets


@pytest.mark.parametrize("told", [{"newest_version": 11}, {"is_tagged": True}, {"generation": 7}])
def test_a_join_keeps_all_that_its_members_say(told: dict[str, Any]) -> None:
    members = tuple(
        replace(one, subscription=replace(one.subscription, **told))
        for one in read_anew(lag=100).members
        if one.subscription is not None
    )
    shared(GroupDescription(GroupState.STABLE, members), LATEST)


def test_a_member_that_is_new_keeps_what_is_its_own() -> None:
    six = GroupDescription(GroupState.STABLE, example.members(6))
    found = shared(six, LATEST)
    assert [member.subscription.running for member in found.members if member.subscription] == [
        member.subscription.running for member in six.members if member.subscription
    ]


@pytest.mark.parametrize("history", [(), (an_unreadable(),), (rebalancing(example.members(3)),)])
def test_without_a_decoded_reading_there_is_nothing_to_share(history: tuple[GroupReading, ...]) -> None:
    group = read_anew()
    assert shared(group, *history) is group
    unreadable = an_unreadable().group
    assert shared_group(unreadable, (LATEST,)) is unreadable


def test_ends_share_every_partition_that_did_not_move() -> None:
    earlier = example.ends(NOW)
    assert LATEST.rebalance is not None
    history = (replace(LATEST, rebalance=replace(LATEST.rebalance, ends=earlier)),)
    moved = TopicPartition("wordcount-counts-changelog", 3)
    partitions = {**example.ends(NOW).partitions, moved: PartitionEnd(log_start=0, end=example.END + 1)}
    ends = EndOffsets(read_at=NOW, partitions=partitions, committed={})
    found = shared_ends(ends, history)
    assert isinstance(found, EndOffsets)
    assert found == ends
    assert [partition for partition, end in found.partitions.items() if end is not earlier.partitions[partition]] == [
        moved
    ]
    same = shared_ends(example.ends(NOW), history)
    assert isinstance(same, EndOffsets)
    assert same.partitions is earlier.partitions
    unreadable = EndsUnreadable("timed out")
    assert shared_ends(unreadable, history) is unreadable
    assert shared_ends(ends, ()) is ends


@pytest.mark.parametrize(
    ("size", "most"),
    [
        pytest.param(Size(500, 20), 2.5, id="20 pods"),
        pytest.param(Size(5_000, 200), 20, id="200 pods", marks=pytest.mark.slow),
    ],
)
def test_a_busy_minute_of_readings_fits_into_memory(size: Size, most: float) -> None:
    mebibytes, readings = kept_by(partial(busy_minute, size, as_polled))
    assert readings == 37
    assert mebibytes <= most
