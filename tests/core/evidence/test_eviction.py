"""Exactly the members of a container that is known to have ended are put out, and never a live one."""

from dataclasses import replace
from datetime import timedelta

import pytest

from streamapp.core.actions.decision import Evict
from streamapp.core.decide import decide
from streamapp.core.evidence.eviction import Evictable, evictable, observe_members, remember, since_first_seen
from streamapp.core.evidence.membership import PROBE_CLIENT_ID
from streamapp.core.facts.containers import ContainerEnd, MemberKey, ObservedMembers
from streamapp.core.facts.group import GroupDescription, GroupState, Member, Subscription
from streamapp.core.facts.hold_record import HoldRecord
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.snapshot import RestartRequest, Snapshot
from streamapp.core.reasons import Reason
from tests.builders import (
    NOW,
    POLICY,
    a_capture,
    a_pod,
    a_reading,
    a_record,
    a_snapshot,
    a_step,
    ago,
    an_end,
    an_unreadable,
    not_running,
    pods,
    seconds,
    steps,
)
from tests.support import example

STAYS = [f"pod-{ordinal}" for ordinal in range(4)]
MARGIN = seconds(10)
OLD = example.member(3)
KEY = MemberKey(OLD.id)
LISTED = GroupDescription(GroupState.STABLE, (*example.members(3), OLD))


def may_go(
    seen: ObservedMembers, end: ContainerEnd, group: GroupDescription = LISTED, *, for_good: bool = False
) -> tuple[Evictable, ...]:
    return evictable((seen,), (end,), group, MARGIN, for_good=lambda _: for_good, staying_pods=STAYS)


@pytest.mark.parametrize(
    ("seen", "end", "goes"),
    [
        pytest.param(
            a_capture(seen_at=ago(15)), an_end(finished_at=ago(5)), True, id="seen ten seconds before the end"
        ),
        pytest.param(a_capture(seen_at=ago(14)), an_end(finished_at=ago(5)), False, id="seen nine seconds before it"),
        pytest.param(a_capture(seen_at=ago(1)), an_end(finished_at=ago(5)), False, id="seen after it"),
        pytest.param(
            a_capture(), an_end(container_id="containerd://other"), False, id="another container of the pod ended"
        ),
        pytest.param(a_capture(), an_end(pod_uid="pod-other"), False, id="a container of another pod ended"),
        pytest.param(
            a_capture(), an_end(reason="ContainerStatusUnknown"), False, id="the kubelet only lost sight of it"
        ),
        pytest.param(a_capture(), an_end(reason="OOMKilled"), True, id="it was killed"),
    ],
)
@pytest.mark.guarantee(7)
def test_a_member_goes_only_with_its_own_container(seen: ObservedMembers, end: ContainerEnd, goes: bool) -> None:
    assert may_go(seen, end) == ((Evictable((KEY,), end),) if goes else ())


def test_of_two_reports_of_one_end_the_earlier_counts() -> None:
    seen = a_capture(seen_at=ago(20))
    ends = (an_end(finished_at=ago(5)), an_end(finished_at=ago(15)))
    assert evictable((seen,), ends, LISTED, MARGIN, for_good=lambda _: False, staying_pods=STAYS) == ()


def test_whoever_has_left_already_is_not_put_out_again() -> None:
    assert may_go(a_capture(), an_end(), GroupDescription(GroupState.STABLE, example.members(3))) == ()


@pytest.mark.parametrize(("for_good", "goes"), [(False, False), (True, True)], ids=["restarted", "scaled away"])
def test_a_static_member_goes_only_where_its_state_does_not_come_back(for_good: bool, goes: bool) -> None:
    static = MemberKey(OLD.id, "wordcount-3")
    seen = a_capture(members=(static,))
    assert may_go(seen, an_end(), for_good=for_good) == ((Evictable((static,), an_end()),) if goes else ())


def test_members_are_captured_with_the_container_that_runs_now() -> None:
    observed = observe_members(LISTED, example.workload(3), {Ordinal(1), Ordinal(7)}, NOW)
    assert observed == (
        ObservedMembers(
            ordinal=Ordinal(1),
            pod_uid="pod-1",
            container_id="containerd://1",
            seen_at=NOW,
            members=(MemberKey("wordcount-1-consumer"),),
        ),
    )


def _captured(ordinal: int, seen_ago: float, member: str | None = None) -> ObservedMembers:
    keys = (MemberKey(member or f"wordcount-{ordinal}-consumer"),)
    return a_capture(ordinal, seen_at=ago(seen_ago), members=keys)


def _remembered(seen_ago: float) -> tuple[ObservedMembers, ...]:
    """The captures of the example's members after two readings a second apart."""
    once = remember((), a_reading(example.members(3), at=seen_ago), example.workload(3))
    return remember(once, a_reading(example.members(3), at=seen_ago - 1), example.workload(3))


def test_memory_keeps_the_first_time_a_member_was_seen() -> None:
    again = remember(_remembered(30), a_reading(example.members(3), at=1), example.workload(3))
    assert again == _remembered(30) == tuple(_captured(number, 30) for number in range(3))


def test_memory_adds_a_thread_that_joined_later_with_its_own_time() -> None:
    second = replace(example.member(0), id="wordcount-0-second")
    once = remember(_remembered(30), a_reading((*example.members(3), second), at=5), example.workload(3))
    assert once == (*_remembered(30), replace(_captured(0, 5, "wordcount-0-second"), is_confirmed=False))
    again = remember(once, a_reading((*example.members(3), second), at=3), example.workload(3))
    assert again == (*_remembered(30), _captured(0, 5, "wordcount-0-second"))


def test_memory_forgets_whoever_left_the_group() -> None:
    after = remember(_remembered(30), a_reading(example.members(3)[:2], at=1), example.workload(3))
    assert after == _remembered(30)[:2]


@pytest.mark.guarantee(7)
def test_what_one_read_of_the_pods_placed_alone_is_not_put_out() -> None:
    # a read of the pods that is some seconds old places the new member in the container before its own, and that one
    # has ended long after it was seen, by a node's clock that is ahead
    stale = remember((), a_reading(example.members(3), at=40), example.workload(3))
    end = an_end(2, finished_at=ago(-20))
    (seen,) = (one for one in stale if one.ordinal == 2)
    assert may_go(seen, end) == ()
    assert may_go(replace(seen, is_confirmed=True), end) != ()
    container = replace(example.pod(2).container, id="containerd://2-again")
    now = replace(example.workload(3), pods=tuple(pods(3, p2=a_pod(2, container=container))))
    again = remember(stale, a_reading(example.members(3), at=38), now)
    in_two = [(one.container_id, one.is_confirmed, one.seen_at) for one in again if one.ordinal == 2]
    assert in_two == [("containerd://2-again", False, ago(38))]


def test_a_group_that_looks_empty_changes_nothing_in_memory() -> None:
    # a new coordinator can show it as it was before its members joined; they are listed again a moment later
    empty = a_reading((), at=1, state=GroupState.EMPTY, rebalance=None)
    assert remember(_remembered(30), empty, example.workload(3)) == _remembered(30)


def test_a_reading_that_failed_changes_nothing_in_memory() -> None:
    first = (_captured(0, 30),)
    assert remember(first, an_unreadable(), example.workload(3)) == first


def test_a_step_captures_its_members_since_they_were_first_seen() -> None:
    # the pod may stop within a second of the step: what was seen long before must count
    snapshot = a_snapshot(observed=(_captured(2, 600), _captured(1, 600)))
    record = decide(snapshot, POLICY).record
    assert isinstance(record, HoldRecord)
    assert record.step is not None
    assert record.step.observed == (_captured(2, 600),)


def test_what_memory_has_of_another_member_or_of_later_does_not_count() -> None:
    seen = (_captured(2, 20),)
    others = (_captured(2, 600, "another"), _captured(2, 5))
    assert since_first_seen(seen, others, LISTED) == seen


@pytest.mark.guarantee(7)
def test_a_member_ends_with_the_container_that_it_was_first_seen_in() -> None:
    before = replace(_captured(2, 600), container_id="containerd://before")
    assert since_first_seen((_captured(2, 20),), (before,), LISTED) == ()
    once = replace(before, is_confirmed=False)
    assert since_first_seen((_captured(2, 20),), (once,), LISTED) == (_captured(2, 20),)


def test_threads_of_one_container_may_have_been_seen_at_different_times() -> None:
    both = replace(_captured(2, 20), members=(MemberKey("a"), MemberKey("b")))
    found = since_first_seen((both,), (_captured(2, 600, "a"),), LISTED)
    assert found == (_captured(2, 600, "a"), _captured(2, 20, "b"))


BESIDE = replace(
    example.member(2),
    id="wordcount-2-beside",
    subscription=Subscription(process_id=example.process_id(7), offsets={}, owned_partitions=frozenset()),
)
"""A member of another process in pod 2: of a second container, which has the same address."""
STATELESS = replace(example.workload(3), volumes=())


@pytest.mark.guarantee(7)
@pytest.mark.parametrize("is_known_before", [False, True])
def test_members_of_two_processes_in_one_pod_do_not_end_with_one_container(is_known_before: bool) -> None:
    alone, both = (*example.members(2), BESIDE), (*example.members(3), BESIDE)
    known: tuple[ObservedMembers, ...] = ()
    if is_known_before:
        known = remember((), a_reading(alone, at=40), STATELESS)
        known = remember(known, a_reading(alone, at=35), STATELESS)
    seen = remember(known, a_reading(both, at=30), STATELESS)
    seen = remember(seen, a_reading(both, at=25), STATELESS)
    assert {int(one.ordinal) for one in seen} == {0, 1}
    group = GroupDescription(GroupState.STABLE, both)
    observed = observe_members(group, STATELESS, {Ordinal(1), Ordinal(2)}, NOW)
    assert [int(one.ordinal) for one in since_first_seen(observed, seen, group)] == [1]


def test_a_process_that_takes_the_place_of_an_ended_one_is_alone_in_its_container() -> None:
    """Without a volume each JVM has another process ID."""
    before = remember((), a_reading(example.members(3), at=40), STATELESS)
    before = remember(before, a_reading(example.members(3), at=35), STATELESS)
    container = replace(example.pod(2).container, id="containerd://2-again")
    again = replace(STATELESS, pods=pods(3, p2=a_pod(2, container=container)))
    both = (*example.members(3), BESIDE)
    seen = remember(remember(before, a_reading(both, at=5), again), a_reading(both, at=3), again)
    found = {one.container_id: [key.id for key in one.members] for one in seen if one.ordinal == 2}
    assert found == {"containerd://2": ["wordcount-2-consumer"], "containerd://2-again": ["wordcount-2-beside"]}


def restarted(*members: Member, seen: float, finished: float) -> Snapshot:
    """Pod 2's container ended and another one runs, with the same address and process ID."""
    observed = _remembered(seen)
    container = replace(example.pod(2).container, id="containerd://2-again", running_since=ago(finished - 1))
    return a_snapshot(
        desired=3,
        record=None,
        members=members,
        workload={"pods": pods(3, p2=a_pod(2, container=container))},
        observed=observed,
        container_ends=(an_end(2, finished_at=ago(finished)),),
    )


def evicted(snapshot: Snapshot) -> list[Evict]:
    return [step for step in decide(snapshot, POLICY).plan if isinstance(step, Evict)]


def test_outside_steps_the_members_of_a_crashed_container_are_put_out() -> None:
    assert evicted(restarted(*example.members(3), seen=60, finished=20)) == [
        Evict(
            members=(MemberKey("wordcount-2-consumer"),),
            end=an_end(2, finished_at=ago(20)),
            reason=Reason.ContainerEnded,
        )
    ]


@pytest.mark.guarantee(7)
def test_the_new_member_of_the_restarted_container_is_left_alone() -> None:
    again = replace(example.members(3)[2], id="wordcount-2-again")
    snapshot = restarted(*example.members(3)[:2], again, seen=60, finished=20)
    late = remember(snapshot.observed, snapshot.readings[0], example.workload(3))
    # even where it was captured under the container that ended, as a slow pod watch would have it
    assert "wordcount-2-again" in {key.id for one in late for key in one.members}
    assert evicted(replace(snapshot, observed=late)) == []


def test_a_member_seen_only_shortly_before_the_end_waits_for_its_session() -> None:
    assert evicted(restarted(*example.members(3), seen=25, finished=20)) == []


@pytest.mark.parametrize("app", [{"paused": True}, {"dry_run": True}, {"fault": "broken"}], ids=str)
def test_outside_steps_nobody_is_put_out_while_the_operator_is_told_to_keep_still(app: dict[str, object]) -> None:
    snapshot = restarted(*example.members(3), seen=60, finished=20)
    assert evicted(replace(snapshot, app=replace(snapshot.app, **app))) == []  # type: ignore[arg-type]  # fields by name


@pytest.mark.parametrize("app", [{}, {"paused": True}, {"dry_run": True}, {"fault": "broken"}], ids=str)
def test_the_members_of_an_open_step_are_put_out_beside_every_branch(app: dict[str, object]) -> None:
    snapshot = a_snapshot(
        desired=3,
        record=a_record(step=a_step()),
        app=app,
        members=(*example.members(3), OLD),
        container_ends=(an_end(),),
    )
    assert evicted(snapshot) == [Evict(members=(KEY,), end=an_end(), reason=Reason.ContainerEnded)]


def test_a_raise_in_the_middle_of_a_step_keeps_static_members_since_they_come_back() -> None:
    static = replace(OLD, instance_id="wordcount-3")
    step = a_step(observed=(a_capture(3, members=(MemberKey(OLD.id, "wordcount-3"),)),))
    raised = a_snapshot(
        pods=3,
        desired=4,
        record=a_record(step=step, granted=4),
        statefulset={"replicas": 4},
        members=(*example.members(3), static),
        container_ends=(an_end(),),
    )
    assert evicted(raised) == []


@pytest.mark.parametrize(
    ("new_volume", "is_back", "goes"), [(True, True, True), (False, True, False), (True, False, False)]
)
def test_a_static_member_whose_volume_was_given_up_goes_once_its_pod_has_gone(
    new_volume: bool, is_back: bool, goes: bool
) -> None:
    """The next pod would have its tasks again, and nothing of their state."""
    static = MemberKey("old-1", "wordcount-1")
    gone = a_capture(1, pod_uid="gone" if is_back else "pod-1", members=(static,))
    end = an_end(1, pod_uid=gone.pod_uid)
    snapshot = a_snapshot(
        desired=3,
        record=None,
        app={"restarts": (RestartRequest(pod_uid=gone.pod_uid, new_volume=new_volume),)},
        members=(*example.members(3), replace(OLD, id=static.id, instance_id=static.instance_id)),
        observed=(gone,),
        container_ends=(end,),
    )
    assert [step.members for step in evicted(snapshot)] == ([(static,)] if goes else [])


def test_our_own_probe_member_is_put_out() -> None:
    ghost = replace(example.member(7), id="ghost", client_id=PROBE_CLIENT_ID, client_host="10.9.9.9")
    assert evicted(a_snapshot(desired=3, record=None, members=(*example.members(3), ghost))) == [
        Evict(members=(MemberKey("ghost"),), end=None, reason=Reason.ProbeMemberLeft)
    ]


def test_the_margin_is_the_policys() -> None:
    seen, end = a_capture(seen_at=ago(36)), an_end(finished_at=ago(5))
    assert evictable((seen,), (end,), LISTED, timedelta(seconds=32), for_good=lambda _: False, staying_pods=STAYS) == ()


@pytest.mark.guarantee(7)
def test_a_pod_that_lives_on_after_its_deletion_by_force_does_not_end_with_its_successor() -> None:
    """Its node is cut off from Kubernetes and not from Kafka; the successor has its volume, and crashes."""
    elsewhere = replace(OLD, client_host="10.9.9.9")
    group = GroupDescription(GroupState.STABLE, (*example.members(3), elsewhere))
    workload = replace(example.workload(4), pods=(*pods(3), a_pod(3, uid="successor")))
    seen = observe_members(group, workload, tuple(Ordinal(number) for number in range(4)), ago(60))
    assert {one.ordinal for one in seen} == {0, 1, 2}


@pytest.mark.guarantee(7)
def test_behind_translated_addresses_a_pod_that_lives_on_does_not_end_with_its_successor() -> None:
    """Its process ID is that of the successor, which has its volume."""
    members = tuple(replace(member, client_host="192.0.2.1") for member in (*example.members(3), OLD))
    container = replace(a_pod(3).container, id="containerd://successor")
    successor = replace(example.workload(4), pods=(*pods(3), a_pod(3, uid="successor", container=container)))
    observed: tuple[ObservedMembers, ...] = ()
    for at, workload in ((60, example.workload(4)), (55, example.workload(4)), (50, successor), (45, successor)):
        observed = remember(observed, a_reading(members, at=at), workload)
    assert {one.container_id for one in observed if KEY in one.members} == {"containerd://3"}
    end = an_end(3, pod_uid="successor", container_id="containerd://successor", finished_at=ago(5))
    group = GroupDescription(GroupState.STABLE, members)
    assert evictable(observed, (end,), group, MARGIN, for_good=lambda _: True, staying_pods=STAYS) == ()


def test_where_no_address_is_a_pods_own_the_process_id_tells_who_is_where() -> None:
    behind_one = tuple(replace(member, client_host="192.0.2.1") for member in (*example.members(3), OLD))
    seen = observe_members(
        GroupDescription(GroupState.STABLE, behind_one),
        example.workload(4),
        tuple(Ordinal(number) for number in range(4)),
        ago(60),
    )
    assert {one.ordinal for one in seen} == {0, 1, 2, 3}


@pytest.mark.guarantee(7)
@pytest.mark.parametrize(
    ("is_going", "is_followed", "is_evicted"), [(False, False, False), (True, False, True), (True, True, False)]
)
def test_a_clock_is_doubted_where_another_container_can_follow_or_has(
    is_going: bool, is_followed: bool, is_evicted: bool
) -> None:
    """A restart ends a pod, and its end is known before the next one is there; a crash does not.

    A node that was cut off can report both at once: the crash of one container, and a pod that goes with the next one.
    """
    down = a_pod(2, terminating=is_going, container=not_running(), ready=False)
    (member,) = example.members(3)[2:]
    found = a_snapshot(
        desired=3,
        record=None,
        workload={"pods": pods(3, p2=down)},
        observed=(a_capture(2, seen_at=ago(60), members=(MemberKey(member.id),)),),
        container_ends=(an_end(2, finished_at=ago(5), clock_doubt=timedelta(minutes=1), is_followed=is_followed),),
    )
    assert ("Evict" in steps(decide(found, POLICY))) is is_evicted
