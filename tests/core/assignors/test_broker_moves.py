"""Where the broker would put tasks: the sticky assignor played for members that leave, and what nobody can know."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

import pytest

from streamapp.core.assignors import broker_moves, java_order
from streamapp.core.assignors.broker_moves import AssignorUnknown, moves_without, takes_long
from streamapp.core.assignors.group import Placement, Task
from streamapp.core.assignors.sticky import BrokerRelease, StickySettings, StreamsMember, assign
from streamapp.core.facts.group import (
    Applied,
    Assignment,
    FollowUp,
    GroupDescription,
    GroupState,
    Member,
    StandbySetting,
)
from streamapp.core.facts.ids import ProcessId, TaskId
from streamapp.core.facts.tasks import TaskSet
from tests.support import example
from tests.support.streams import streams_group, streams_members


def group(members: Iterable[Member], **changes: object) -> GroupDescription:
    streams = replace(streams_group(), **changes)  # type: ignore[arg-type]  # fields of the group by their names
    return GroupDescription(GroupState.STABLE, streams_members(members), streams)


def moves(found: GroupDescription, *leaving: str, partitions: int = 6) -> dict[str, set[ProcessId]]:
    played = moves_without(found, example.task_set(partitions), frozenset(leaving))
    assert not isinstance(played, AssignorUnknown), played
    return {str(task): set(processes) for task, processes in played.items()}


def test_tasks_go_to_the_holders_of_standbys_that_are_below_their_quota() -> None:
    spread = (
        example.member(0, active=(0, 1), standby=(4,)),
        example.member(1, active=(2, 3), standby=(5,)),
        example.member(2, active=(4, 5), standby=(0, 1, 2, 3)),
    )
    found = moves(group(spread), "wordcount-2-consumer")
    assert found == {"0_4": {example.process_id(0)}, "0_5": {example.process_id(1)}}


def test_a_holder_with_its_quota_is_passed_over() -> None:
    """Both standbys lie on one process, which takes one task only; the other task starts cold elsewhere."""
    crowded = example.members(3)
    found = moves(group(crowded), "wordcount-2-consumer")
    assert found["0_4"] == {example.process_id(0)}
    assert found["0_5"] == {example.process_id(1)}


SPREAD = (
    example.member(0, active=(0, 1), standby=(4,)),
    example.member(1, active=(2, 3), standby=(5,)),
    example.member(2, active=(4, 5), standby=(0, 1, 2, 3)),
)


@pytest.mark.guarantee(1)
@pytest.mark.parametrize("release", ["4.2", "4.4"])
@pytest.mark.parametrize("replicas", [0, 2])
def test_a_number_of_standbys_that_is_set_and_not_placed_yet_can_count_before_members_leave(
    replicas: int, release: str
) -> None:
    """With fewer, the copies are dropped; with more, a new one without state can be given the task."""
    either = frozenset({example.process_id(0), example.process_id(1)})
    set_since = group(SPREAD, broker_release=release, standbys=StandbySetting(replicas, is_set=True))
    assert moves(set_since, "wordcount-2-consumer") == {"0_4": either, "0_5": either}
    settled = group(SPREAD, broker_release=release, standbys=StandbySetting(1, is_set=True))
    found = moves_without(settled, example.task_set(), frozenset({"wordcount-2-consumer"}), frozenset({replicas}))
    assert found == {TaskId(0, 4): either, TaskId(0, 5): either}


@pytest.mark.guarantee(1)
@pytest.mark.parametrize("seed", range(12))
def test_each_move_after_a_changed_number_of_standbys_is_predicted(seed: int) -> None:
    """The brokers go by the number at one heartbeat, and then the threads of the last pod leave one by one."""
    chance = Random(seed)  # noqa: S311 - the same groups in every run
    release, version = chance.choice(((BrokerRelease.FROM_4_2, "4.2"), (BrokerRelease.FROM_4_4, "4.4")))
    tasks, (before, after) = [Task(TaskId(0, number)) for number in range(9)], chance.sample((0, 1, 2), 2)
    was, now = (StickySettings(release=release, num_standby_replicas=count) for count in (before, after))
    settled: dict[str, StreamsMember] = {}
    for pod in range(3):
        for thread in range(chance.choice((1, 2))):
            name = f"{pod}-{thread}-{chance.getrandbits(64):x}"
            settled[name] = StreamsMember(id=name, process=str(example.process_id(pod)))
        settled = placed(tasks, settled, was)
    leaving = [name for name in settled if name.startswith("2-")]
    told = group(shown(settled), broker_release=version, standbys=StandbySetting(after, is_set=True))
    predicted, had = moves(told, *leaving, partitions=len(tasks)), owners(settled)
    left = placed(tasks, settled, now)
    for gone in chance.sample(leaving, len(leaving)):
        left = placed(tasks, {name: one for name, one in left.items() if name != gone}, now)
    found = {task: process for task, process in owners(left).items() if process != had[task]}
    assert found
    assert [task for task, process in found.items() if process not in predicted.get(task, set())] == []


def shown(members: dict[str, StreamsMember]) -> list[Member]:
    """The members as a broker shows them."""
    return [
        replace(example.member(int(name[0]), active=partitions(one.actives), standby=partitions(one.standbys)), id=name)
        for name, one in members.items()
    ]


def test_more_standbys_than_other_processes_can_hold_are_no_change() -> None:
    two = (
        example.member(0, active=(0, 1, 2), standby=(3, 4, 5)),
        example.member(1, active=(3, 4, 5), standby=(0, 1, 2)),
    )
    counted = [
        broker_moves._Standbys.of(
            tuple(broker_moves._Holder.of(one, with_offsets=False) for one in two),
            [Task(TaskId(0, number)) for number in range(6)],
            replace(streams_group(), standbys=StandbySetting(replicas, is_set=True)),
            frozenset(),
        ).to_come
        for replicas in (0, 1, 2)
    ]
    assert counted == [frozenset({0}), frozenset(), frozenset()]


def test_a_tie_that_hash_tables_decide_counts_in_every_way() -> None:
    bare = example.members(3, standbys=False)
    found = moves(group(bare), "wordcount-2-consumer")
    either = {example.process_id(0), example.process_id(1)}
    assert found == {"0_4": either, "0_5": either}


def test_tasks_of_pods_that_stay_do_not_move() -> None:
    assert moves(group(example.members(3)), "wordcount-2-consumer").keys() == {"0_4", "0_5"}


def test_a_task_beside_a_narrow_source_topic_that_serves_as_changelog_has_standbys_for_brokers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They ask whether a sub-topology has a changelog, and not which of its tasks has a partition of it."""
    stateful: set[frozenset[TaskId]] = set()

    def noted(tasks: Iterable[Task], members: Iterable[StreamsMember], settings: StickySettings) -> object:
        known = tuple(tasks)
        stateful.add(frozenset(task.id for task in known if task.is_stateful))
        return assign(known, members, settings)

    monkeypatch.setattr(broker_moves, "assign", noted)
    broker_moves._moves.cache_clear()
    whole = example.task_set(6)
    narrow = TaskSet(
        (*whole.tasks[:4], *(replace(one, stateful=False, changelogs=(), stores={}) for one in whole.tasks[4:]))
    )
    moves_without(group(SPREAD), narrow, frozenset({"wordcount-2-consumer"}))
    broker_moves._moves.cache_clear()
    assert stateful == {whole.ids}


def test_threads_of_one_pod_leave_in_any_order() -> None:
    """A thread that leaves first can hand a task to a pod that would not get it if both left at once."""
    one, other = example.member(2, active=(4,), standby=(0,)), example.member(2, active=(5,), standby=(1,))
    threads = (
        example.member(0, active=(0, 1), standby=(5,)),
        example.member(1, active=(2, 3), standby=(4,)),
        replace(one, id="t-1"),
        replace(other, id="t-2"),
    )
    found = moves(group(threads), "t-1", "t-2")
    assert found == {"0_4": {example.process_id(1)}, "0_5": {example.process_id(0)}}


@pytest.mark.guarantee(1)
@pytest.mark.parametrize(("threads", "seed"), [(3, 49), (3, 224), (4, 61)])
def test_each_order_in_which_the_threads_of_a_pod_leave_is_predicted(threads: int, seed: int) -> None:
    """In these groups some orders put a task where it goes neither if all leave at once nor one by one in turn."""
    chance = Random(seed)  # noqa: S311 - the same groups in every run
    tasks = [Task(TaskId(0, number)) for number in range(chance.randint(12, 22))]
    settled = joined_one_by_one(tasks, threads, chance)
    leaving = [name for name in settled if name.startswith("0-")]
    predicted = moves(group(shown(settled)), *leaving, partitions=len(tasks))
    before, seen = owners(settled), dict[str, set[ProcessId]]()
    for _ in range(60):
        left = dict(settled)
        for gone in in_some_order(leaving, chance):
            left = placed(tasks, {name: one for name, one in left.items() if name not in gone})
        for task, process in owners(left).items():
            if process != before[task]:
                seen.setdefault(task, set()).add(process)
    surprises = {task: places - predicted.get(task, set()) for task, places in seen.items()}
    assert {task: places for task, places in surprises.items() if places} == {}


@pytest.mark.parametrize(
    ("release", "standbys", "strange"),
    [(BrokerRelease.FROM_4_2, 1, True), (BrokerRelease.FROM_4_4, 1, True), (BrokerRelease.FROM_4_2, 2, False)],
)
def test_a_pod_that_returns_gets_tasks_that_it_never_had_unless_each_pod_has_a_copy_of_each(
    release: BrokerRelease, standbys: int, strange: bool
) -> None:
    """It is a new member: the owners keep what they can by the order of partitions, and it gets what is left."""
    settings = StickySettings(release=release, num_standby_replicas=standbys)
    tasks = [Task(TaskId(0, number)) for number in range(12)]
    members = {name: StreamsMember(id=name, process=f"process {name}") for name in ("pod-0", "pod-1", "pod-2")}
    settled = placed(tasks, placed(tasks, members, settings), settings)
    before = settled.pop("pod-2")
    disk = before.actives | before.standbys
    reported = dict.fromkeys(disk, 100) if release is BrokerRelease.FROM_4_4 else {}
    back = replace(before, id="pod-2 again", actives=frozenset(), standbys=frozenset(), offsets=reported)
    returned = placed(tasks, {**placed(tasks, settled, settings), back.id: back}, settings)
    assert bool(returned[back.id].actives - disk) == strange


def joined_one_by_one(tasks: Sequence[Task], threads: int, chance: Random) -> dict[str, StreamsMember]:
    """Three pods, whose threads have joined one after the other; often brokers assigned in between."""
    members: dict[str, StreamsMember] = {}
    for pod in range(3):
        for thread in range(threads):
            name = f"{pod}-{thread}-{chance.getrandbits(64):x}"
            members[name] = StreamsMember(id=name, process=str(example.process_id(pod)))
            members = placed(tasks, members) if chance.random() < 0.7 else members
        members = placed(tasks, members)
    return members


ONE_STANDBY = StickySettings(num_standby_replicas=1)


def placed(
    tasks: Sequence[Task], members: dict[str, StreamsMember], settings: StickySettings = ONE_STANDBY
) -> dict[str, StreamsMember]:
    """The members with what a broker gives them."""
    found = assign(tasks, members.values(), settings)
    return {
        name: replace(one, actives=found[name].actives, standbys=found[name].standbys) for name, one in members.items()
    }


def owners(members: dict[str, StreamsMember]) -> dict[str, ProcessId]:
    return {str(task): ProcessId.parse(one.process) for one in members.values() for task in one.actives}


def partitions(tasks: Iterable[TaskId]) -> tuple[int, ...]:
    return tuple(task.partition for task in tasks)


def in_some_order(names: Sequence[str], chance: Random) -> Iterable[set[str]]:
    """Each alone, or together with the one before."""
    batches: list[set[str]] = []
    for name in chance.sample(list(names), len(names)):
        if batches and chance.random() < 0.5:
            batches[-1].add(name)
        else:
            batches.append({name})
    return batches


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"broker_release": None}, "another release"),
        ({"broker_release": "4.1"}, "another release"),
        ({"broker_release": "4.4", "assignor": "balanced"}, "`balanced`"),
    ],
)
def test_an_assignor_that_is_not_modelled_predicts_nothing(changes: dict[str, str | None], why: str) -> None:
    found = moves_without(group(example.members(3), **changes), example.task_set(), frozenset({"wordcount-2-consumer"}))
    assert isinstance(found, AssignorUnknown)
    assert why in found.why


def test_a_classic_group_is_none_of_the_brokers_concern() -> None:
    classic = GroupDescription(GroupState.STABLE, example.members(3))
    assert isinstance(moves_without(classic, example.task_set(), frozenset({"wordcount-2-consumer"})), AssignorUnknown)


def test_a_rank_by_offsets_that_a_broker_has_not_heard_yet_counts_in_every_way() -> None:
    """Both pods have a copy of the task and equal loads, so 4.4 takes the one that last reported more records."""
    layout = (
        example.member(0, active=(0, 1), standby=(4,)),
        example.member(1, active=(2, 3), standby=(4,)),
        example.member(2, active=(4,)),
    )
    found = group(layout, broker_release="4.4", assignor="sticky")
    ahead = {"wordcount-0-consumer": 900, "wordcount-1-consumer": 100}
    members = tuple(with_offset(one, ahead[one.id]) if one.id in ahead else one for one in found.members)
    either = {example.process_id(0), example.process_id(1)}
    assert moves(replace(found, members=members), "wordcount-2-consumer", partitions=5) == {"0_4": either}


def with_offset(member: Member, records: int) -> Member:
    assert member.subscription is not None
    offsets = {TaskId(0, 4): Applied(records)}
    return replace(member, subscription=replace(member.subscription, offsets=offsets))


@pytest.mark.parametrize("release", ["4.2", "4.3", "4.4"])
def test_the_answer_under_the_true_names_is_always_among_those_that_are_predicted(release: str) -> None:
    found = group(example.members(6), broker_release=release, assignor="sticky" if release == "4.4" else None)
    left = [member for member in found.members if member.id != "wordcount-5-consumer"]
    played = [
        StreamsMember(
            id=member.id,
            process=str(member.process_id),
            actives=member.assignment.active,
            standbys=member.assignment.standby,
        )
        for member in left
        if member.assignment is not None
    ]
    answer = assign(
        [Task(TaskId(0, number)) for number in range(6)],
        played,
        StickySettings(release=BrokerRelease.of(release), num_standby_replicas=1),
    )
    predicted = moves_without(found, example.task_set(), frozenset({"wordcount-5-consumer"}))
    assert not isinstance(predicted, AssignorUnknown)
    processes = {member.id: member.process_id for member in left}
    (new_owner,) = [processes[name] for name, placed in answer.items() if TaskId(0, 5) in placed.actives]
    assert new_owner in predicted[TaskId(0, 5)]


@pytest.mark.parametrize(("release", "plays_again"), [("4.2", False), ("4.4", True)])
def test_a_group_is_played_again_only_if_it_changed_in_what_its_broker_looks_at(
    release: str, plays_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    played: list[StickySettings] = []

    def counted(tasks: Iterable[Task], members: Iterable[StreamsMember], settings: StickySettings) -> object:
        played.append(settings)
        return assign(tasks, members, settings)

    monkeypatch.setattr(broker_moves, "assign", counted)
    broker_moves._moves.cache_clear()
    found = group(example.members(3), broker_release=release)
    others = tuple(with_offset(one, 17) for one in found.members)
    first = moves(found, "wordcount-2-consumer")
    once = len(played)
    assert (moves(found, "wordcount-2-consumer"), len(played)) == (first, once)
    moves(replace(found, members=others), "wordcount-2-consumer")
    assert (len(played) > once) is plays_again
    moves(found, "wordcount-1-consumer")
    assert len(played) > once


@pytest.mark.parametrize(("many", "is_kept"), [(2_000, True), (0, False)], ids=["small groups", "large groups"])
def test_answers_about_few_large_groups_are_kept(many: int, is_kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[StickySettings] = []

    def counted(tasks: Iterable[Task], members: Iterable[StreamsMember], settings: StickySettings) -> object:
        played.append(settings)
        return assign(tasks, members, settings)

    monkeypatch.setattr(broker_moves, "assign", counted)
    monkeypatch.setattr(broker_moves, "_MANY", many)
    broker_moves._moves.cache_clear()
    broker_moves._moves_of_many.cache_clear()
    found = group(example.members(6))
    for leaving in range(5):
        moves(found, f"wordcount-{leaving}-consumer")
    once = len(played)
    moves(found, "wordcount-4-consumer")
    assert len(played) == once
    moves(found, "wordcount-0-consumer")
    assert (len(played) == once) is is_kept


def test_no_broker_fills_the_memory_with_long_names_or_with_members_without_tasks() -> None:
    """Answers about many small groups are kept, and every tenant has a broker of his own that can say anything."""
    found, first = group(example.members(3)), broker_moves._moves.cache_info().currsize
    long = tuple(replace(one, id=f"{one.id}{'x' * 100_000}") for one in found.members)
    idle = tuple(replace(found.members[0], id=f"idle-{number}", assignment=None) for number in range(2_000))
    for members in (long, (*found.members, *idle)):
        moves(replace(found, members=members), members[0].id)
    assert broker_moves._moves.cache_info().currsize == first
    before = java_order._kept_hash.cache_info()
    assert java_order.string_hash("x" * 101) == java_order._hash("x" * 101)
    assert java_order._kept_hash.cache_info() == before


def test_of_a_pod_with_very_many_threads_several_leave_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[int] = []

    def kept(_: Iterable[Task], members: Iterable[StreamsMember], __: StickySettings) -> dict[str, Placement]:
        known = list(members)
        played.append(len(known))
        return {one.id: Placement(one.actives, one.standbys) for one in known}

    monkeypatch.setattr(broker_moves, "assign", kept)
    moves(group(crowd(60)), *(f"2-{thread}" for thread in range(60)))
    assert 1_000 < len(played) < 8 * (1 + 6 * 16) * 2
    assert min(played) == 120
    assert {60 - (size - 120) for size in played} > {4, 8, 56, 60}  # four leave with each plain step


def crowd(threads: int) -> list[Member]:
    """Members of three pods with so many threads each."""
    found = []
    for pod, like in enumerate(example.members(3)):
        idle = replace(like, assignment=Assignment(active=frozenset(), standby=frozenset(), follow_up=FollowUp.NONE))
        found += [replace(like if not at else idle, id=f"{pod}-{at}") for at in range(threads)]
    return found


@pytest.mark.guarantee(3)
def test_a_group_that_would_be_played_for_hours_is_not_played_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_moves, "assign", lambda *_: pytest.fail("it was played"))
    found = group(crowd(1_500))
    leaving = frozenset(f"2-{thread}" for thread in range(1_500))
    assert moves_without(found, example.task_set(6), leaving) == AssignorUnknown(
        "1500 of 4500 members leave, and 6 tasks can move in more ways than are played; use fewer stream threads"
    )


@pytest.mark.parametrize(
    ("found", "tasks", "is_long"),
    [
        (group(example.members(3)), 6, False),
        (group(crowd(2)), 6, False),
        (group(crowd(20)), 6, True),
        (group(example.members(3)), 4_000, True),
        (group([]), 6, False),
        (GroupDescription(GroupState.STABLE, tuple(crowd(20))), 6, False),
    ],
    ids=["small", "two threads", "many threads", "many tasks", "nobody", "of the classic protocol"],
)
def test_it_is_known_before_which_groups_take_long(found: GroupDescription, tasks: int, is_long: bool) -> None:
    assert takes_long(found, example.task_set(tasks)) is is_long
