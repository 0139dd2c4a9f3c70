"""Members that a process cannot tell from those of the container before: they run nothing until one join is watched."""

from dataclasses import replace

import pytest

from streamapp.core.evidence.evidence import Evidence
from streamapp.core.facts.containers import ContainerEnd
from streamapp.core.facts.group import GroupReading
from streamapp.core.gates.convergence import measure
from tests.builders import POLICY, a_pod, a_reading, a_snapshot, ago, an_end, pods
from tests.support import example

GROUP = example.members(3)
UNWATCHED = a_reading(GROUP, rebalance=None)
TRANSLATED = [replace(one, client_host="10.9.9.9") for one in GROUP]


@pytest.mark.parametrize(
    ("ago_began", "reading", "ended", "found"),
    [
        pytest.param(60, UNWATCHED, an_end(2, container_id="former"), "TasksRestoring", id="another ran before it"),
        pytest.param(60, a_reading(GROUP), an_end(2, container_id="former"), None, id="a join was watched since"),
        pytest.param(2, a_reading(GROUP), an_end(2, container_id="former"), "TasksRestoring", id="joined before it"),
        pytest.param(660, UNWATCHED, an_end(2, container_id="former"), None, id="a dead member is dropped by now"),
        pytest.param(60, UNWATCHED, an_end(1, container_id="former", pod_uid="gone"), None, id="it is the pod's first"),
        pytest.param(
            60,
            a_reading(TRANSLATED, rebalance=None),
            an_end(1, pod_uid="gone"),
            "TasksRestoring",
            id="no address tells",
        ),
    ],
)
def test_a_process_that_saw_no_member_join_doubts_those_of_a_container_that_began_of_late(
    ago_began: float, reading: GroupReading, ended: ContainerEnd, found: str | None
) -> None:
    began = replace(example.pod(2).container, id="containerd://the-next-one", running_since=ago(ago_began))
    workload = {"pods": pods(3, p2=a_pod(2, container=began))}
    seen = measure(
        Evidence(
            a_snapshot(desired=3, record=None, readings=(reading,), container_ends=(ended,), workload=workload), POLICY
        )
    )
    assert (None if seen.waits_for is None else seen.waits_for.reason.name) == found
    # One join ends the doubt, so it is asked for.
    assert seen.waits_for is None or seen.waits_for.needs_rebalance
