"""Whether learners fit onto the volumes of the pods that stay."""

from dataclasses import replace
from typing import Any

import pytest

from streamapp.core.actions.decision import Announce
from streamapp.core.decide import decide
from streamapp.core.evidence.capacity.disk_space import Room, RoomUnknown, room_for_learners, room_for_standbys
from streamapp.core.facts.agent_reports import AgentReport
from streamapp.core.facts.group import Member
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.tasks import TopologyUnknown
from streamapp.core.reasons import Reason
from tests.builders import a_reading, a_snapshot, told
from tests.support import example

POLICY = ScalingPolicy(agent=True)
BARE = example.members(3, standbys=False)
MEGA = 1_000_000


def reports(
    state: int | None, free: int | None, members: tuple[Member, ...] = BARE, **changes: Any
) -> dict[Ordinal, AgentReport]:
    """With tasks that take half of it each, unless something else is said of them."""
    words = {"sizes": None if state is None else dict.fromkeys(range(6), state // 2), **changes}
    found = [example.report(one, state_bytes=state, free_bytes=free, **words) for one in members]
    return {one.ordinal: one for one in found}


def pods(*ordinals: int) -> tuple[Ordinal, ...]:
    return tuple(map(Ordinal, ordinals))


def test_each_volume_must_have_room_for_its_share_of_what_leaves() -> None:
    assert room_for_learners(reports(100, 60), {Ordinal(2)}, example.task_set()) == Room(50, 60, pods(0))
    assert room_for_learners(reports(100, 60), {Ordinal(1), Ordinal(2)}, example.task_set()) == Room(200, 60, pods(0))


def test_what_has_been_learned_already_is_not_needed_again() -> None:
    members = (example.member(0, active=(0, 1), standby=(4,)), *BARE[1:])
    assert room_for_learners(reports(100, 60, members), {Ordinal(2)}, example.task_set()) == Room(50, 60, pods(0))
    assert room_for_learners(reports(100, 60, members), {Ordinal(2)}, TopologyUnknown("?")) == Room(50, 60, pods(0))


GIGA = 1_000_000_000
SKEWED = {4: 90 * GIGA, 5: 1 * GIGA}
"""The tasks of the pod that leaves."""


@pytest.mark.guarantee(1)
def test_a_large_task_does_not_fit_where_an_average_one_would() -> None:
    judged = room_for_learners(reports(91 * GIGA, 55 * GIGA, sizes=SKEWED), {Ordinal(2)}, example.task_set())
    assert judged == Room(90 * GIGA, 55 * GIGA, pods(0))
    assert isinstance(judged, Room)
    assert (str(judged), judged.is_enough) == ("ordinal 0: 90000 MB are needed, 55000 MB are free", False)


def test_of_those_that_leave_the_largest_count_as_many_as_come() -> None:
    """Two of four come to each of two pods: not twice the largest, and not twice the average."""
    members = (*(example.member(ordinal) for ordinal in range(2)), example.member(2, active=range(4)))
    found = reports(100, 60, members, sizes={0: 5, 1: 40, 2: 50, 3: 5})
    assert room_for_learners(found, {Ordinal(2)}, example.task_set()) == Room(90, 60, pods(0))


@pytest.mark.parametrize("is_older", [False, True])
@pytest.mark.parametrize(("behind", "whole"), [(1, 2), (2, 1)])
def test_of_two_copies_that_leave_the_larger_one_tells_what_is_needed(
    behind: int, whole: int, *, is_older: bool
) -> None:
    """The other one is behind."""
    copies = ((example.member(behind, standby=(0,)), 7), (example.member(whole, active=(0,)), 50))
    found = [example.report(one, sizes=None if is_older else {0: size}, state_bytes=size) for one, size in copies]
    found += [example.report(example.member(0), state_bytes=0, free_bytes=60)]
    judged = room_for_learners({one.ordinal: one for one in found}, {Ordinal(1), Ordinal(2)}, example.task_set())
    assert judged == Room(50, 60, pods(0), untold=Ordinal(whole) if is_older else None)


@pytest.mark.guarantee(1)
def test_what_a_learner_that_has_begun_still_takes_is_needed_too() -> None:
    """Pod 0 has nothing yet of task 4; task 5 comes to it as well."""
    begun = (example.member(0, active=(0,), standby=(4,)), example.member(1, active=(1, 2, 3)), BARE[2])
    found = reports(20 * GIGA, 12 * GIGA, begun, sizes={4: 10 * GIGA, 5: 10 * GIGA})
    zero = Ordinal(0)
    local = tuple(replace(one, state_bytes=0) for one in found[zero].tasks or ())
    found[zero] = replace(found[zero], tasks=local)
    full = {ordinal: replace(one, free_bytes=100 * GIGA) if ordinal == 1 else one for ordinal, one in found.items()}
    judged = room_for_learners(full, {Ordinal(2)}, example.task_set())
    assert judged == Room(20 * GIGA, 12 * GIGA, pods(0))


def test_an_agent_that_tells_no_bytes_of_tasks_has_one_task_that_takes_all() -> None:
    older = reports(100, 60, sizes=None)
    judged = room_for_learners(older, {Ordinal(2)}, example.task_set())
    assert judged == Room(100, 60, pods(0), untold=Ordinal(2))
    assert str(judged).endswith("; the agent of ordinal 2 does not tell bytes of each task")
    both = room_for_learners(older, {Ordinal(1), Ordinal(2)}, example.task_set())
    assert both == Room(200, 60, pods(0), untold=Ordinal(1))


def test_a_hold_ends_where_a_volume_can_take_all_that_a_pod_has() -> None:
    """Also if its agent tells of no task: whatever they take, they take no more together."""
    judged = room_for_learners(reports(100, 110, sizes=None), {Ordinal(2)}, example.task_set())
    assert isinstance(judged, Room)
    assert judged.is_enough


def test_a_task_that_is_not_told_takes_what_the_others_leave() -> None:
    found = reports(100, 60, sizes={4: 90})
    assert room_for_learners(found, {Ordinal(2)}, example.task_set()) == Room(90, 60, pods(0))
    found = reports(100, 60, sizes={4: 30})
    assert room_for_learners(found, {Ordinal(2)}, example.task_set()) == Room(70, 60, pods(0), untold=Ordinal(2))
    found, both = reports(100, 60, sizes={2: 50, 3: 50, 4: 100}), {Ordinal(1), Ordinal(2)}
    assert room_for_learners(found, both, example.task_set()) == Room(200, 60, pods(0))


def disks(*free: int, file_systems: tuple[str | None, ...] = ()) -> dict[Ordinal, AgentReport]:
    """Pod 3 leaves with three tasks of 10 GB; the others have none, and so many GB free."""
    group = tuple(example.member(ordinal) for ordinal in range(3))
    names = file_systems or (None,) * len(free)
    found = [
        example.report(one, state_bytes=0, free_bytes=each * GIGA, file_system=name)
        for one, each, name in zip(group, free, names, strict=True)
    ]
    leaver = example.member(3, active=(0, 1, 2))
    leaves = example.report(leaver, sizes=dict.fromkeys(range(3), 10 * GIGA), state_bytes=30 * GIGA, free_bytes=0)
    return {one.ordinal: one for one in (*found, leaves)}


def room(found: dict[Ordinal, AgentReport]) -> Room:
    judged = room_for_learners(found, {Ordinal(3)}, example.task_set())
    assert isinstance(judged, Room)
    return judged


def test_space_on_one_volume_is_no_space_on_another() -> None:
    judged = room(disks(5, 5, 90))
    assert (judged, judged.is_enough) == (Room(10 * GIGA, 5 * GIGA, pods(0)), False)
    assert str(judged) == "ordinal 0: 10000 MB are needed, 5000 MB are free"
    assert room(disks(11, 11, 90)).is_enough
    assert not room(disks(11, 10, 90)).is_enough


def test_volumes_of_one_disk_have_its_space_once() -> None:
    """As each agent reports all that is free on the disk."""
    one_disk = ("node:1", "node:1", "node:2")
    judged = room(disks(15, 15, 90, file_systems=one_disk))
    assert (judged, judged.is_enough) == (Room(20 * GIGA, 15 * GIGA, pods(0, 1)), False)
    assert str(judged) == "ordinals 0, 1 together, on one disk: 20000 MB are needed, 15000 MB are free"
    assert room(disks(22, 22, 11, file_systems=one_disk)).is_enough
    assert room(disks(15, 15, 90)).is_enough
    assert room(disks(33, 33, 33, file_systems=("node:1",) * 3)).needed == 30 * GIGA


def test_a_pod_that_has_fewer_tasks_than_others_can_get_more_of_those_that_leave() -> None:
    full = [example.report(example.member(0, active=(0, 1, 2)), state_bytes=0, free_bytes=90 * GIGA)]
    full += [example.report(example.member(1), state_bytes=0, free_bytes=15 * GIGA)]
    leaver, sizes = example.member(2, active=(4, 5)), {4: 10 * GIGA, 5: 10 * GIGA}
    full += [example.report(leaver, sizes=sizes, state_bytes=20 * GIGA, free_bytes=0)]
    judged = room_for_learners({one.ordinal: one for one in full}, {Ordinal(2)}, example.task_set())
    assert judged == Room(20 * GIGA, 15 * GIGA, pods(1))


TEN_EACH = dict.fromkeys(range(6), 10 * GIGA)


@pytest.mark.parametrize(
    ("free", "names", "expected"),
    [
        ((5, 5, 5), (None,) * 3, Room(40 * GIGA, 5 * GIGA, pods(0))),
        ((45, 45, 90), ("node:1", "node:1", "node:2"), Room(80 * GIGA, 45 * GIGA, pods(0, 1))),
        ((90, 5, 90), (None,) * 3, Room(40 * GIGA, 5 * GIGA, pods(1))),
    ],
    ids=["each its own", "two on one disk", "one is small"],
)
def test_standbys_are_judged_by_volume_too(
    free: tuple[int, ...], names: tuple[str | None, ...], expected: Room
) -> None:
    """Three pods with two tasks of 10 GB each: with a standby of each, two pods would have six copies each."""
    found = {
        Ordinal(ordinal): example.report(
            one, sizes=TEN_EACH, state_bytes=20 * GIGA, free_bytes=free[ordinal] * GIGA, file_system=names[ordinal]
        )
        for ordinal, one in enumerate(BARE)
    }
    assert room_for_standbys(found, example.task_set(), 1, staying=2) == expected


@pytest.mark.parametrize(("standbys", "staying", "needed"), [(1, 3, 20), (1, 2, 40), (1, 1, 40), (2, 2, 40)])
def test_the_pods_that_are_left_have_all_copies_and_none_has_two_of_a_task(
    standbys: int, staying: int, needed: int
) -> None:
    """Six tasks of 10 GB; each pod has two now, and four of twelve copies, or one of each task."""
    found = {
        Ordinal(ordinal): example.report(one, sizes=TEN_EACH, state_bytes=20 * GIGA, free_bytes=90 * GIGA)
        for ordinal, one in enumerate(BARE)
    }
    judged = room_for_standbys(found, example.task_set(), standbys, staying)
    assert isinstance(judged, Room)
    assert judged.needed == needed * GIGA


@pytest.mark.parametrize(
    ("sizes", "needed"),
    [
        ({0: 2, 1: 0, 2: 9, 3: 3, 4: 4, 5: 1}, [13, 6, 12]),
        (None, [20, 20, 20]),
    ],
    ids=["the largest that the pod lacks", "all of each other pod as one task"],
)
def test_the_largest_standbys_that_a_pod_lacks_come_to_it(sizes: dict[int, int] | None, needed: list[int]) -> None:
    """Each of three pods has two of six tasks, and gets two copies more."""
    for ordinal, expected in enumerate(needed):
        found = reports(10, 1000, sizes=sizes)
        found[Ordinal(ordinal)] = replace(found[Ordinal(ordinal)], free_bytes=0)
        judged = room_for_standbys(found, example.task_set(), 1, staying=3)
        assert isinstance(judged, Room)
        assert (judged.ordinals, judged.needed, judged.free) == (pods(ordinal), expected, 0)


def test_a_disk_gets_no_more_copies_of_the_largest_task_than_there_are_to_be() -> None:
    """Pods 1 and 2 share a disk: with a standby the task of 9 bytes can be there twice, without one once."""
    found = reports(10, 1000, sizes={0: 9, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1})
    shared = {ordinal: replace(one, file_system=f"node:{ordinal > 0}") for ordinal, one in found.items()}
    shared[Ordinal(2)] = replace(shared[Ordinal(2)], free_bytes=0)
    judged = room_for_standbys(shared, example.task_set(), 1, staying=3)
    assert judged == Room(9 + 9 + 1 + 1, 0, pods(1, 2))
    assert room_for_standbys(shared, example.task_set(), 0, staying=2) == Room(9 + 1, 0, pods(1, 2))


def test_a_disk_gets_as_many_copies_as_its_pods_lack_of_their_shares() -> None:
    """Five copies come to pods 1 and 2: three tasks of 9 bytes could have six there."""
    members = (example.member(0, active=(0, 1, 5)), example.member(1, active=(2,)), example.member(2, active=(3, 4)))
    found = reports(30, 1000, members, sizes={0: 9, 1: 9, 5: 9, 2: 1, 3: 1, 4: 1})
    shared = {ordinal: replace(one, free_bytes=0, file_system=f"node:{ordinal > 0}") for ordinal, one in found.items()}
    assert room_for_standbys(shared, example.task_set(), 1, staying=3) == Room(5 * 9, 0, pods(1, 2))


def test_room_for_standbys_of_a_task_that_no_pod_has_is_unknown() -> None:
    found = reports(10, 1000, (*BARE[:2], example.member(2, active=(4,))))
    assert room_for_standbys(found, example.task_set(), 1, staying=2) == RoomUnknown(Ordinal(0))


@pytest.mark.parametrize(("state", "free", "ordinal"), [(None, 1, 2), (1, None, 0)])
def test_what_is_not_told_is_unknown(state: int | None, free: int | None, ordinal: int) -> None:
    assert room_for_learners(reports(state, free), {Ordinal(2)}, example.task_set()) == RoomUnknown(Ordinal(ordinal))


@pytest.mark.parametrize(
    ("state", "free", "reason", "is_told"),
    [
        pytest.param(100 * MEGA, 54 * MEGA, Reason.NoRoomForLearners, False, id="too little with a tenth to spare"),
        pytest.param(100 * MEGA, 55 * MEGA, Reason.AnnouncementPending, True, id="just enough"),
        pytest.param(None, None, Reason.AnnouncementPending, True, id="nobody knows"),
    ],
)
def test_nobody_is_told_to_leave_where_learners_do_not_fit(
    state: int | None, free: int | None, reason: Reason, *, is_told: bool
) -> None:
    sizes = dict.fromkeys(range(6), 50 * MEGA) if state else None
    agents = example.agents(BARE, sizes=sizes, state_bytes=state, free_bytes=free)
    readings = tuple(a_reading(BARE, at=at, rebalance=None) for at in (1, 6))
    decision = decide(replace(a_snapshot(), readings=readings, agents=agents), POLICY)
    assert told(decision) == ("Hold", reason.name)
    assert any(isinstance(step, Announce) for step in decision.plan) == is_told
    warned = [one.reason for one in decision.warnings]
    assert warned == ([Reason.DiskRoomUnknown] if state is None else [])
