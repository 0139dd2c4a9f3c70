"""Laws of predictions for streams groups, beside the broker's assignor and beside the gate that plays one departure."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from streamapp.core.assignors.broker_moves import AssignorUnknown, moves_without
from streamapp.core.assignors.group import Task
from streamapp.core.assignors.sticky import BrokerRelease, StickySettings, StreamsMember, assign
from streamapp.core.facts.group import (
    Assignment,
    FollowUp,
    GroupDescription,
    GroupState,
    Member,
    StreamsGroup,
    Subscription,
)
from streamapp.core.facts.ids import ProcessId, TaskId, TopicPartition
from streamapp.core.facts.tasks import TaskFacts, TaskSet
from streamapp.simulator.forecast.outcome import Outcome
from streamapp.simulator.forecast.running import Running
from streamapp.simulator.rounds import Cause
from tests.model.forecast.streams_apps import Layout, a_streams_table, dealt, on_rests, predicted

COUNT = 8
"""Tasks; a digit each."""
RELEASES = {"4.2": BrokerRelease.FROM_4_2, "4.4": BrokerRelease.FROM_4_4}
pods = st.lists(st.integers(1, 2), min_size=2, max_size=4)
names = st.text("abcdefgh", min_size=4, max_size=4)
few = settings(max_examples=settings().max_examples // 3)
"""Each example plays up to 96 ways."""


def layout_of(count: int, threads: list[int], standbys: int, named: str, release: str) -> Layout:
    return dealt(count, threads, min(standbys, len(threads) - 1), named, RELEASES[release])


def stays_whole(found: Outcome) -> None:
    """Each task has one pod after each assignment that is not half handed over, and no pod more than its share."""
    owners = Counter(task for tasks in found.steps[-1].active.values() for task in tasks)
    assert owners == dict.fromkeys((TaskId(0, number) for number in range(COUNT)), 1)


@few
@given(pods, st.integers(0, 2), names, st.sampled_from(sorted(RELEASES)), st.integers(-1, 3))
def test_every_task_ends_on_one_pod_and_no_thread_has_more_than_its_share(
    threads: list[int], standbys: int, named: str, release: str, change: int
) -> None:
    to = max(1, len(threads) + change)
    table = a_streams_table(
        layout_of(COUNT, threads, standbys, named, release), standbys=min(standbys, len(threads) - 1), release=release
    )
    found = predicted(table, to)
    stays_whole(found)
    added = max(threads)
    sizes = [*threads, *[added] * max(0, change)][:to]
    share = -(-COUNT // sum(sizes))
    assert all(len(found.steps[-1].active[pod]) <= share * size for pod, size in enumerate(sizes))
    assert found.ways is not None
    assert found.ways.moves.fewest <= len(found.moves) <= found.ways.moves.most
    assert all(pod in found.places[task] for task, pod in found.owners.items())


@few
@given(pods, st.integers(0, 2), names, st.sampled_from(sorted(RELEASES)))
def test_one_departure_is_predicted_as_the_gate_plays_it(
    threads: list[int], standbys: int, named: str, release: str
) -> None:
    count = min(standbys, len(threads) - 1)
    table = a_streams_table(layout_of(COUNT, threads, count, named, release), standbys=count, release=release)
    to = len(threads) - 1
    app, _ = on_rests(table, to)
    leaving = frozenset(f"member-{to}-{thread}" for thread in range(threads[to]))
    moves = moves_without(group_of(app), task_set(), leaving)
    assert not isinstance(moves, AssignorUnknown)
    found, ordinals = predicted(table, to), app.ordinals()
    for task, places in moves.items():
        assert all(ordinals[place] in found.places[task] for place in places), (task, places)
    moved = {move.task for move in found.moves}
    assert moved <= moves.keys()


@few
@given(pods, names, st.sampled_from(sorted(RELEASES)), st.data())
def test_the_brokers_answer_under_the_true_names_is_among_the_possible_ones(
    threads: list[int], named: str, release: str, data: st.DataObject
) -> None:
    """All threads of the pod leave in one assignment, which the broker makes of the members as they are."""
    table = a_streams_table(layout_of(COUNT, threads, 1, named, release), release=release)
    app, _ = on_rests(table, len(threads) - 1)
    last = app.processes[len(threads) - 1]
    members = [
        StreamsMember(id=one.id, process=str(one.process_id), actives=one.assignment.active)
        for one in group_of(app).members
        if one.assignment is not None and one.process_id != last
    ]
    with_standbys = {one.id: one.assignment.standby for one in group_of(app).members if one.assignment is not None}
    asked = [replace(one, standbys=with_standbys[one.id]) for one in data.draw(st.permutations(members))]
    answer = assign(universe(), asked, StickySettings(release=RELEASES[release], num_standby_replicas=1))
    processes, ordinals = {one.id: one.process for one in members}, app.ordinals()
    by_name = {str(process): ordinal for process, ordinal in ordinals.items()}
    found = predicted(table, len(threads) - 1)
    for name, placed in answer.items():
        assert all(by_name[processes[name]] in found.places[task] for task in placed.actives)


@few
@given(pods, names, st.sampled_from(sorted(RELEASES)))
def test_a_raise_of_standbys_moves_no_active_task_and_a_raise_alone_never_leaves_more_cold(
    threads: list[int], named: str, release: str
) -> None:
    layout = layout_of(COUNT, threads, 0, named, release)
    bare = predicted(a_streams_table(layout, standbys=0, release=release), len(threads) - 1)
    raised = predicted(a_streams_table(layout, standbys=0, most=2, release=release), len(threads) - 1)
    assert raised.ways is not None
    assert bare.ways is not None
    assert raised.ways.cold.most <= bare.ways.cold.most
    prepared = [step for step in raised.steps if step.cause in {Cause.STANDBYS, Cause.CAUGHT_UP}][:-1]
    before = {pod: frozenset().union(*(tasks_of(one) for one in members)) for pod, members in layout.items()}
    assert all(dict(step.active) == before for step in prepared)


def tasks_of(thread: tuple[str, str]) -> frozenset[TaskId]:
    return frozenset(TaskId(0, int(digit)) for digit in thread[0])


def universe() -> list[Task]:
    return [Task(TaskId(0, number)) for number in range(COUNT)]


def task_set() -> TaskSet:
    return TaskSet(
        tuple(
            TaskFacts(id=one.id, stateful=True, changelogs=(TopicPartition("changelog", one.id.partition),))
            for one in universe()
        )
    )


def group_of(app: Running) -> GroupDescription:
    """The same group as brokers describe it."""
    streams = app.streams
    assert streams is not None
    members = tuple(
        a_member(one.id, app.processes[int(one.ordinal)], one.actives, one.standbys)
        for one in streams.members
        if one.ordinal is not None
    )
    release = streams.group.broker_release
    group = StreamsGroup(epoch=7, assignment_epoch=7, broker_release=release)
    return GroupDescription(GroupState.STABLE, members, group)


def a_member(name: str, process: ProcessId, actives: frozenset[TaskId], standbys: frozenset[TaskId]) -> Member:
    return Member(
        id=name,
        client_id=name,
        client_host="10.0.0.1",
        subscription=Subscription(process_id=process, offsets={}, owned_partitions=frozenset()),
        assignment=Assignment(active=actives, standby=standbys, follow_up=FollowUp.NONE),
    )
