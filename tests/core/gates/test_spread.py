"""Floors: how many copies, in how many zones, a removal leaves of each task."""

from dataclasses import replace
from typing import Any

import pytest

from streamapp.core.actions.decision import Announce, Decision, GrantReplicas
from streamapp.core.decide import decide
from streamapp.core.evidence.capacity.floors import least_pods
from streamapp.core.facts.policy import ScaleDownPolicy, ScalingPolicy
from streamapp.core.facts.workload import Pod
from tests.builders import a_pod, a_reading, a_record, a_snapshot, told, volumes
from tests.support import example

TWO_COPIES = ScalingPolicy(min_copies=2)
TWO_ZONES = ScalingPolicy(min_zones=2)
EVERYWHERE = tuple(
    example.member(pod, active=(2 * pod, 2 * pod + 1), standby=[one for one in range(6) if one // 2 != pod])
    for pod in range(3)
)
"""Two standbys of each task: a copy on every pod."""


def in_zones(*zones: str) -> tuple[Pod, ...]:
    return tuple(a_pod(ordinal, zone=zone) for ordinal, zone in enumerate(zones))


def granted(decision: Decision) -> list[int]:
    return [step.to_replicas for step in decision.plan if isinstance(step, GrantReplicas)]


def test_a_pod_stays_while_fewer_copies_than_asked_for_would_remain() -> None:
    decision = decide(a_snapshot(), TWO_COPIES)
    assert told(decision) == ("Hold", "TooFewCopies")
    assert decision.detail == "task 0_2 and 3 more: 1 of 2 copies would remain"
    assert [str(wait.task) for wait in decision.waiting_for] == ["0_2", "0_3", "0_4", "0_5"]


def test_a_pod_goes_if_as_many_copies_as_asked_for_remain() -> None:
    case = a_snapshot(members=EVERYWHERE)
    assert granted(decide(case, TWO_COPIES)) == [2]
    assert told(decide(case, replace(TWO_COPIES, min_copies=3))) == ("Hold", "TooFewCopies")


def test_a_copy_that_is_behind_is_none() -> None:
    behind = tuple(
        example.member(
            pod, active=(2 * pod, 2 * pod + 1), standby=[one for one in range(6) if one // 2 != pod], lag=lag
        )
        for pod, lag in enumerate((0, 20_000, 0))
    )
    decision = decide(a_snapshot(members=behind), TWO_COPIES)
    assert told(decision) == ("Hold", "TooFewCopies")
    assert decision.detail == "task 0_0 and 3 more: 1 of 2 copies would remain"
    assert [wait.records_to_go for wait in decision.waiting_for] == [10_000] * 4


def test_the_last_pods_stay_for_the_copies_that_are_asked_for() -> None:
    decision = decide(a_snapshot(pods=2, desired=1, record=a_record(granted=2, target=1)), TWO_COPIES)
    assert (told(decision), decision.detail) == (
        ("Hold", "TooFewCopies"),
        "1 pod would remain, and 2 copies are asked for",
    )


def test_no_pod_stays_for_a_copy_if_zero_replicas_are_desired() -> None:
    policy = replace(TWO_COPIES, allow_zero=True, min_zones=2)
    case = a_snapshot(pods=2, desired=0, record=a_record(granted=2, target=0))
    assert granted(decide(case, policy)) == [1]


def test_an_application_without_state_needs_no_copies() -> None:
    case = a_snapshot(members=example.stateless_members(), task_set=example.stateless_task_set())
    assert granted(decide(case, replace(TWO_COPIES, min_zones=2))) == [2]


def test_a_restart_takes_no_copy_away_for_good() -> None:
    steady = a_snapshot(desired=3, record=None, statefulset={"update_revision": "newer"})
    assert decide(steady, replace(TWO_COPIES, min_copies=3, min_zones=3)).plan == decide(steady, ScalingPolicy()).plan


def test_a_user_can_override_the_floor() -> None:
    forced = replace(TWO_COPIES, scale_down=ScaleDownPolicy.IMMEDIATE, force_reason="out of money", min_zones=2)
    assert granted(decide(a_snapshot(), forced)) == [2]


@pytest.mark.parametrize(
    ("zones", "verdict", "detail"),
    [
        (("a", "b", "a"), ("Step", "Covered"), "3 to 2"),
        (("a", "a", "b"), ("Hold", "TooFewZones"), "the remaining pods are in zone a, and 2 zones are asked for"),
        (("a", "", "b"), ("Hold", "ZonesUnknown"), "ordinal 1"),
        (("", "", ""), ("Hold", "ZonesUnknown"), "ordinal 0, 1"),
    ],
)
def test_the_copies_that_remain_lie_in_as_many_zones_as_asked_for(
    zones: tuple[str, ...], verdict: tuple[str, str], detail: str
) -> None:
    case = a_snapshot(members=EVERYWHERE, workload={"pods": in_zones(*zones)})
    decision = decide(case, TWO_ZONES)
    assert (told(decision), decision.detail) == (verdict, detail)


ON_FOUR = (
    example.member(0, active=(0, 1), standby=(2, 3, 4, 5)),
    example.member(1, active=(2, 3), standby=(0, 1)),
    example.member(2, active=(4,), standby=(5,)),
    example.member(3, active=(5,), standby=(4,)),
)


def on_four_pods(*zones: str) -> Decision:
    return decide(
        a_snapshot(
            members=ON_FOUR,
            desired=3,
            record=a_record(granted=4, target=3),
            statefulset={"replicas": 4},
            workload={"pods": in_zones(*zones), "volumes": volumes(4)},
        ),
        TWO_ZONES,
    )


def test_a_task_whose_owner_and_only_copy_are_in_one_zone_keeps_the_pod() -> None:
    """The pods that would remain are in two zones, and all copies of four tasks in one of them."""
    decision = on_four_pods("a", "a", "b", "b")
    assert (told(decision), decision.detail) == (
        ("Hold", "TooFewZones"),
        "task 0_0 and 3 more: zone a, and 2 zones are asked for",
    )
    assert granted(on_four_pods("a", "b", "b", "a")) == [3]


@pytest.mark.parametrize(
    ("copies", "zones_of_copies", "zones", "least"),
    [
        (None, None, "aab", 0),
        (2, None, "aab", 2),
        (None, 1, "aab", 1),
        (None, 2, "aab", 3),
        (None, 2, "aba", 2),
        (3, 2, "aba", 3),
        (None, 2, "aaa", 4),
        (None, 3, "abb", 4),
    ],
)
def test_as_many_pods_from_the_lowest_stay_as_have_those_zones(
    copies: int | None, zones_of_copies: int | None, zones: str, least: int
) -> None:
    assert least_pods(copies, zones_of_copies, zones) == least


def test_a_pod_of_an_unknown_zone_may_be_in_another_zone() -> None:
    assert least_pods(None, 2, ["a", "", "b"]) == 2


def on_demand(pods: int, desired: int, **policy: Any) -> Decision:
    group = example.members(pods, standbys=False)
    readings = tuple(a_reading(group, at=at, rebalance=None) for at in (1, 6, 14))
    record = a_record(from_replicas=pods, granted=pods, target=desired)
    case = a_snapshot(pods=pods, desired=desired, readings=readings, record=record, agents=example.agents(group))
    return decide(case, ScalingPolicy(agent=True, **policy))


def announced(decision: Decision) -> list[int]:
    return [len(step.process_ids) for step in decision.plan if isinstance(step, Announce)]


def test_pods_that_cannot_leave_are_not_drained() -> None:
    """Draining them would copy all of their state, and they would stay all the same."""
    assert announced(on_demand(6, 1)) == [5]
    assert announced(on_demand(6, 1, min_copies=3)) == [3]
    held = on_demand(3, 1, min_copies=3)
    assert (told(held), announced(held)) == (("Hold", "TooFewCopies"), [])
