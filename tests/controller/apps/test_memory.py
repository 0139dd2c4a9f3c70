"""What the process remembers of one application."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from streamapp.controller.apps.memory import RUN_RETENTION, Memory
from streamapp.core.evidence.eviction import evictable
from streamapp.core.facts.containers import ContainerEnd, MemberKey
from streamapp.core.facts.group import GroupDescription, GroupState
from streamapp.core.facts.policy import Timing
from tests.builders import a_capture, an_end
from tests.support import example

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def end(finished_at: datetime, reason: str = "Error") -> ContainerEnd:
    return ContainerEnd(pod_uid="p", container_id="c", finished_at=finished_at, reason=reason)


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


@pytest.mark.guarantee(7)
@pytest.mark.parametrize("late", [timedelta(seconds=20), timedelta(minutes=1)])
def test_a_member_of_the_next_container_stays_where_the_node_was_cut_off_and_its_clock_is_ahead(
    late: timedelta,
) -> None:
    """The API server shows the first container long after its end: the member of the second one is captured there."""
    memory, ahead, joined = Memory(uid="u"), timedelta(seconds=15), NOW + timedelta(seconds=3)
    memory.record_runs(["containerd://3"], NOW - timedelta(hours=1))
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
    )
    assert [key.id for one in found for key in one.members] == ["before"]


@pytest.mark.guarantee(1)
def test_a_run_is_dated_by_when_it_was_first_seen_whatever_its_nodes_clock_says() -> None:
    memory, workload = Memory(uid="u"), example.workload()
    first = workload.pods[0].container.id or ""
    memory.record_runs([first, "of another pod"], NOW)
    memory.record_runs([first], NOW + timedelta(minutes=1))
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
    memory.record_runs(["newer"], NOW)
    memory.with_runs(behind, NOW + timedelta(seconds=1))
    memory.record_runs(["newer"], NOW + timedelta(seconds=2))
    dated = memory.with_runs(newer, NOW + timedelta(seconds=2))
    assert dated.pods[0].container.first_seen_at == NOW
