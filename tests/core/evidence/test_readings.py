"""Two readings in a row: how far apart, what breaks the row, and what is remembered."""

from dataclasses import replace

import pytest

from streamapp.core.decide import decide
from streamapp.core.evidence.readings import earlier_reading, remember
from streamapp.core.facts.group import GroupDescription, GroupReading, GroupState, Member, fingerprint
from streamapp.core.facts.policy import Timing
from streamapp.core.reasons import Reason
from tests.builders import POLICY, a_reading, a_snapshot, an_unreadable, told, without_subscriptions
from tests.support import example

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


@pytest.mark.guarantee(2)
def test_a_reading_from_a_future_that_the_clock_was_set_back_from_is_not_fresh() -> None:
    assert told(decide(a_snapshot(readings=seen(-30, 11)), POLICY)) == ("Hold", "FactsStale")


@pytest.mark.guarantee(2)
def test_a_join_from_a_future_that_the_clock_was_set_back_from_says_nothing_about_positions() -> None:
    readings = (
        a_reading(GROUP, at=1, rebalance=example.rebalance(GROUP, example.NOW + 30 * example.SECOND)),
        *seen(15),
    )
    assert told(decide(a_snapshot(readings=readings), POLICY)) == ("Hold", "ReadingsPending")
