"""The order of the branches, and what goes on beside them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from streamapp.core.actions.decision import (
    CreateStatefulSet,
    Event,
    ExpandVolume,
    Fence,
    GrantReplicas,
    RecordProcessId,
    Verdict,
    WriteHoldRecord,
)
from streamapp.core.decide import decide, decide_raise
from streamapp.core.facts.hold_record import RecordUnreadable
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import OnTimeout, ScaleDownPolicy, ScalingPolicy, Timing
from streamapp.core.facts.snapshot import ConflictingStreamApp, UnlistedNamespaces
from streamapp.core.facts.workload import Budget, Container, Volume
from streamapp.core.reasons import Reason
from tests.builders import (
    NOW,
    POLICY,
    a_capture,
    a_pod,
    a_record,
    a_snapshot,
    a_step,
    ago,
    an_end,
    an_unreadable,
    decided,
    not_running,
    pods,
    told,
    volumes,
)
from tests.support import example

DAY = timedelta(days=1)
OLDER = ConflictingStreamApp(name="orders", uid="a", created_at=NOW - 2 * DAY, has_statefulset=True)
YOUNGER = ConflictingStreamApp(name="orders-copy", uid="a", created_at=NOW, has_statefulset=True)
TWIN = ConflictingStreamApp(name="twin", uid="0", created_at=NOW - DAY, has_statefulset=True)


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        pytest.param(
            {"app": {"fault": "?", "paused": True}, "desired": 5}, ("Stalled", "InvalidSpec"), id="invalid first"
        ),
        pytest.param(
            {"statefulset": {"is_ours": False}, "app": {"paused": True}},
            ("Stalled", "ForeignStatefulSet"),
            id="foreign",
        ),
        pytest.param(
            {"app": {"conflicting": (OLDER,), "paused": True}}, ("Stalled", "ApplicationIdTaken"), id="a rival"
        ),
        pytest.param({"app": {"conflicting": (YOUNGER,)}}, ("Step", "Covered"), id="a younger rival waits for us"),
        pytest.param(
            {"app": {"conflicting": (OLDER,), "in_group": True}}, ("Step", "Covered"), id="an older one without members"
        ),
        pytest.param(
            {"app": {"conflicting": (replace(OLDER, has_statefulset=False),)}},
            ("Step", "Covered"),
            id="an older one without a StatefulSet",
        ),
        pytest.param(
            {"app": {"conflicting": (YOUNGER,)}, "workload": {"statefulset": None}},
            ("Stalled", "ApplicationIdTaken"),
            id="a younger one that alone has a StatefulSet",
        ),
        pytest.param(
            {"app": {"conflicting": (replace(YOUNGER, has_statefulset=False),)}, "workload": {"statefulset": None}},
            ("Create", "StatefulSetMissing"),
            id="a younger one, neither has a StatefulSet",
        ),
        pytest.param(
            {"app": {"conflicting": (replace(OLDER, has_statefulset=False),)}, "workload": {"statefulset": None}},
            ("Stalled", "ApplicationIdTaken"),
            id="an older one, neither has a StatefulSet",
        ),
        pytest.param(
            {"app": {"conflicting": (replace(OLDER, in_group=True),), "in_group": True}},
            ("Stalled", "ApplicationIdTaken"),
            id="an older one with members too",
        ),
        pytest.param(
            {"app": {"conflicting": (replace(YOUNGER, in_group=True),)}},
            ("Stalled", "ApplicationIdTaken"),
            id="a younger one whose pods alone are in the group",
        ),
        pytest.param({"app": {"conflicting": (TWIN,)}}, ("Stalled", "ApplicationIdTaken"), id="of twins one goes on"),
        pytest.param(
            {"app": {"deleting": True}, "desired": 5}, ("Paused", "BeingDeleted"), id="deletion before growth"
        ),
        pytest.param({"app": {"paused": True}, "desired": 5}, ("Paused", "Paused"), id="a pause before growth"),
        pytest.param({"workload": {"statefulset": None}}, ("Create", "StatefulSetMissing"), id="nothing there"),
        pytest.param(
            {"app": {"unlisted": UnlistedNamespaces(silent=("b",))}, "workload": {"statefulset": None}},
            ("Stalled", "NamespaceUnlisted"),
            id="nothing there, and a namespace is silent",
        ),
        pytest.param(
            {"app": {"unlisted": UnlistedNamespaces(silent=("b",), refusing=("c",))}, "desired": 5},
            ("Grow", "Growing"),
            marks=pytest.mark.guarantee(3),
            id="growth although a namespace was never listed",
        ),
        pytest.param(
            {"record": a_record(step=a_step()), "desired": 5}, ("Grow", "Growing"), id="growth before an open step"
        ),
        pytest.param(
            {"record": a_record(step=a_step()), "desired": 3},
            ("CloseStep", "StepClosed"),
            id="an open step before steady",
        ),
        pytest.param({"desired": 3}, ("Steady", "Steady"), id="steady"),
        pytest.param({"desired": 2}, ("Step", "Covered"), id="the hold last"),
    ],
)
def test_the_first_branch_that_applies_gives_the_verdict(changes: dict[str, Any], verdict: tuple[str, str]) -> None:
    assert told(decide(a_snapshot(**changes), POLICY)) == verdict


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"readings": (an_unreadable(),)}, id="brokers gone"),
        pytest.param({"workload": {"read_at": ago(3600)}}, id="facts an hour old"),
        pytest.param({"members": ()}, id="nobody in the group"),
        pytest.param({"statefulset": {"generation": 9}}, id="an unseen change"),
        pytest.param({"workload": {"pods": ()}}, id="no pod at all"),
        pytest.param({"app": {"held_because": "audit"}}, id="the user's hold, which only forbids shrinking"),
    ],
)
def test_a_raise_is_granted_in_one_write_whatever_else_is_the_case(changes: dict[str, Any]) -> None:
    decision = decide(a_snapshot(desired=9, **changes), POLICY)
    assert decision.plan[0] == GrantReplicas(
        from_replicas=3,
        to_replicas=9,
        record=None,
        fence=Fence("sts", "100"),
        judged_at=NOW,
        reason=Reason.Growing,
    )


def test_a_raise_calls_off_the_hold_in_the_same_write_and_says_so() -> None:
    decision = decide(a_snapshot(desired=4), POLICY)
    assert (decision.record, decision.events) == (
        None,
        (Event(Reason.Growing, "3 to 4"), Event(Reason.HoldCancelled, "hold h-1")),
    )


def test_nothing_that_can_fail_comes_before_a_raise() -> None:
    snapshot = a_snapshot(
        desired=9,
        record=a_record(step=a_step()),
        members=(*example.members(3), example.member(3)),
        container_ends=(an_end(),),
        workload={"budget": Budget.OPEN},
    )
    assert decided(snapshot)[1] == ("GrantReplicas", "CloseBudget", "Evict")


def test_a_raise_leaves_an_unreadable_record_as_it_is() -> None:
    unreadable = RecordUnreadable("no JSON")
    decision = decide(a_snapshot(desired=4, record=unreadable), POLICY)
    grant = decision.plan[0]
    assert isinstance(grant, GrantReplicas)
    assert (grant.record, decision.record) == (unreadable, unreadable)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"desired": 3}, Reason.Steady, id="the wish came up"),
        pytest.param({"app": {"paused": True}}, Reason.Paused, id="a pause"),
        pytest.param({"app": {"deleting": True}}, Reason.BeingDeleted, id="a deletion"),
        pytest.param({"desired": 0}, Reason.ZeroNotAllowed, id="zero is not allowed"),
    ],
)
def test_a_hold_that_is_called_off_leaves_nothing_behind(changes: dict[str, Any], reason: Reason) -> None:
    decision = decide(a_snapshot(**changes), POLICY)
    assert (decision.plan, decision.events) == (
        (WriteHoldRecord(record=None, fence=Fence("sts", "100"), reason=reason),),
        (Event(Reason.HoldCancelled, "hold h-1"),),
    )


def test_a_pause_is_not_withdrawn_twice() -> None:
    assert decided(a_snapshot(record=None, app={"paused": True})) == (("Paused", "Paused"), ())


def test_steady_with_an_unreadable_record_leaves_it_for_a_person() -> None:
    assert decided(a_snapshot(desired=3, record=RecordUnreadable("no JSON"))) == (("Steady", "Steady"), ())


def test_a_dry_run_says_what_it_would_have_done_and_does_nothing() -> None:
    decision = decide(a_snapshot(app={"dry_run": True}), POLICY)
    assert (told(decision), decision.plan, [type(step).__name__ for step in decision.withheld]) == (
        ("Step", "Covered"),
        (),
        ["CloseBudget", "GrantReplicas"],
    )


def test_a_dry_run_of_a_raise_grants_nothing() -> None:
    decision = decide(a_snapshot(desired=9, record=None, app={"dry_run": True}), POLICY)
    assert (decision.plan, [type(step).__name__ for step in decision.withheld]) == ((), ["GrantReplicas"])


@pytest.mark.parametrize(
    ("desired", "before", "pods_", "replicas"),
    [(2, None, 0, 2), (2, 5, 0, 5), (2, 3, 6, 6), (7, 3, 6, 7)],
    ids=["the wish", "what was granted before", "the highest pod that exists", "whatever is most"],
)
def test_a_statefulset_is_never_created_smaller_than_it_was(
    desired: int, before: int | None, pods_: int, replicas: int
) -> None:
    snapshot = a_snapshot(
        desired=desired, app={"granted_before": before}, workload={"statefulset": None, "pods": pods(pods_)}
    )
    assert decide(snapshot, POLICY).plan == (CreateStatefulSet(replicas=replicas, reason=Reason.StatefulSetMissing),)


@pytest.mark.parametrize("app", [{"paused": True}, {"dry_run": True}, {"fault": "?"}, {"deleting": True}], ids=str)
def test_nothing_is_created_while_the_operator_is_told_to_keep_still(app: dict[str, Any]) -> None:
    assert decide(a_snapshot(app=app, workload={"statefulset": None}), POLICY).plan == ()


@pytest.mark.guarantee(3)
@pytest.mark.parametrize(
    ("app", "is_raised"),
    [
        pytest.param({"fault": "?"}, False, id="the spec is invalid"),
        pytest.param({"fault": "?", "is_rejected": True}, True, id="the API server did not accept an object"),
        pytest.param({"fault": "?", "is_rejected": True, "paused": True}, False, id="paused besides"),
        pytest.param({"fault": "?", "is_rejected": True, "dry_run": True}, False, id="a dry run besides"),
    ],
)
def test_an_object_that_the_api_server_did_not_accept_stops_no_raise(app: dict[str, Any], is_raised: bool) -> None:
    snapshot = a_snapshot(desired=7, app=app)
    assert (decide_raise(snapshot.app, snapshot.workload.statefulset, 0, NOW) is not None) == is_raised


def too_small(**changes: Any) -> Volume:
    """The volume of ordinal 1, whose claim asks for 1 GiB."""
    return replace(example.volume(1), **{"requested": 2**30, **changes})


@pytest.mark.parametrize(
    ("size", "volume", "expands"),
    [
        pytest.param(2**31, too_small(), True, id="asks for less"),
        pytest.param(2**30, too_small(), False, id="asks for as much"),
        pytest.param(2**29, too_small(), False, id="asks for more: a claim never shrinks"),
        pytest.param(2**31, too_small(requested=None), False, id="does not say"),
        pytest.param(2**31, too_small(deleting=True), False, id="on its way out"),
        pytest.param(2**31, too_small(not_expandable="no"), False, id="was refused lately"),
        pytest.param(None, too_small(), False, id="no state is kept"),
    ],
)
def test_a_claim_asks_for_as_much_as_the_streamapp_says(size: int | None, volume: Volume, expands: bool) -> None:
    workload = {"volumes": (*volumes(1), volume, example.volume(2))}
    snapshot = a_snapshot(desired=3, record=None, app={"volume_size": size}, workload=workload)
    step = ExpandVolume(ordinal=Ordinal(1), to_bytes=size or 0, reason=Reason.VolumeTooSmall)
    assert decide(snapshot, POLICY).plan == ((step,) if expands else ())
    withheld = decide(replace(snapshot, app=replace(snapshot.app, dry_run=True)), POLICY)
    assert (withheld.plan, withheld.withheld) == ((), (step,) if expands else ())
    paused = decide(replace(snapshot, app=replace(snapshot.app, paused=True)), POLICY)
    assert not [step for step in paused.plan if isinstance(step, ExpandVolume)]


def test_a_claim_that_cannot_be_expanded_is_told_and_holds_nothing() -> None:
    refused = too_small(not_expandable="only dynamically provisioned pvc can be resized")
    workload = {"volumes": (*volumes(1), refused, example.volume(2))}
    decision = decide(a_snapshot(app={"volume_size": 2**31}, workload=workload), POLICY)
    assert decision.verdict is Verdict.STEP
    assert (
        Event(Reason.VolumeNotExpandable, "ordinal 1: only dynamically provisioned pvc can be resized")
        in decision.warnings
    )


def test_a_statefulset_that_makes_claims_of_another_class_is_told() -> None:
    snapshot = a_snapshot(desired=3, record=None)
    assert snapshot.workload.statefulset is not None
    other = replace(snapshot.workload.statefulset, storage_class="fast, not slow")
    decision = decide(replace(snapshot, workload=replace(snapshot.workload, statefulset=other)), POLICY)
    assert (decision.plan, decision.warnings) == ((), (Event(Reason.StorageClassDiffers, "fast, not slow"),))


def test_a_process_id_is_recorded_the_first_time_it_is_seen() -> None:
    fresh = (*volumes(2), example.volume(2, process_id=None))
    decision = decide(a_snapshot(desired=3, record=None, workload={"volumes": fresh}), POLICY)
    assert decision.plan == (
        RecordProcessId(ordinal=Ordinal(2), process_id=example.process_id(2), reason=Reason.ProcessIdUnrecorded),
    )


@pytest.mark.guarantee(5)
@pytest.mark.parametrize("case", ["not running yet", "on its way out", "seen in another container"])
def test_a_member_of_an_earlier_pod_gives_its_process_id_to_no_new_volume(case: str) -> None:
    """The new pod has the address of the one before, as on the network of a node, and its first member is still listed.

    What is on record is never replaced, so that the wrong ID would hold every scale-down.
    """
    pod = {
        "not running yet": a_pod(2, container=not_running(ever_ran=False), ready=False),
        "on its way out": a_pod(2, terminating=True),
        "seen in another container": a_pod(2),
    }[case]
    before = a_capture(2, container_id="the one before", pod_uid="pod-before")
    workload = {"volumes": (*volumes(2), example.volume(2, process_id=None)), "pods": pods(3, p2=pod)}
    snapshot = a_snapshot(desired=3, record=None, workload=workload, observed=(before,))
    assert not any(isinstance(step, RecordProcessId) for step in decide(snapshot, POLICY).plan)


def test_a_process_id_that_another_volume_has_is_not_recorded() -> None:
    fresh = (
        Volume(ordinal=Ordinal(0), process_id=example.process_id(2)),
        volumes(2)[1],
        Volume(ordinal=Ordinal(2), process_id=None),
    )
    assert decided(a_snapshot(desired=3, record=None, workload={"volumes": fresh}))[1] == ()


def test_a_record_left_over_is_cleared_as_soon_as_nothing_is_held() -> None:
    assert decided(a_snapshot(desired=3, record=a_record(granted=9)))[1] == ("WriteHoldRecord",)


def test_a_grant_that_was_raised_by_somebody_else_is_reported_as_what_is_there() -> None:
    # somebody raised the StatefulSet itself: the wish is now lower than what is granted, and that takes a hold
    workload = {"pods": pods(4), "volumes": volumes(4)}
    snapshot = a_snapshot(desired=3, record=None, statefulset={"replicas": 4}, workload=workload)
    assert decided(snapshot) == (("Hold", "HoldBegan"), ("WriteHoldRecord",))


@pytest.mark.parametrize(
    "broken",
    [
        lambda: ScalingPolicy(stabilization_window=timedelta(seconds=-1)),
        lambda: ScalingPolicy(timeout=timedelta(0)),
        lambda: ScalingPolicy(acceptable_recovery_lag=-1),
        lambda: ScalingPolicy(scale_down=ScaleDownPolicy.IMMEDIATE),
        lambda: ScalingPolicy(on_timeout=OnTimeout.PROCEED),
        lambda: Timing(fact_age=timedelta(0)),
        lambda: Timing(reading_window=timedelta(seconds=10)),
        lambda: Timing(rebalance_gap_longest=timedelta(seconds=9)),
    ],
    ids=[
        "stabilization",
        "timeout",
        "lag",
        "Immediate without a reason",
        "Proceed without a reason",
        "a limit of nothing",
        "a window for one reading",
        "longest before shortest",
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(broken: Any) -> None:
    with pytest.raises(ValueError, match=r"policy|timing"):
        broken()


@pytest.mark.parametrize(
    "broken",
    [
        lambda: replace(example.snapshot(), now=NOW.replace(tzinfo=None)),
        lambda: replace(example.snapshot(), readings=(example.snapshot().readings[0],) * 2),
        lambda: replace(example.workload(), pods=(a_pod(0), a_pod(0, uid="twin"))),
        lambda: replace(example.workload(), volumes=(volumes(1)[0], volumes(1)[0])),
        lambda: Container(id=None, running_since=NOW, ever_ran=True),
        lambda: Container(id="c", running_since=NOW, ever_ran=False),
    ],
    ids=["naive clock", "two newest readings", "two pods", "two volumes", "runs without ID", "runs but never ran"],
)
def test_facts_that_contradict_themselves_are_refused(broken: Any) -> None:
    with pytest.raises(ValueError, match=r"snapshot|workload|container"):
        broken()
