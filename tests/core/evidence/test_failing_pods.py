"""Which pods count as failing, and what is said of them."""

from dataclasses import replace
from datetime import timedelta

import pytest

from streamapp.core.evidence.failing_pods import fault_of, faults, first_fault, without_room, without_run
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.workload import Container, Pod, PodFault, QuotaLimit, Workload
from streamapp.core.reasons import Reason
from tests.builders import a_pod, not_running, pods, volumes
from tests.support import example

KILLED = PodFault(reason="OOMKilled", container="app", exit_code=137, restarts=2, last_words="heap")
ONCE_AT_START = replace(KILLED, restarts=1, ran_for=timedelta(seconds=3))
ONCE_AFTER_DAYS = replace(KILLED, restarts=1, ran_for=timedelta(days=3))
NO_NODE = PodFault(reason="Unschedulable", last_words="0/2 nodes are available")
NO_IMAGE = PodFault(reason="ErrImagePull", container="app")


def workload(*changed: Pod) -> Workload:
    return replace(example.workload(), pods=pods(3, **{f"p{pod.ordinal}": pod for pod in changed}))


def running(seconds: float) -> Container:
    return Container(id="c", running_since=example.workload().read_at - timedelta(seconds=seconds), ever_ran=True)


@pytest.mark.parametrize(
    ("pod", "counts"),
    [
        pytest.param(a_pod(1, fault=KILLED, container=not_running(), ready=False), True, id="it does not run"),
        pytest.param(a_pod(1, fault=KILLED, container=running(900), ready=False), True, id="it is not ready"),
        pytest.param(a_pod(1, fault=KILLED, container=running(20)), True, id="it has just been started again"),
        pytest.param(a_pod(1, fault=KILLED, container=running(61)), False, id="it has run for a minute"),
        pytest.param(a_pod(1, fault=replace(KILLED, restarts=1), container=running(20)), False, id="once is no loop"),
        pytest.param(a_pod(1, fault=ONCE_AT_START, container=running(2)), True, id="its only run so far was short"),
        pytest.param(a_pod(1, fault=ONCE_AT_START, container=running(61)), False, id="it runs longer than the last"),
        pytest.param(a_pod(1, fault=ONCE_AFTER_DAYS, container=running(2)), False, id="it had run for days"),
        pytest.param(
            a_pod(1, fault=KILLED, container=not_running(), terminating=True), False, id="it is being deleted"
        ),
        pytest.param(a_pod(1), False, id="it has no fault"),
    ],
)
def test_a_fault_counts_while_the_pod_does_not_run_by_it(pod: Pod, counts: bool) -> None:
    seen = workload(pod)
    assert (Ordinal(1) in faults(seen)) is counts
    assert (fault_of(Ordinal(1), seen) is not None) is counts
    assert (first_fault(seen) != "") is counts


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (KILLED, "container app of pod 1 ended with exit code 137 (OOMKilled, 2 restarts): heap"),
        (
            replace(KILLED, restarts=1, last_words=""),
            "container app of pod 1 ended with exit code 137 (OOMKilled, 1 restart)",
        ),
        (NO_NODE, "pod 1 is on no node (Unschedulable): 0/2 nodes are available"),
        (NO_IMAGE, "container app of pod 1 does not start (ErrImagePull)"),
    ],
)
def test_one_sentence_names_pod_container_and_cause(fault: PodFault, told: str) -> None:
    assert fault_of(Ordinal(1), workload(a_pod(1, fault=fault, ready=False))) == told


def test_of_several_the_lowest_is_told_and_the_others_are_counted() -> None:
    both = workload(a_pod(1, fault=NO_NODE, ready=False), a_pod(2, fault=NO_IMAGE, ready=False))
    assert first_fault(both).endswith("0/2 nodes are available; so it is with 1 more")
    alone = "pod 1 is on no node (Unschedulable): 0/2 nodes are available"
    assert without_run(both, 1) is None
    assert without_run(both, 2) == Refusal(Reason.PodFails, alone)
    assert without_run(both, 3) == Refusal(Reason.PodFails, f"{alone}; so it is with 1 more")


SPACE_WORDS = "IO error: No space left on device: While appending to file: /var/lib/streams/0_1/000012.sst"
NO_SPACE = PodFault(reason="Error", container="app", exit_code=1, restarts=3, last_words=SPACE_WORDS)

NO_SPACE_TOLD = f"container app of pod 2 ended with exit code 1 (Error, 3 restarts): {SPACE_WORDS}"


def sized(seen: Workload, mebibytes: int) -> Workload:
    return replace(seen, volumes=tuple(replace(one, requested=mebibytes * 2**20) for one in volumes(3)))


def test_a_full_volume_is_told_with_its_size_and_before_other_faults() -> None:
    seen = sized(workload(a_pod(0, fault=NO_IMAGE, ready=False), a_pod(2, fault=NO_SPACE, ready=False)), 2048)
    told = f"{NO_SPACE_TOLD}; its claim asks for 2,048 MiB"
    assert fault_of(Ordinal(2), seen) == told
    assert without_run(seen, 3) == Refusal(Reason.VolumeFull, told)
    assert without_run(seen, 2) == Refusal(Reason.PodFails, "container app of pod 0 does not start (ErrImagePull)")


@pytest.mark.parametrize(
    "fault",
    [
        PodFault(reason="ErrImagePull", container="app", last_words="failed to copy: no space left on device"),
        PodFault(reason="StartError", container="app", exit_code=128, last_words="mkdir: no space left on device"),
    ],
    ids=["the image does not fit", "the runtime cannot start it"],
)
def test_a_node_without_space_is_no_full_volume(fault: PodFault) -> None:
    """A larger claim would not mend it."""
    failure = without_run(sized(workload(a_pod(2, fault=fault, ready=False)), 2048), 3)
    assert failure is not None
    assert (failure.reason, "its claim asks for" in failure.detail) == (Reason.PodFails, False)


def test_a_volume_of_unknown_size_is_told_without_one() -> None:
    seen = replace(workload(a_pod(2, fault=NO_SPACE, ready=False)), volumes=())
    assert fault_of(Ordinal(2), seen) == NO_SPACE_TOLD
    assert without_run(seen, 3) == Refusal(Reason.VolumeFull, NO_SPACE_TOLD)


TEN_PODS = QuotaLimit(quota="compute", resource="pods", used="10", hard="10")
FULL = Refusal(Reason.QuotaExceeded, "pod 2; quota compute: 10 of 10 pods are used")


def test_a_quota_is_named_while_a_pod_is_missing() -> None:
    short = replace(example.workload(), pods=pods(2), quota_limits=(TEN_PODS,))
    assert (short.first_missing, without_room(short, 3), without_room(short, 2)) == (Ordinal(2), FULL, None)
    assert without_room(replace(short, pods=pods(3)), 3) is None
    assert without_room(replace(short, quota_limits=()), 3) is None


def test_a_pod_that_the_scheduler_cannot_place_is_named() -> None:
    waits = workload(a_pod(1, fault=NO_NODE, ready=False), a_pod(2, fault=NO_NODE, ready=False))
    found = "pod 1 is on no node (Unschedulable): 0/2 nodes are available"
    assert without_room(waits, 3) == Refusal(Reason.PodsUnschedulable, f"{found}; so it is with 1 more")
    assert without_room(waits, 2) == Refusal(Reason.PodsUnschedulable, found)
    assert without_room(workload(a_pod(1, fault=NO_IMAGE, ready=False)), 3) is None
