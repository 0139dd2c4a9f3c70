"""What the process remembers of one application."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from streamapp.controller.apps.memory import CONTAINER_END_RETENTION, RUN_RETENTION, Memory
from streamapp.core.evidence.eviction import evictable
from streamapp.core.facts.agent_reports import AgentSilent, AgentsSeen, EndsAfter
from streamapp.core.facts.containers import ContainerEnd, MemberKey, ObservedMembers
from streamapp.core.facts.group import GroupDescription, GroupState
from streamapp.core.facts.hold_record import Epoch, HoldRecord, RaisedStandbys, RecordUnreadable
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.lag import EndsUnreadable
from streamapp.core.facts.policy import Timing
from streamapp.core.facts.topic_configs import ConfigUnread
from streamapp.core.status.gaps import RunningSeen, worst_gap
from tests.builders import a_capture, an_end
from tests.support import example

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def end(finished_at: datetime, reason: str = "Error") -> ContainerEnd:
    return ContainerEnd(pod_uid="p", container_id="c", finished_at=finished_at, reason=reason)


def a_look(at: int, *ordinals: int) -> RunningSeen:
    tasks = {TaskId(0, partition): Ordinal(ordinal) for partition, ordinal in enumerate(ordinals)}
    return RunningSeen(NOW + timedelta(seconds=at), tasks)


def test_of_looks_that_show_the_same_the_first_and_the_last_are_kept() -> None:
    memory = Memory(uid="u")
    looks = [
        a_look(0, 1),
        *(a_look(at, 1) for at in range(5, 60, 5)),
        a_look(60),
        a_look(65),
        a_look(70),
        a_look(80, 0),
    ]
    for look in looks:
        memory.record_running(look)
    memory.record_running(a_look(80, 5))  # no later than the last one
    assert memory.running_samples == [a_look(0, 1), a_look(55, 1), a_look(60), a_look(70), a_look(80, 0)]
    assert memory.running_samples[0].by_task is memory.running_samples[1].by_task
    tasks = (TaskId(0, 0),)
    assert worst_gap(memory.running_samples, tasks) == worst_gap(looks, tasks)


@pytest.mark.guarantee(3)
def test_what_is_kept_of_looks_is_bounded_by_the_tasks_in_them() -> None:
    memory = Memory(uid="u")
    for at in range(12):
        memory.record_running(a_look(at, *([at % 2] * 50_000)))
    assert [look.at for look in memory.running_samples] == [NOW + timedelta(seconds=at) for at in range(7, 12)]


@pytest.mark.guarantee(2)
def test_ends_of_another_cluster_are_forgotten_with_its_group_and_the_agents_words_are_not() -> None:
    memory, report = Memory(uid="u"), AgentSilent(Ordinal(0), "no answer")
    ends = EndsAfter(NOW, EndsUnreadable("timed out"))
    memory.agents = AgentsSeen({Ordinal(0): (report,)}, (ends,), "no key")
    memory.topic_configs = {"changelog": ConfigUnread("timed out")}
    memory.forget_group()
    assert memory.agents == AgentsSeen({Ordinal(0): (report,)}, (), "no key")
    assert (memory.topic_configs, memory.readings) == ({}, ())


@pytest.mark.guarantee(7)
def test_a_container_ended_at_the_latest_when_it_was_reported_however_far_ahead_the_nodes_clock_is() -> None:
    memory = Memory(uid="u")
    memory.record_terminations((end(NOW + timedelta(minutes=1)),), NOW)
    memory.record_terminations((end(NOW + timedelta(minutes=1)),), NOW + timedelta(seconds=30))
    assert memory.ends["c"].finished_at == NOW


def test_the_nodes_clock_counts_where_it_is_behind() -> None:
    memory = Memory(uid="u")
    memory.record_terminations((end(NOW - timedelta(seconds=5)),), NOW)
    assert memory.ends["c"].finished_at == NOW - timedelta(seconds=5)


@pytest.mark.parametrize(("captures", "is_known"), [((), False), ((a_capture(3),), True)])
def test_an_end_stays_while_members_count_as_of_that_container(
    captures: tuple[ObservedMembers, ...], is_known: bool
) -> None:
    memory, ended = Memory(uid="u", observed=captures), an_end(3, finished_at=NOW)
    memory.record_terminations((ended,), NOW)
    memory.record_terminations((), NOW + CONTAINER_END_RETENTION + timedelta(seconds=1))
    assert (ended.container_id in memory.ends) == is_known


@pytest.mark.guarantee(7)
def test_another_container_that_follows_later_is_not_forgotten() -> None:
    memory, alone = Memory(uid="u"), end(NOW - timedelta(seconds=5))
    for reported in (alone, replace(alone, is_followed=True), alone):
        memory.record_terminations((reported,), NOW)
    assert memory.ends["c"].is_followed


@pytest.mark.guarantee(7)
@pytest.mark.parametrize("late", [timedelta(seconds=20), timedelta(minutes=1)])
def test_a_member_of_the_next_container_stays_where_the_node_was_cut_off_and_its_clock_is_ahead(
    late: timedelta,
) -> None:
    """The API server shows the first container long after its end: the member of the second one is captured there."""
    memory, ahead, joined = Memory(uid="u"), timedelta(seconds=15), NOW + timedelta(seconds=3)
    memory.record_runs("pod-3", (), NOW - timedelta(hours=1, minutes=1))
    memory.record_runs("pod-3", ["containerd://3"], NOW - timedelta(hours=1))
    before = a_capture(3, seen_at=NOW - timedelta(minutes=5), members=(MemberKey("before"),))
    after = a_capture(3, seen_at=joined, members=(MemberKey("after"),))
    started = NOW - timedelta(hours=1, seconds=1) + ahead
    ended = an_end(3, finished_at=NOW + ahead, started_at=started)
    memory.record_terminations((ended,), NOW + late)
    members = tuple(replace(example.member(3), id=name) for name in ("after", "before"))
    found = evictable(
        (before, after),
        tuple(memory.ends.values()),
        GroupDescription(GroupState.STABLE, members),
        Timing().eviction_margin,
        for_good=lambda _: False,
        staying_pods=["pod-3"],
    )
    assert [key.id for one in found for key in one.members] == ["before"]


@pytest.mark.guarantee(7)
@pytest.mark.parametrize("stays", [True, False])
def test_nothing_bounds_the_clock_of_a_node_whose_container_ran_before_this_process(stays: bool) -> None:
    """A kubelet that was cut off dates the end 20 s late: the next container's member seems to have been there.

    Of a pod that goes the end is known before the next pod can be there.
    """
    memory, ahead = Memory(uid="u"), timedelta(seconds=20)
    memory.record_runs("pod-3", ["containerd://3"], NOW - timedelta(minutes=5))
    ended = an_end(3, finished_at=NOW + ahead, started_at=NOW - timedelta(hours=1) + ahead)
    memory.record_terminations((ended,), NOW + ahead)
    captures = tuple(
        a_capture(3, seen_at=NOW + timedelta(seconds=at), members=(MemberKey(name),))
        for name, at in (("after", 8), ("before", -70))
    )
    found = evictable(
        captures,
        tuple(memory.ends.values()),
        GroupDescription(GroupState.STABLE, tuple(replace(example.member(3), id=one) for one in ("after", "before"))),
        Timing().eviction_margin,
        for_good=lambda _: False,
        staying_pods=["pod-3"] if stays else [],
    )
    assert ("after" not in [key.id for one in found for key in one.members]) is stays
    assert "before" in [key.id for one in found for key in one.members]


@pytest.mark.guarantee(1)
def test_a_run_is_dated_by_when_it_was_first_seen_whatever_its_nodes_clock_says() -> None:
    memory, workload = Memory(uid="u"), example.workload()
    first = workload.pods[0].container.id or ""
    memory.record_runs("pod-0", [first, "of another pod"], NOW)
    memory.record_runs("pod-0", [first], NOW + timedelta(minutes=1))
    dated = memory.with_runs(workload, NOW)
    assert [pod.container.first_seen_at for pod in dated.pods] == [NOW, *[None] * (len(workload.pods) - 1)]
    assert [pod.container.known_since for pod in dated.pods] == [
        NOW,
        *(pod.container.running_since for pod in workload.pods[1:]),
    ]
    memory.with_runs(workload, NOW + RUN_RETENTION + timedelta(seconds=1))
    assert memory.runs == {first: NOW}


@pytest.mark.guarantee(1)
def test_a_watch_that_is_behind_does_not_make_the_run_of_a_newer_container_later() -> None:
    memory, behind = Memory(uid="u"), example.workload()
    pod = behind.pods[0]
    newer = replace(behind, pods=(replace(pod, container=replace(pod.container, id="newer")), *behind.pods[1:]))
    memory.record_runs("pod-0", ["newer"], NOW)
    memory.with_runs(behind, NOW + timedelta(seconds=1))
    memory.record_runs("pod-0", ["newer"], NOW + timedelta(seconds=2))
    dated = memory.with_runs(newer, NOW + timedelta(seconds=2))
    assert dated.pods[0].container.first_seen_at == NOW


RAISED = RaisedStandbys(before=None, instead_of=0, to=1, at=NOW)
OTHER = replace(RAISED, before=7)
RECORD = HoldRecord(epoch=Epoch(lease=0, counter=1), standbys=RAISED)


@pytest.mark.guarantee(2)
def test_what_must_be_put_back_outlasts_a_record_that_another_hand_removed() -> None:
    memory, statefulset = Memory(uid="u"), example.workload().statefulset
    assert statefulset is not None
    bare = replace(statefulset, record=None)
    memory.follow_record(RECORD)
    assert memory.lost_standbys(replace(statefulset, record=RECORD), OTHER) is None
    for gone in (None, RecordUnreadable("garbled")):
        memory.follow_record(gone)
        assert (memory.raised_standbys, memory.lost_standbys(bare, None)) == (RAISED, RAISED)
    assert memory.lost_standbys(None, OTHER) is None
    assert memory.lost_standbys(replace(bare, is_ours=False), OTHER) is None


@pytest.mark.guarantee(2)
def test_a_new_process_takes_what_must_be_put_back_from_the_status_if_the_record_is_gone() -> None:
    memory, statefulset = Memory(uid="u"), example.workload().statefulset
    assert statefulset is not None
    bare = replace(statefulset, record=None)
    memory.follow_record(None)
    assert memory.lost_standbys(bare, OTHER) == OTHER
    memory.follow_record(replace(RECORD, standbys=None))
    assert memory.lost_standbys(bare, OTHER) is None


@pytest.mark.guarantee(8)
@pytest.mark.parametrize(
    ("generation", "since"), [(5, 0), (6, 0), (7, 60)], ids=["the same", "the next", "one in between was missed"]
)
def test_what_is_desired_counts_from_when_every_change_of_it_was_seen(generation: int, since: int) -> None:
    memory = Memory(uid="u")
    for second, seen in ((0, 5), (60, generation), (120, generation - 1), (180, generation)):
        memory.record_desired(2, seen, NOW + timedelta(seconds=second))
    assert [(one.at - NOW) // timedelta(seconds=1) for one in memory.desired_samples] == [since]


@pytest.mark.guarantee(8)
def test_what_was_noted_of_the_desired_replicas_ends_with_a_change_that_was_missed() -> None:
    memory = Memory(uid="u")
    memory.record_desired(2, 5, NOW, NOW - timedelta(hours=1))
    memory.record_desired(2, 6, NOW)
    assert memory.desired_noted_since == NOW - timedelta(hours=1)
    memory.record_desired(2, 8, NOW)
    assert memory.desired_noted_since is None


@pytest.mark.guarantee(2)
def test_what_a_pass_was_done_with_is_not_lost() -> None:
    memory, statefulset = Memory(uid="u"), example.workload().statefulset
    assert statefulset is not None
    memory.follow_record(RECORD)
    memory.follow_written_record(RecordUnreadable("left as it is"))
    assert memory.raised_standbys == RAISED
    memory.follow_written_record(None)
    assert memory.lost_standbys(replace(statefulset, record=None), OTHER) is None
    memory.follow_written_record(RECORD)
    assert memory.raised_standbys == RAISED
    memory.follow_record(replace(RECORD, standbys=None))
    assert memory.raised_standbys is None
