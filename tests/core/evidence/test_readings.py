"""Two readings in a row: how far apart, what breaks the row, and what is remembered."""

from dataclasses import replace

import pytest

from streamapp.core.decide import decide
from streamapp.core.evidence.readings import earlier_reading, remember, step_back
from streamapp.core.facts.group import Applied, GroupDescription, GroupReading, GroupState, Member, fingerprint
from streamapp.core.facts.ids import TaskId, TopicPartition
from streamapp.core.facts.lag import EndOffsets, PartitionEnd
from streamapp.core.facts.policy import Timing
from streamapp.core.reasons import Reason
from tests.builders import POLICY, a_reading, a_snapshot, ago, an_unreadable, told, without_subscriptions
from tests.support import example
from tests.support.streams import streams_group, streams_members

GROUP = example.members(3)
OTHERS = example.members(3, standbys=False)
HIDDEN = without_subscriptions(GROUP)


def seen(*ago: float) -> tuple[GroupReading, ...]:
    """Readings of a join each, that ended so many seconds ago."""
    return tuple(a_reading(GROUP, at=at) for at in ago)


def polls_of_one_join(*ago: float) -> tuple[GroupReading, ...]:
    rebalance = a_reading(GROUP, at=max(ago)).rebalance
    return tuple(a_reading(GROUP, at=at, rebalance=rebalance) for at in ago)


@pytest.mark.parametrize(
    ("readings", "verdict"),
    [
        pytest.param(seen(1, 11), ("Step", "Covered"), id="ten seconds apart"),
        pytest.param(seen(1, 10.9), ("Hold", "ReadingsPending"), id="less than ten seconds apart"),
        pytest.param(seen(1, 121), ("Step", "Covered"), id="two minutes apart"),
        pytest.param(seen(1, 122), ("Hold", "ReadingsPending"), id="more than two minutes apart"),
        pytest.param(seen(1), ("Hold", "ReadingsPending"), id="only one"),
        pytest.param(seen(1, 6, 12), ("Step", "Covered"), id="one too young and one old enough"),
        pytest.param(polls_of_one_join(1, 12), ("Hold", "ReadingsPending"), id="two polls of the same join"),
        pytest.param((*seen(1, 15), an_unreadable(8)), ("Hold", "ReadingsPending"), id="a failure in between"),
        pytest.param((*seen(1, 15), a_reading(OTHERS, at=8)), ("Hold", "GroupChanged"), id="another layout in between"),
        pytest.param(
            (*seen(1), a_reading(OTHERS, at=15)), ("Hold", "GroupChanged"), id="another layout the first time"
        ),
        pytest.param(
            (*seen(1, 15), a_reading(HIDDEN, at=3, state=GroupState.PREPARING_REBALANCE, rebalance=None)),
            ("Step", "Covered"),
            id="the rebalance of the triggered rebalance in between",
        ),
        pytest.param(
            (*seen(1, 15), a_reading((), at=8, state=GroupState.EMPTY)), ("Hold", "GroupChanged"), id="empty in between"
        ),
    ],
)
def test_a_removal_takes_two_readings_in_a_row(readings: tuple[GroupReading, ...], verdict: tuple[str, str]) -> None:
    assert told(decide(a_snapshot(readings=readings), POLICY)) == verdict


def test_a_join_that_settled_too_long_ago_is_no_fresh_reading() -> None:
    readings = (
        a_reading(GROUP, at=1, rebalance=example.rebalance(GROUP, example.NOW - 61 * example.SECOND)),
        *seen(90),
    )
    assert told(decide(a_snapshot(readings=readings), POLICY)) == ("Hold", "ReadingsPending")


def test_where_positions_do_not_count_two_polls_of_one_join_will_do() -> None:
    readings = polls_of_one_join(1, 12)
    found = earlier_reading(readings, Timing(), of_another_join=False)
    assert (found, earlier_reading(readings, Timing(), of_another_join=True)) == (readings[1], Reason.ReadingsPending)


@pytest.mark.guarantee(1)
@pytest.mark.parametrize(("answered", "is_far"), [(12, False), (14, True)])
def test_two_polls_are_as_far_apart_as_the_first_answer_and_the_second_question(answered: int, is_far: bool) -> None:
    """A coordinator may have looked as soon as it was asked, and the answer was long on its way."""
    latest = replace(a_reading(GROUP, at=1), asked_at=ago(3))
    found = earlier_reading((latest, a_reading(GROUP, at=answered)), Timing(), of_another_join=False)
    assert isinstance(found, GroupReading) is is_far


def test_an_unreadable_latest_reading_answers_with_its_own_reason() -> None:
    assert earlier_reading((an_unreadable(1), *seen(15)), Timing(), of_another_join=True) is Reason.BrokersUnreachable


def test_what_every_join_changes_is_not_part_of_the_fingerprint() -> None:
    before, after = GROUP[0], GROUP[0]
    assert after.subscription is not None
    moved_on = replace(after, subscription=replace(after.subscription, offsets={}, owned_partitions=frozenset()))
    groups = [GroupDescription(GroupState.STABLE, (one, *GROUP[1:])) for one in (before, moved_on)]
    assert fingerprint(groups[0]) == fingerprint(groups[1])


@pytest.mark.parametrize(
    "changed",
    [
        replace(GROUP[0], id="another"),
        replace(GROUP[0], instance_id="static-0"),
        replace(GROUP[0], client_host="10.1.0.77"),
        replace(GROUP[0], subscription=example.member(5).subscription),
        example.member(0, active=(0,), standby=(4, 5)),
        example.member(0, active=(0, 1), standby=(4,)),
    ],
    ids=["member ID", "instance ID", "address", "process ID", "active tasks", "standby tasks"],
)
def test_everything_else_is(changed: Member) -> None:
    groups = [GroupDescription(GroupState.STABLE, (one, *GROUP[1:])) for one in (GROUP[0], changed)]
    assert fingerprint(groups[0]) != fingerprint(groups[1])


def test_every_poll_of_the_last_minute_is_remembered_newest_first() -> None:
    polls = polls_of_one_join(80, 60, 40, 20, 1)
    history: tuple[GroupReading, ...] = ()
    for reading in polls:
        history = remember(history, reading)
    # the first is older than a minute, and the join it shows is still shown by younger ones
    assert history == tuple(reversed(polls[1:]))


def test_the_last_poll_of_the_join_before_is_remembered_however_old() -> None:
    history: tuple[GroupReading, ...] = ()
    for reading in (*seen(900, 600, 300), *polls_of_one_join(20, 1)):
        history = remember(history, reading)
    assert history == (*polls_of_one_join(1, 20), *seen(300))


@pytest.mark.slow
@pytest.mark.guarantee(2)
@pytest.mark.guarantee(3)
def test_readings_of_very_large_groups_that_always_differ_are_few() -> None:
    history: tuple[GroupReading, ...] = ()
    for at in range(20, 0, -1):
        history = remember(history, a_reading((crowded(at),), at=at, rebalance=None))
    assert [one.ended_at for one in history] == [ago(at) for at in (1, 2, 3, 4)]
    larger = tuple(crowded(at) for at in range(5))
    assert remember(history, a_reading(larger, at=0.5, rebalance=None))[1:] == ()


@pytest.mark.slow
def test_ends_of_very_many_changelogs_that_always_differ_are_few() -> None:
    history: tuple[GroupReading, ...] = ()
    for at in range(20, 0, -1):
        reading = a_reading(GROUP, at=at)
        assert reading.rebalance is not None
        partitions = dict.fromkeys(
            (TopicPartition("c", each) for each in range(90_000)), PartitionEnd(log_start=0, end=at)
        )
        ends = EndOffsets(read_at=ago(at), partitions=partitions, committed={})
        history = remember(history, replace(reading, rebalance=replace(reading.rebalance, ends=ends)))
    assert [one.ended_at for one in history] == [ago(at) for at in range(1, 7)]


def test_equal_readings_of_a_very_large_group_are_all_kept() -> None:
    group, history = a_reading((crowded(1),)).group, tuple[GroupReading, ...]()
    for at in range(20, 0, -1):
        history = remember(history, replace(a_reading((), at=at, rebalance=None), group=group))
    assert len(history) == 20


def crowded(number: int) -> Member:
    """A member with more tasks than an application has."""
    tasks = frozenset(TaskId(number, partition) for partition in range(60_000))
    offsets = dict.fromkeys(tasks, Applied(number))
    like = example.members(3)[0]
    assert like.subscription is not None
    assert like.assignment is not None
    subscription = replace(like.subscription, offsets=offsets)
    return replace(like, id=f"{number}", subscription=subscription, assignment=replace(like.assignment, active=tasks))


def test_a_reading_from_a_future_that_the_clock_was_set_back_from_is_not_fresh() -> None:
    assert told(decide(a_snapshot(readings=seen(-30, 11)), POLICY)) == ("Hold", "FactsStale")


@pytest.mark.guarantee(2)
def test_a_join_from_a_future_that_the_clock_was_set_back_from_says_nothing_about_positions() -> None:
    readings = (
        a_reading(GROUP, at=1, rebalance=example.rebalance(GROUP, example.NOW + 30 * example.SECOND)),
        *seen(15),
    )
    assert told(decide(a_snapshot(readings=readings), POLICY)) == ("Hold", "ReadingsPending")


def from_generations(*generations: int | None) -> GroupDescription:
    """The example's members, as they joined from these generations."""
    joined = []
    for member, generation in zip(GROUP, generations, strict=False):
        assert member.subscription is not None
        joined.append(replace(member, subscription=replace(member.subscription, generation=generation)))
    return GroupDescription(GroupState.STABLE, tuple(joined))


def at_epoch(epoch: int) -> GroupDescription:
    group = replace(streams_group(), epoch=epoch, assignment_epoch=epoch)
    return GroupDescription(GroupState.STABLE, streams_members(GROUP), group)


@pytest.mark.guarantee(2)
@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        pytest.param(from_generations(7, 7, 7), from_generations(8, 8, 8), "", id="the next join"),
        pytest.param(from_generations(7, 7, 7), from_generations(7, 7, 7), "", id="the same join"),
        pytest.param(
            from_generations(7, 7, None),
            from_generations(6, 6),
            f"member {GROUP[0].id} came from generation 6, and from 7 before",
            id="the join before, when one was not there yet",
        ),
        pytest.param(from_generations(7, 7, 7), from_generations(None, None, None), "", id="its members do not say it"),
        pytest.param(
            from_generations(7, 7, 7), GroupDescription(GroupState.PREPARING_REBALANCE, HIDDEN), "", id="a rebalance"
        ),
        pytest.param(at_epoch(9), at_epoch(10), "", id="the next epoch"),
        pytest.param(at_epoch(9), at_epoch(8), "it shows epoch 8 after 9", id="an epoch before"),
        pytest.param(at_epoch(9), from_generations(1, 1, 1), "", id="another protocol"),
    ],
)
def test_an_older_state_is_known_by_what_never_falls(
    before: GroupDescription, after: GroupDescription, why: str
) -> None:
    assert step_back(before, after) == why
