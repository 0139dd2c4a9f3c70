"""The laws of floors: how many copies, in how many zones, are left by a removal that waits for coverage."""

from dataclasses import replace

import pytest
from hypothesis import event, find, given
from hypothesis import strategies as st

from streamapp.core.actions.decision import Decision
from streamapp.core.decide import decide
from streamapp.core.facts.group import GroupDescription
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.reasons import Reason
from tests.builders import a_snapshot
from tests.properties import oracle
from tests.properties.test_laws import QUICKLY
from tests.strategies import policies, scale_downs
from tests.support import example

ZONES = st.lists(st.sampled_from(("a", "b", "")), min_size=4, max_size=4)
LAGS = st.sampled_from((0, 0, 10_000, 10_001, None))


@st.composite
def applications(draw: st.DrawFn) -> Snapshot:
    """Three pods of which one is to leave; each has copies of most tasks, near or far behind."""
    members = []
    for pod in range(3):
        others = [task for task in range(6) if task // 2 != pod]
        missing = draw(st.sets(st.sampled_from(others), max_size=2))
        standby = [task for task in others if task not in missing]
        members.append(example.member(pod, active=(2 * pod, 2 * pod + 1), standby=standby, lag=draw(LAGS)))
    return in_zones(a_snapshot(members=members), draw(ZONES))


def in_zones(snapshot: Snapshot, zones: list[str]) -> Snapshot:
    pods = tuple(replace(pod, zone=zones[pod.ordinal]) for pod in snapshot.workload.pods if pod.ordinal < len(zones))
    return replace(snapshot, workload=replace(snapshot.workload, pods=pods))


def places(snapshot: Snapshot, policy: ScalingPolicy, kept: int) -> list[set[int]]:
    """The pods that stay with a good copy of each stateful task, by the newest reading."""
    latest = snapshot.readings[0]
    assert isinstance(snapshot.task_set, TaskSet)
    assert isinstance(latest.group, GroupDescription)
    lost = {pod: oracle.tasks_without_a_good_copy(snapshot, latest, policy, {pod}) for pod in range(kept)}
    return [{pod for pod in range(kept) if task.id not in lost[pod]} for task in snapshot.task_set.stateful]


def leaves(decision: Decision) -> int | None:
    """How many pods a covered removal leaves."""
    return oracle.removes(decision) if decision.reason is Reason.Covered else None


@given(applications(), st.integers(1, 3), st.sampled_from((None, 1, 2)))
@pytest.mark.guarantee(1)
def test_a_covered_removal_leaves_as_many_copies_in_as_many_zones_as_asked_for(
    snapshot: Snapshot, copies: int, zones_of_copies: int | None
) -> None:
    policy = ScalingPolicy(min_copies=copies, min_zones=zones_of_copies)
    kept = leaves(decide(snapshot, policy))
    if kept is None:
        return
    event(f"a removal that leaves {copies} copies in {zones_of_copies} zones")
    zones = {int(pod.ordinal): pod.zone for pod in snapshot.workload.pods}
    for pods in places(snapshot, policy, kept):
        assert len(pods) >= copies
        assert len({zones[pod] for pod in pods} - {""}) >= (zones_of_copies or 0)


@given(scale_downs() | applications(), policies(), st.integers(1, 3), st.sampled_from((None, 1, 2)), ZONES)
def test_a_floor_never_makes_it_bolder(
    snapshot: Snapshot, policy: ScalingPolicy, copies: int, zones_of_copies: int | None, zones: list[str]
) -> None:
    case = in_zones(snapshot, zones)
    without = oracle.removes(decide(case, policy))
    kept = oracle.removes(decide(case, replace(policy, min_copies=copies, min_zones=zones_of_copies)))
    assert kept is None or (without is not None and kept >= without)


@given(scale_downs(), policies())
def test_one_copy_in_any_zone_is_what_is_asked_for_anyway(snapshot: Snapshot, policy: ScalingPolicy) -> None:
    assert oracle.removes(decide(snapshot, replace(policy, min_copies=1))) == oracle.removes(decide(snapshot, policy))


@pytest.mark.parametrize("policy", [ScalingPolicy(min_copies=2), ScalingPolicy(min_zones=2)], ids=["copies", "zones"])
def test_the_examples_reach_removals_that_keep_to_floors(policy: ScalingPolicy) -> None:
    found = find(applications(), lambda snapshot: leaves(decide(snapshot, policy)) is not None, settings=QUICKLY)
    assert leaves(decide(found, policy)) == 2
