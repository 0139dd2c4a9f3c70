"""Between two rebalances copies catch up at their rates; the next one comes when somebody asks for it."""

from dataclasses import replace

import pytest

from streamapp.core.assignors.group import RUNNING, Copy, RackAwarenessNotModelledError, Task
from streamapp.core.assignors.sticky import BrokerRelease, StickySettings
from streamapp.core.assignors.sticky import assign as assign_by_broker
from streamapp.core.facts.ids import ProcessId, TaskId
from streamapp.simulator.learner.draft import Announcement, LearnerSettings, Leaving
from streamapp.simulator.rounds import (
    Assignor,
    Cause,
    Pace,
    learner_assignor,
    moved,
    play,
    stock_assignor,
)
from streamapp.simulator.stock import Release, StockSettings, assign
from streamapp.simulator.world import Instance, Rates, World
from tests.model.replays.scenes import ordered_id

ONE, TWO, THREE = (ordered_id(number) for number in (1, 2, 3))
A, B, C, D = (TaskId(0, partition) for partition in range(4))
RATES = Rates(restore=100, arrival=10)
PACE = Pace(rates=Rates(restore=1_000), acceptable_lag=100)


def world(*instances: Instance, end: float = 1_000) -> World:
    tasks = tuple(Task(task) for task in (A, B, C, D))
    return World(tasks=tasks, ends=dict.fromkeys((A, B, C, D), end), instances={one.process: one for one in instances})


def whole(number: int, *actives: TaskId, end: float = 1_000) -> Instance:
    process = ordered_id(number)
    return Instance(process=process, actives=frozenset(actives), positions=dict.fromkeys(actives, end))


def test_copies_share_the_rate_of_their_process_and_the_nearest_is_first() -> None:
    one = Instance(process=ONE, standbys=frozenset({A, B}), positions={A: 920.0, B: 840.0})
    later = world(one).after(2.0, RATES).instances[ONE].positions
    # 50 records a second for each, less the 10 that arrive: A is there after 2 s, and B has 80 left.
    assert later == pytest.approx({A: 1_020, B: 940})
    # From then on B has the whole rate: 90 records a second.
    caught_up = world(one).seconds_until_caught_up([Copy(B, ONE)], 0, RATES)
    assert caught_up == pytest.approx(2 + 80 / 90)
    assert world(one).seconds_until_caught_up([Copy(B, ONE)], 80, RATES) == pytest.approx(2)
    assert world(one).seconds_until_caught_up([Copy(B, ONE)], 160, RATES) == 0
    assert world(one).seconds_until_caught_up([], 0, RATES) == 0


def test_a_copy_that_is_slower_than_its_changelog_never_catches_up() -> None:
    one = Instance(process=ONE, standbys=frozenset({A}), positions={A: 0.0})
    assert world(one).seconds_until_caught_up([Copy(A, ONE)], 0, Rates(restore=5, arrival=10)) == float("inf")


def test_members_report_running_tasks_and_lags_rounded_up() -> None:
    one = Instance(process=ONE, actives=frozenset({A, B}), positions={A: 1_000.0, B: 10.5, C: 999.5})
    (client,) = world(one).clients()
    assert client.lags == {A: RUNNING, B: 990, C: 1}
    assert [client.lag(task) for task in (A, B, C, D)] == [RUNNING, 990, 1, 1_000]
    assert (client.actives, client.copies) == (frozenset({A, B}), frozenset({C}))


def test_the_operators_trigger_replaces_the_probing_interval() -> None:
    group = world(whole(1, A, B, C, D)).joined_by(Instance(process=TWO))
    assignor = stock_assignor(StockSettings(acceptable_recovery_lag=100))
    probing = play(group, assignor, PACE)
    triggered = play(group, assignor, replace(PACE, is_triggered=True))
    assert [(one.seconds, one.cause) for one in probing.rounds] == [
        (0, Cause.MEMBERSHIP),
        (600, Cause.PROBING),
        (603, Cause.REVOKED),
    ]
    # Two copies share 1,000 records a second and need 900 records each.
    assert [(one.seconds, one.cause) for one in triggered.rounds] == [
        (0, Cause.MEMBERSHIP),
        (pytest.approx(1.8), Cause.TRIGGERED),
        (pytest.approx(4.8), Cause.REVOKED),
    ]
    assert probing.world.owners() == triggered.world.owners() == {A: ONE, B: TWO, C: ONE, D: TWO}


@pytest.mark.parametrize(
    "assignor",
    [
        stock_assignor(StockSettings(acceptable_recovery_lag=100)),
        learner_assignor(LearnerSettings(acceptable_lag=100), Announcement()),
    ],
)
def test_a_group_that_begins_empty_is_even_at_once(assignor: Assignor) -> None:
    group = world(Instance(process=ONE), Instance(process=TWO))
    played = play(group, assignor, PACE)
    assert len(played.rounds) == 1
    assert [len(one.actives) for one in played.world.instances.values()] == [2, 2]


@pytest.mark.parametrize("owner", [ONE, TWO])
def test_the_former_owner_keeps_a_standby_until_the_next_rebalance_where_no_process_says_who_it_was(
    owner: ProcessId,
) -> None:
    other = TWO if owner is ONE else ONE
    tasks = [TaskId(0, partition) for partition in range(6)]
    ends, even, odd = dict.fromkeys(tasks, 1_000.0), frozenset(tasks[::2]), frozenset(tasks[1::2])
    one = Instance(process=owner, actives=even, standbys=odd, positions=ends)
    two = Instance(process=other, actives=odd, standbys=even, positions=ends)
    group = World(tasks=tuple(map(Task, tasks)), ends=ends, instances={owner: one, other: two})
    ours = learner_assignor(LearnerSettings(acceptable_lag=100, standbys=1), Announcement())
    played = play(group.joined_by(Instance(process=THREE)), ours, PACE)
    (giving_up,) = (round_ for round_ in played.rounds if round_.revoked)
    assert giving_up.revoked == {Copy(A, owner), Copy(B, other)}
    assert A in giving_up.given[owner].standbys
    assert B in giving_up.given[other].standbys
    # Both older processes are caught up on both tasks then, and of equals the first by name gets the first standby.
    last = played.world.instances
    assert [[name for name in (ONE, TWO) if task in last[name].standbys] for task in (A, B)] == [[ONE], [TWO]]


@pytest.mark.parametrize(
    "assignor",
    [
        stock_assignor(StockSettings(acceptable_recovery_lag=100)),
        learner_assignor(LearnerSettings(acceptable_lag=100), Announcement()),
    ],
)
def test_a_group_that_was_stopped_whole_comes_back_with_each_task_where_its_state_lies(assignor: Assignor) -> None:
    group = world(whole(1, A, C), whole(2, B, D))
    stopped = [replace(one, actives=frozenset()) for one in group.instances.values()]
    played = play(group.left_by(group.instances).joined_by(*stopped), assignor, PACE)
    assert played.world.owners() == group.owners()
    assert [one.cold for one in played.rounds] == [frozenset()]


@pytest.mark.parametrize("pace", [PACE, replace(PACE, is_triggered=True)])
def test_a_process_that_returns_takes_over_when_it_is_warm(pace: Pace) -> None:
    group = world(whole(1, A, B, C, D))
    back = Instance(process=TWO, positions={task: group.ends[task] for task in (A, B)}, warm_in=12.5)
    ours = learner_assignor(LearnerSettings(acceptable_lag=100), Announcement())
    played = play(group.joined_by(back), ours, pace)
    assert [(one.seconds, len(one.revoked)) for one in played.rounds][:3] == [(0.0, 0), (10.0, 0), (12.5, 2)]
    assert played.world.owners() == {A: TWO, B: TWO, C: ONE, D: ONE}
    (giving_up, *_) = play(group.joined_by(replace(back, warm_in=0.0)), ours, pace).rounds
    assert giving_up.revoked == {Copy(A, ONE), Copy(B, ONE)}


def test_leaving_processes_are_emptied_by_the_learner_assignor() -> None:
    group = world(whole(1, A, B), whole(2, C, D))
    announcement = Announcement(state=Leaving.SET, leaving=frozenset({TWO}))
    played = play(group, learner_assignor(LearnerSettings(acceptable_lag=100), announcement), PACE)
    assert set(played.world.owners().values()) == {ONE}
    assert moved(group.owners(), played.world.owners()) == {C, D}
    assert not any(one.cold for one in played.rounds)


def test_rounds_that_never_end_are_cut_off() -> None:
    group = world(whole(1, A, B, C, D)).joined_by(Instance(process=TWO))
    slow = replace(PACE, rates=Rates(restore=1, arrival=1))
    played = play(group, stock_assignor(StockSettings(acceptable_recovery_lag=100)), slow)
    assert (len(played.rounds), played.is_over) == (1_000, False)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (StockSettings(rack_aware_tags=("zone",), num_standby_replicas=1), "rack.aware.assignment.tags"),
        (StockSettings(rack_aware_strategy="min_traffic"), "rack.aware.assignment.strategy"),
    ],
)
def test_racks_are_refused_with_the_name_of_the_setting(settings: StockSettings, name: str) -> None:
    with pytest.raises(RackAwarenessNotModelledError, match=name):
        assign([], [], settings)


def test_tags_without_standbys_decide_nothing() -> None:
    StockSettings(rack_aware_tags=("zone",)).require_modelled()


def test_a_group_without_processes_is_refused() -> None:
    with pytest.raises(ValueError, match="has no assignment"):
        stock_assignor(StockSettings())([Task(A)], [])
    with pytest.raises(ValueError, match="has no assignment"):
        assign_by_broker([Task(A)], [], StickySettings())


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("2.6.0", Release.FROM_2_6),
        ("3.1.2", Release.FROM_2_6),
        ("3.2.3", Release.FROM_3_2),
        ("4.3.1", Release.FROM_3_3),
    ],
)
def test_a_version_has_its_release(version: str, release: Release) -> None:
    assert Release.of(version) is release


def test_a_version_before_the_stock_assignor_is_refused() -> None:
    with pytest.raises(ValueError, match=r"2\.5\.1: the stock assignor is modelled from 2\.6 on"):
        Release.of("2.5.1")


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("4.2.1", BrokerRelease.FROM_4_2),
        ("4.3.2", BrokerRelease.FROM_4_2_2),
        ("4.4", BrokerRelease.FROM_4_4),
    ],
)
def test_a_broker_has_its_release(version: str, release: BrokerRelease) -> None:
    assert BrokerRelease.of(version) is release


def test_a_broker_that_is_not_modelled_is_refused() -> None:
    with pytest.raises(ValueError, match="modelled for 4"):
        BrokerRelease.of("4.1.2")
