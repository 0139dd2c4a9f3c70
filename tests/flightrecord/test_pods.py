"""Lines of the flight record about pods: how containers ended, and what lies on volumes."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

from streamapp.core.facts.agent_reports import AgentReport
from streamapp.core.facts.containers import ContainerEnd
from streamapp.core.facts.workload import Pod, Workload
from streamapp.flightrecord.pods import ObservedPods, PodLog
from streamapp.flightrecord.schema import PodLine
from tests.flightrecord.test_lines import HEAD
from tests.support import example
from tests.support.example import NOW, SECOND

GIB = 2**30


def an_end(container: str, reason: str = "OOMKilled", code: int | None = 137) -> ContainerEnd:
    return ContainerEnd(pod_uid="pod-1", container_id=container, finished_at=NOW, reason=reason, exit_code=code)


def restarted(pod: Pod, container: str) -> Pod:
    return replace(pod, container=replace(pod.container, id=container))


def looked(
    log: PodLog, workload: Workload, *, ends: Iterable[ContainerEnd] = (), reports: Iterable[AgentReport] = ()
) -> list[PodLine]:
    by_ordinal = {report.ordinal: report for report in reports}
    return list(log.lines(HEAD, ObservedPods(NOW + SECOND, workload, (), {}, by_ordinal, ends)))


def with_pod(workload: Workload, pod: Pod) -> Workload:
    return replace(workload, pods=tuple(pod if one.ordinal == pod.ordinal else one for one in workload.pods))


def end_of(line: PodLine) -> tuple[object, ...]:
    return (line.ordinal, line.container_id, line.end_reason, line.exit_code, line.ended_at)


def test_a_container_that_began_anew_has_a_line_with_the_end_of_the_one_before() -> None:
    log, workload = PodLog(), example.workload()
    assert {end_of(line)[2:] for line in looked(log, workload)} == {("", None, None)}
    again = with_pod(workload, restarted(example.pod(1), "containerd://1-2"))
    ends = [an_end("containerd://1"), an_end("containerd://sidecar", "Error", 1)]
    assert [end_of(line) for line in looked(log, again, ends=ends)] == [(1, "containerd://1-2", "OOMKilled", 137, NOW)]
    # The end stays on record for the life of the pod, and makes no second line.
    assert looked(log, again) == []
    assert {end_of(line) for line in looked(PodLog(), again, ends=ends)} == {
        (0, "containerd://0", "", None, None),
        (1, "containerd://1-2", "", None, None),
        (2, "containerd://2", "", None, None),
    }, "another recorder does not know which container of the pod that was"


def test_a_container_that_has_ended_and_waits_has_a_line_at_once() -> None:
    log, workload = PodLog(), example.workload()
    looked(log, workload)
    (line,) = looked(log, workload, ends=[an_end("containerd://1", "Error", 3)])
    assert end_of(line) == (1, "containerd://1", "Error", 3, NOW)


def test_a_pod_that_is_gone_has_the_end_of_its_container_in_its_last_line() -> None:
    log, workload = PodLog(), example.workload()
    looked(log, workload)
    fewer = replace(workload, pods=workload.pods[:2])
    (line,) = looked(log, fewer, ends=[an_end("containerd://2", "Completed", 143)])
    assert (line.is_gone, *end_of(line)) == (True, 2, "containerd://2", "Completed", 143, NOW)


def test_an_end_that_the_kubelet_only_lost_sight_of_and_a_code_that_is_none_are_not_told() -> None:
    log, workload = PodLog(), example.workload()
    looked(log, workload)
    lost = an_end("containerd://1", "ContainerStatusUnknown")
    assert looked(log, workload, ends=[lost]) == []
    (line,) = looked(log, workload, ends=[an_end("containerd://1", "Error", -1)])
    assert end_of(line)[2:] == ("Error", None, NOW)


def reports(state: float, free: float) -> list[AgentReport]:
    volume: dict[str, Any] = {"state_bytes": int(state * GIB), "free_bytes": int(free * GIB)}
    return [example.report(member, **volume) for member in example.members()]


def test_bytes_on_a_volume_are_on_record_to_its_hundredth() -> None:
    log, workload = PodLog(), example.workload()
    volumes = tuple(replace(volume, requested=10 * GIB) for volume in workload.volumes)
    workload = replace(workload, volumes=volumes)
    first = looked(log, workload, reports=reports(4, 6))
    assert {(line.state_bytes, line.free_bytes, line.requested_bytes) for line in first} == {
        (4 * GIB, 6 * GIB, 10 * GIB)
    }
    fine = 1 / 64
    looks = [4 + n * fine for n in range(65)]
    lines = [line for state in looks for line in looked(log, workload, reports=reports(state, 10 - state))]
    told = [4.0, *((line.state_bytes or 0) / GIB for line in lines if line.ordinal == 0)]
    assert len(told) == 10
    assert all(0.1 <= later - earlier <= 0.1 + fine for earlier, later in pairwise(told))
    assert 5 - told[-1] < 0.1
    assert len(looked(log, workload, reports=reports(5, 5.5))) == 3, "something else took the space"
    # Agents that are silent for a while, and then say the same, are no news.
    assert looked(log, workload) == []
    assert looked(log, workload, reports=reports(5, 5.5)) == []


def test_bytes_that_become_known_are_news() -> None:
    log, workload = PodLog(), example.workload()
    assert {line.state_bytes for line in looked(log, workload)} == {None}
    assert len(looked(log, workload, reports=reports(0, 0))) == 3
    assert looked(log, workload, reports=reports(0, 0)) == []


def test_an_old_line_of_a_pod_is_told_again_after_a_time_without_a_look() -> None:
    log, workload = PodLog(), example.workload()
    looked(log, workload)
    log.tell_again()
    assert [line.ordinal for line in looked(log, workload)] == [0, 1, 2]
    assert NOW + timedelta(seconds=1) == looked(PodLog(), workload)[0].ts
