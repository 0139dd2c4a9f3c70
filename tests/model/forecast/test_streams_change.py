"""A change in a group that its brokers assign is played in every way, and what nobody can know is a set."""

from dataclasses import replace
from datetime import timedelta

import pytest

from streamapp.core.facts.ids import TaskId
from streamapp.core.status.task_table import Role
from streamapp.simulator.forecast.basis import Given
from streamapp.simulator.forecast.comparison import Forecast, Result, compared
from streamapp.simulator.forecast.outcome import Outcome, Range, TaskMove, Ways
from streamapp.simulator.forecast.running import BrokerAssignorUnknownError, LayoutUnknownError
from streamapp.simulator.forecast.times import GAP_SECONDS, HandoverGap, Spread
from streamapp.simulator.rounds import Cause
from tests.builders import NOW
from tests.model.forecast.apps import RECORDS
from tests.model.forecast.streams_apps import CAPPED, Layout, a_streams_table, on_rests, predicted

SPREAD: Layout = {0: [("01", "4")], 1: [("23", "5")], 2: [("45", "0123")]}
"""Each task of pod 2 has its standby on another pod."""
CROWDED: Layout = {0: [("01", "45")], 1: [("23", "01")], 2: [("45", "23")]}
"""Both tasks of pod 2 have theirs on pod 0, which has room for one."""
BARE: Layout = {0: [("01", "")], 1: [("23", "")], 2: [("45", "")]}


def ways(found: Outcome) -> Ways:
    assert found.ways is not None
    return found.ways


def causes(found: Outcome) -> list[Cause]:
    return [step.cause for step in found.steps]


def test_tasks_of_a_pod_that_leaves_go_to_their_standbys_at_once() -> None:
    found = predicted(a_streams_table(SPREAD), 2)
    assert found.moves == (TaskMove(TaskId(0, 4), 2, 0), TaskMove(TaskId(0, 5), 2, 1))
    assert (found.assignor, found.cold, found.copied, found.rebalances) == ("sticky", 0, 0, 1)
    assert (ways(found).moves, ways(found).cold, ways(found).uncertain) == (Range(2, 2), Range(0, 0), {})
    assert found.gap == GAP_SECONDS[HandoverGap.DEPARTURE]


def test_a_standby_whose_pod_has_its_share_is_passed_over() -> None:
    found = predicted(a_streams_table(CROWDED), 2)
    assert found.moves == (TaskMove(TaskId(0, 4), 2, 0), TaskMove(TaskId(0, 5), 2, 1))
    assert (found.cold, found.copied, ways(found).raises) == (1, RECORDS, 0)
    assert found.gap is not None
    assert found.gap.p50 == pytest.approx(GAP_SECONDS[HandoverGap.DEPARTURE].p50 + 1.0)  # the restore of one task


def test_a_second_standby_is_raised_on_demand_where_one_leaves_a_task_cold() -> None:
    found = predicted(a_streams_table(CROWDED, most=2), 2)
    assert (found.cold, ways(found).cold, ways(found).raises, ways(found).standbys) == (0, Range(0, 0), 1, 2)
    assert causes(found) == [Cause.STANDBYS, Cause.CAUGHT_UP, Cause.MEMBERSHIP, Cause.STANDBYS]
    assert found.learners == 6
    assert sum(len(copies) for copies in found.steps[1].copies.values()) == 12
    assert sum(len(copies) for copies in found.steps[-1].copies.values()) == 6


def test_without_standbys_at_rest_they_are_raised_and_put_back() -> None:
    found = predicted(a_streams_table(BARE, standbys=0, most=2), 2)
    assert (ways(found).cold, ways(found).raises >= 1) == (Range(0, 0), True)
    assert not any(found.steps[-1].copies.values())
    # Nothing moves but what leaves, and the pods copy while they wait.
    assert {move.source for move in found.moves} == {2}
    assert found.seconds is not None
    bare = predicted(a_streams_table(BARE, standbys=0), 2)
    assert (ways(bare).cold, ways(bare).raises) == (Range(2, 2), 0)
    assert bare.seconds is not None
    assert found.seconds.p50 > bare.seconds.p50


def test_pods_leave_one_by_one() -> None:
    found = predicted(a_streams_table({**SPREAD, 3: [("67", "")]}, standbys=0), 2)
    assert (found.removals, causes(found)) == (2, [Cause.MEMBERSHIP, Cause.MEMBERSHIP])
    assert [sorted(step.active) for step in found.steps] == [[0, 1, 2], [0, 1]]


def test_standbys_that_are_placed_anew_are_waited_for_before_the_next_pod_goes() -> None:
    found = predicted(a_streams_table(BARE, standbys=0, most=2), 1)
    assert (ways(found).cold, ways(found).raises) == (Range(0, 0), 1)
    departed = [at for at, cause in enumerate(causes(found)) if cause is Cause.MEMBERSHIP]
    assert len(departed) == 2
    assert Cause.CAUGHT_UP in causes(found)[departed[0] : departed[1]]
    assert found.steps[departed[1]].seconds > found.steps[departed[0]].seconds


def test_a_standby_that_is_behind_is_waited_for_and_not_raised() -> None:
    table = a_streams_table(SPREAD, most=2)
    rows = tuple(
        replace(row, copies=tuple(replace(copy, lag=0 if copy.role is Role.ACTIVE else RECORDS) for copy in row.copies))
        for row in table.rows
    )
    found = predicted(replace(table, rows=rows), 2)
    assert causes(found) == [Cause.CAUGHT_UP, Cause.MEMBERSHIP]
    assert (ways(found).raises, found.cold, found.copied) == (0, 0, 6 * RECORDS)


def test_one_standby_fewer_than_pods_is_the_most_that_is_raised() -> None:
    found = predicted(a_streams_table({0: [("02", "")], 1: [("13", "")]}, standbys=0, most=2), 1)
    assert (ways(found).standbys, ways(found).cold) == (1, Range(0, 0))


def test_new_pods_get_their_share_at_once_and_cold() -> None:
    found = predicted(a_streams_table({0: [("012", "")], 1: [("345", "")]}, standbys=0), 3)
    assert {move.target for move in found.moves} == {2}
    assert (len(found.moves), found.cold, found.rebalances, found.needless) == (2, 2, 1, 0)
    first, second = found.steps
    assert (first.waiting, second.waiting, second.cause, second.seconds) == (2, 2, Cause.REVOKED, 5.0)


def test_several_new_pods_are_as_good_as_each_other() -> None:
    found = predicted(a_streams_table({0: [("012", "")], 1: [("345", "")]}, standbys=0), 4)
    uncertain = ways(found).uncertain
    assert uncertain
    assert all(pods >= {2, 3} for pods in uncertain.values())
    # One by one, the second of them finds nothing that it could get: each has its share by then.
    assert ways(found).moves == Range(2, 2)


def test_threads_of_one_pod_leave_in_any_order() -> None:
    layout: Layout = {0: [("01", "5")], 1: [("23", "4")], 2: [("4", "0"), ("5", "1")]}
    found = predicted(a_streams_table(layout), 2)
    assert {(move.task, move.target) for move in found.moves} == {(TaskId(0, 4), 1), (TaskId(0, 5), 0)}


def test_standbys_by_the_users_word_have_caught_up_before() -> None:
    found = predicted(a_streams_table(CROWDED), 2, Given(standbys=2))
    assert (ways(found).cold, found.standbys, ways(found).raises) == (Range(0, 0), 2, 0)


def test_heartbeats_and_intervals_decide_how_long_users_wait() -> None:
    capped = predicted(a_streams_table(SPREAD, heartbeat=CAPPED), 2).gap
    assert capped == GAP_SECONDS[HandoverGap.DEPARTURE_CAPPED]
    slow = predicted(a_streams_table(SPREAD, heartbeat=CAPPED, release="4.3", interval=timedelta(seconds=1)), 2).gap
    assert slow == Spread(capped.p10, capped.p50, capped.p90 + 1)
    up = predicted(a_streams_table({0: [("012", "")], 1: [("345", "")]}, standbys=0, heartbeat=CAPPED), 3)
    assert up.steps[1].seconds == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("release", "assignor", "why"),
    [(None, None, "another release"), ("4.1", None, "another release"), ("4.4", "balanced", "`balanced`")],
)
def test_an_assignor_that_is_not_modelled_is_refused(release: str | None, assignor: str | None, why: str) -> None:
    with pytest.raises(BrokerAssignorUnknownError, match=why):
        predicted(a_streams_table(SPREAD, release=release, assignor=assignor), 2)


def test_a_pod_that_is_not_in_the_group_and_a_member_without_a_pod_are_refused() -> None:
    table = a_streams_table(SPREAD)
    assert table.streams is not None
    first, *others = table.streams.members
    absent = replace(table, streams=replace(table.streams, members=tuple(others)))
    with pytest.raises(LayoutUnknownError, match="pod 0 is not in the group"):
        predicted(absent, 2)
    lost = replace(table, streams=replace(table.streams, members=(replace(first, ordinal=None), *others)))
    with pytest.raises(LayoutUnknownError, match="the pod of member `member-0-0` is not known"):
        predicted(lost, 2)


def test_the_basis_names_what_counts_in_such_a_group() -> None:
    _, found = on_rests(a_streams_table(BARE, standbys=0, most=2, heartbeat=CAPPED), 2)
    assert found.learned == (
        "brokers 4.2, assignor sticky",
        "streams.num.standby.replicas 0",
        "the operator raises streams.num.standby.replicas to 2 at most while pods leave",
        "agents shorten heartbeats to 300 ms while tasks move",
        "1 stream thread a pod",
    )
    assert "gaps of one run on a bare broker 4.2.1" in found.assumed
    every = " ".join((*found.learned, *found.assumed))
    assert not any(word in every for word in ("max.warmup", "probing", "Kafka Streams", "triggers", " num.standby"))


def test_a_setting_that_was_not_read_is_assumed_by_the_layout() -> None:
    _, found = on_rests(a_streams_table(SPREAD, standbys=None, release="4.4"), 2, Given(threads=3))
    assert found.settings.standbys == 1
    assert "streams.num.standby.replicas 1, as many as most tasks have" in found.assumed
    assert "3 stream threads a pod" in found.assumed
    assert any("several ranks" in phrase for phrase in found.assumed)


def test_a_task_that_ends_on_one_of_its_possible_pods_is_as_predicted() -> None:
    table = a_streams_table({0: [("012", "")], 1: [("345", "")]}, standbys=0)
    found = predicted(table, 4)
    app, _ = on_rests(table, 4)
    ordinals = app.ordinals()
    before = {task: ordinals[process] for task, process in app.world.owners().items()}
    forecast = Forecast(made_at=NOW, opened_at=NOW, from_replicas=2, to_replicas=4, outcome=found, owners=before)
    swapped = {task: {2: 3, 3: 2}.get(pod, pod) for task, pod in found.owners.items()}
    assert swapped != found.owners
    closed = compared(forecast, NOW, NOW + timedelta(seconds=20), swapped)
    assert (closed.wrong, closed.result) == ((), Result.WITHIN)
    stays = next(task for task in before if task not in ways(found).uncertain)
    elsewhere = {**swapped, stays: 1 - before[stays]}
    assert compared(forecast, NOW, NOW + timedelta(seconds=20), elsewhere).wrong == (stays,)
