"""Of namespaces that refuse to be listed, the group says whether a StatefulSet may be made."""

from dataclasses import replace
from typing import Any

import pytest

from streamapp.core.decide import decide
from streamapp.core.evidence.membership import PROBE_CLIENT_ID
from streamapp.core.facts.group import GroupDescription, GroupReading, GroupState, Member
from streamapp.core.facts.snapshot import UnlistedNamespaces
from streamapp.core.reasons import Reason
from tests.builders import POLICY, a_snapshot, ago, an_unreadable, told
from tests.support import example

REFUSED = UnlistedNamespaces(refusing=("b",))
CREATED, WAITS = ("Create", "StatefulSetMissing"), ("Stalled", "NamespaceUnlisted")


def a_reading(state: GroupState, *members: Member, seconds_ago: int = 1) -> GroupReading:
    return GroupReading(ended_at=ago(seconds_ago), group=GroupDescription(state, members), rebalance=None)


def own(ordinal: int) -> Member:
    """A member in a pod of the example."""
    described = example.snapshot().readings[0].group
    assert isinstance(described, GroupDescription)
    return described.members[ordinal]


def elsewhere() -> Member:
    """The same, of a process and at an address that nobody here has."""
    return replace(own(0), id="stranger", client_host="10.9.9.9", subscription=None)


def without_statefulset(*readings: GroupReading, unlisted: UnlistedNamespaces = REFUSED, **workload: Any) -> Any:
    """Without one; the group was empty 50 s ago, too."""
    found = {"statefulset": None, **workload}
    readings = (*readings, a_reading(GroupState.EMPTY, seconds_ago=50)) if readings else ()
    return a_snapshot(app={"unlisted": unlisted}, workload=found, readings=readings)


@pytest.mark.parametrize(
    "reading",
    [
        pytest.param(a_reading(GroupState.DEAD), id="no group"),
        pytest.param(a_reading(GroupState.EMPTY), id="an empty group"),
        pytest.param(a_reading(GroupState.STABLE, own(0), own(1)), id="own pods, which an adoption has orphaned"),
        pytest.param(a_reading(GroupState.PREPARING_REBALANCE, own(0)), id="own pods in a rebalance"),
    ],
)
def test_a_group_without_members_of_others_lets_a_statefulset_be_made(reading: GroupReading) -> None:
    assert told(decide(without_statefulset(reading), POLICY)) == CREATED


@pytest.mark.parametrize(
    ("reading", "detail"),
    [
        pytest.param(
            a_reading(GroupState.STABLE, own(0), elsewhere()),
            "b; member stranger at 10.9.9.9 is in none of its pods",
            id="a member of others",
        ),
        pytest.param(
            a_reading(GroupState.STABLE, replace(elsewhere(), client_id=PROBE_CLIENT_ID)),
            "b; member stranger at 10.9.9.9 is in none of its pods",
            id="a probe member alone",
        ),
        pytest.param(
            a_reading(GroupState.STABLE, replace(own(0), subscription=own(1).subscription)),
            f"b; member {own(0).id} at {own(0).client_host} is in none of its pods",
            id="an own address, and the process of another pod",
        ),
        pytest.param(an_unreadable(), "b; the group is unknown: BrokersUnreachable", id="brokers gone"),
    ],
)
def test_what_the_group_has_against_it_holds_and_is_named_with_the_namespace(
    reading: GroupReading, detail: str
) -> None:
    decision = decide(without_statefulset(reading), POLICY)
    assert told(decision) == WAITS
    assert decision.detail.startswith(detail)
    assert not decision.needs_fresh_group, "news of the group begin a pass by themselves"


@pytest.mark.parametrize("readings", [(), (a_reading(GroupState.EMPTY, seconds_ago=11),)], ids=["none", "an old one"])
def test_a_group_that_was_not_read_just_now_is_read_first(readings: tuple[GroupReading, ...]) -> None:
    decision = decide(without_statefulset(*readings), POLICY)
    assert told(decision) == WAITS
    assert decision.detail == "b; the group was not read just now"
    assert decision.needs_fresh_group


@pytest.mark.guarantee(3)
def test_a_group_that_a_new_coordinator_shows_empty_is_watched_for_a_while() -> None:
    """A member of others was there a moment ago, or nobody looked long enough to know."""
    empty, before = a_reading(GroupState.EMPTY), a_reading(GroupState.STABLE, elsewhere(), seconds_ago=3)
    decision = decide(without_statefulset(empty, before), POLICY)
    assert (told(decision), decision.needs_fresh_group) == (WAITS, False)
    assert decision.detail == "b; member stranger at 10.9.9.9 is in none of its pods"
    young = a_snapshot(app={"unlisted": REFUSED}, workload={"statefulset": None}, readings=(empty,))
    assert (told(decide(young, POLICY)), decide(young, POLICY).needs_fresh_group) == (WAITS, True)
    assert decide(young, POLICY).detail.startswith("b; the group is watched for 45 s first")
    gone = a_reading(GroupState.STABLE, elsewhere(), seconds_ago=61)
    assert (
        told(decide(without_statefulset(empty, a_reading(GroupState.EMPTY, seconds_ago=55), gone), POLICY)) == CREATED
    )


def test_silence_of_one_namespace_is_waited_out_whatever_the_group_says() -> None:
    unlisted = UnlistedNamespaces(silent=("a",), refusing=("b",))
    decision = decide(without_statefulset(a_reading(GroupState.EMPTY), unlisted=unlisted), POLICY)
    assert (told(decision), decision.detail, decision.needs_fresh_group) == (WAITS, "a, b", False)


def test_pods_without_members_yet_are_no_others_and_keep_their_number() -> None:
    decision = decide(without_statefulset(a_reading(GroupState.EMPTY)), POLICY)
    assert decision.reason is Reason.StatefulSetMissing
    assert next(iter(decision.plan)).replicas == 3  # type: ignore[union-attr]
