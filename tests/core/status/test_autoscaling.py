"""Whether what drives the replicas is in order: every reason, which comes first, and that nothing depends on it."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.core.actions.decision import Condition, Decision, Event
from streamapp.core.decide import decide
from streamapp.core.facts.autoscalers import NOT_LISTED, Aim, Autoscaler, ReplicaWriters, ReplicaWritersUnknown
from streamapp.core.facts.hold_record import HoldRecord
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TopologyUnknown
from streamapp.core.facts.workload import Workload
from streamapp.core.reasons import Reason
from tests.builders import POLICY, a_hold, a_reading, a_record, a_snapshot, an_unreadable
from tests.strategies import policies, rollouts, scale_downs, snapshots
from tests.support import example, state_table
from tests.support.example import task_set

CPU = Autoscaler(name="cpu", aim=Aim.STREAM_APP, least=2, most=6)
"""In order: six tasks are what the example has."""


def driven(*autoscalers: Autoscaler, by: tuple[str, ...] = (), **changes: Any) -> Snapshot:
    """The example at rest, with these drivers."""
    steady = {"desired": 3, "record": None, **changes}
    return a_snapshot(replica_writers=ReplicaWriters(autoscalers=autoscalers, other_writers=by), **steady)


def sound(snapshot: Snapshot) -> Condition:
    found = decide(snapshot, POLICY).conditions[-1]
    assert found.type == "AutoscalingHealthy"
    return found


def told(snapshot: Snapshot) -> tuple[str, str, str]:
    found = sound(snapshot)
    return found.status.value, found.reason.name, found.detail


def few_tasks(count: int = 2) -> dict[str, Any]:
    return {"task_set": task_set(count)}


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        pytest.param(driven(), ("True", "AutoscalingInOrder", "No autoscaler aims at it"), id="nobody drives it"),
        pytest.param(driven(CPU), ("True", "AutoscalingInOrder", "HorizontalPodAutoscaler cpu"), id="one does"),
        pytest.param(
            driven(by=("argocd",)), ("True", "AutoscalingInOrder", "No autoscaler aims at it"), id="a person does"
        ),
        pytest.param(
            driven(CPU, replace(CPU, name="old", aim=Aim.STATEFUL_SET)),
            ("False", "AutoscalerAimsAtStatefulSet", "HorizontalPodAutoscaler old"),
            id="past the StreamApp",
        ),
        pytest.param(
            driven(CPU, by=("argocd", "kubectl-edit")),
            ("False", "TwoWritersOfReplicas", "HorizontalPodAutoscaler cpu, argocd, kubectl-edit"),
            id="an autoscaler and others",
        ),
        pytest.param(
            driven(CPU, replace(CPU, name="lag")),
            (
                "False",
                "TwoWritersOfReplicas",
                "HorizontalPodAutoscaler cpu, HorizontalPodAutoscaler lag",
            ),
            id="two autoscalers",
        ),
        pytest.param(
            driven(replace(CPU, cannot_act="no metrics known for pods.")),
            ("False", "AutoscalerCannotAct", "cpu: no metrics known for pods"),
            id="it cannot act",
        ),
        pytest.param(
            driven(replace(CPU, most=7)),
            ("False", "AutoscalerExceedsTasks", "cpu: maxReplicas is 7, and there are 6 tasks"),
            id="it may wish for too many",
        ),
        pytest.param(
            driven(replace(CPU, least=2, most=3), **few_tasks(1)),
            (
                "False",
                "IdlePods",
                "There are 3 pods and 1 task. Also AutoscalerExceedsTasks: cpu: maxReplicas is 3, minReplicas is 2, "
                "and there are 1 task",
            ),
            id="it always wishes for too many",
        ),
        pytest.param(
            driven(
                readings=(a_reading((example.member(0, active=(0, 1, 2, 3)), example.member(1, active=(4, 5)))),),
                **few_tasks(2),
            ),
            ("False", "IdlePods", "There are 3 pods and 2 tasks; ordinal 2 now"),
            id="idle pods",
        ),
        pytest.param(
            driven(readings=(a_reading(example.members(3), at=61),), **few_tasks(2)),
            ("False", "IdlePods", "There are 3 pods and 2 tasks"),
            id="which are idle was seen too long ago",
        ),
        pytest.param(
            driven(desired=2, **few_tasks(2)),
            ("True", "AutoscalingInOrder", "No autoscaler aims at it"),
            id="they are leaving",
        ),
        pytest.param(
            driven(desired=1, record=a_record(target=1, dropped_by_half=True)),
            ("False", "LargeDrop", "From 3 to 1"),
            id="it fell by more than half",
        ),
        pytest.param(
            replace(driven(), replica_writers=ReplicaWritersUnknown("The operator lacks the right to list them")),
            ("Unknown", "AutoscalersUnread", "The operator lacks the right to list them"),
            id="not to be listed",
        ),
        pytest.param(
            driven(task_set=TopologyUnknown("Two sub-topologies have stores.")),
            ("Unknown", "TopologyUnknown", "Two sub-topologies have stores."),
            id="unknown tasks",
        ),
        pytest.param(
            driven(task_set=TopologyUnknown("?"), readings=()),
            ("Unknown", "BrokersUnreachable", "The brokers were not read yet."),
            id="never asked",
        ),
        pytest.param(
            driven(task_set=TopologyUnknown("?"), readings=(an_unreadable(),)),
            ("Unknown", "BrokersUnreachable", "timed out"),
            id="no answer",
        ),
    ],
)
def test_each_reason_has_its_particulars(snapshot: Snapshot, expected: tuple[str, str, str]) -> None:
    assert told(snapshot) == expected


OWN = {
    Reason.AutoscalingInOrder,
    Reason.AutoscalerAimsAtStatefulSet,
    Reason.TwoWritersOfReplicas,
    Reason.LargeDrop,
    Reason.AutoscalerCannotAct,
    Reason.IdlePods,
    Reason.AutoscalerExceedsTasks,
    Reason.AutoscalersUnread,
}


def test_what_is_known_to_be_wrong_is_said_even_where_autoscalers_are_not_known() -> None:
    fell = driven(desired=1, record=a_record(target=1, dropped_by_half=True))
    assert told(replace(fell, replica_writers=NOT_LISTED))[:2] == ("False", "LargeDrop")


def test_the_first_in_order_gives_the_reason_and_the_others_stand_behind_it() -> None:
    everything = driven(
        replace(CPU, most=9, cannot_act="blind"),
        replace(CPU, name="old", aim=Aim.STATEFUL_SET),
        by=("argocd",),
        desired=1,
        record=a_record(target=1, dropped_by_half=True),
    )
    assert told(everything) == (
        "False",
        "AutoscalerAimsAtStatefulSet",
        "HorizontalPodAutoscaler old. Also TwoWritersOfReplicas: HorizontalPodAutoscaler cpu, argocd. "
        "Also LargeDrop: From 3 to 1. Also AutoscalerCannotAct: cpu: blind. "
        "Also AutoscalerExceedsTasks: cpu: maxReplicas is 9, and there are 6 tasks",
    )


def test_what_somebody_set_up_wrong_is_also_told_as_an_event() -> None:
    snapshot = driven(replace(CPU, most=9), replace(CPU, name="old", aim=Aim.STATEFUL_SET), by=("argocd",))
    assert decide(snapshot, POLICY).warnings == (
        Event(Reason.AutoscalerAimsAtStatefulSet, "HorizontalPodAutoscaler old"),
        Event(Reason.TwoWritersOfReplicas, "HorizontalPodAutoscaler cpu, argocd"),
    )


def dropped_by_half(desired: int, record: HoldRecord | None) -> bool:
    """What the hold says after a decision about six pods."""
    decided = decide(a_snapshot(pods=6, desired=desired, record=record), POLICY).record
    assert isinstance(decided, HoldRecord)
    assert decided.hold is not None
    return decided.hold.dropped_by_half


def six(target: int, *, fell: bool = False) -> HoldRecord:
    return a_record(from_replicas=6, granted=6, target=target, dropped_by_half=fell)


@pytest.mark.parametrize(
    ("desired", "record", "expected"),
    [
        pytest.param(2, None, True, id="6 to 2"),
        pytest.param(3, None, False, id="6 to 3 is half"),
        pytest.param(1, six(5), True, id="5 to 1 in mid hold"),
        pytest.param(3, six(4), False, id="4 to 3, slowly"),
        pytest.param(2, six(3), False, id="3 to 2, slowly"),
        pytest.param(2, six(2, fell=True), True, id="it stands while the hold lasts"),
        pytest.param(1, six(2, fell=True), True, id="and when it falls further"),
        pytest.param(4, six(2, fell=True), False, id="until the wish rises"),
    ],
)
def test_a_fall_by_more_than_half_at_once_stands_on_record(
    desired: int, record: HoldRecord | None, *, expected: bool
) -> None:
    assert dropped_by_half(desired, record) is expected


def test_a_fall_in_mid_hold_is_told_as_an_event_once() -> None:
    first = decide(a_snapshot(pods=6, desired=1, record=six(5), members=example.members(6, lag=500_000)), POLICY)
    again = a_snapshot(pods=6, desired=1, record=first.record, members=example.members(6, lag=500_000))
    assert (first.events, decide(again, POLICY).events) == ((Event(Reason.LargeDrop, "6 to 1"),), ())


def test_it_ends_with_its_hold() -> None:
    assert told(driven(desired=3, record=a_record(target=1, dropped_by_half=True)))[1] == "AutoscalingInOrder"
    assert a_hold().dropped_by_half is False


AUTOSCALERS = st.builds(
    Autoscaler,
    name=st.sampled_from(("cpu", "lag", "old")),
    aim=st.sampled_from(Aim),
    least=st.integers(0, 9),
    most=st.integers(1, 9),
    cannot_act=st.none() | st.just("blind"),
)
DRIVERS = st.builds(ReplicaWritersUnknown, st.just("The right is missing")) | st.builds(
    ReplicaWriters,
    autoscalers=st.lists(AUTOSCALERS, max_size=3).map(tuple),
    other_writers=st.lists(st.sampled_from(("argocd", "helm")), max_size=2, unique=True).map(tuple),
)
TROUBLED = snapshots() | scale_downs() | rollouts()


@given(TROUBLED, policies(), DRIVERS)
def test_nothing_but_this_condition_and_its_warnings_depends_on_who_drives_the_replicas(
    snapshot: Snapshot, policy: ScalingPolicy, replica_writers: ReplicaWriters | ReplicaWritersUnknown
) -> None:
    one, other = decide(snapshot, policy), decide(replace(snapshot, replica_writers=replica_writers), policy)
    assert replace(other, conditions=one.conditions, warnings=one.warnings) == one
    assert other.conditions[:-1] == one.conditions[:-1]
    assert other.conditions[-1].reason in OWN | {Reason.TopologyUnknown, Reason.BrokersUnreachable} | UNREADABLE
    assert set(one.warnings) <= set(other.warnings)


UNREADABLE = {Reason.GroupUndecodable, Reason.GroupProtocolUnsupported}


def test_no_state_of_the_table_is_unsound_by_itself_but_for_a_large_drop() -> None:
    reasons = {row.decision.conditions[-1].reason for row in state_table.rows()}
    assert reasons <= {Reason.AutoscalingInOrder, Reason.LargeDrop}


def with_ready(workload: Workload, *, ready: bool) -> Workload:
    return replace(workload, pods=tuple(replace(pod, ready=ready) for pod in workload.pods))


@pytest.mark.parametrize("ready", [True, False])
@given(snapshot=snapshots() | scale_downs(), policy=policies())
def test_readiness_gates_no_step_but_the_restart_of_pods(
    snapshot: Snapshot, policy: ScalingPolicy, *, ready: bool
) -> None:
    """A pod that restores for an hour is not ready for an hour; scaling goes by what the group says of it."""
    statefulset = snapshot.workload.statefulset
    revision = "" if statefulset is None else statefulset.update_revision
    newest = tuple(replace(pod, revision=revision) for pod in snapshot.workload.pods)
    unasked = replace(snapshot.app, restarts=())
    at_rest = replace(snapshot, app=unasked, workload=replace(snapshot.workload, pods=newest))
    other = replace(at_rest, workload=with_ready(at_rest.workload, ready=ready))
    one, two = decide(at_rest, policy), decide(other, policy)
    assert (two.verdict, two.reason, two.plan, two.record) == (one.verdict, one.reason, one.plan, one.record)
    assert stalled(two) == stalled(one)


def stalled(decision: Decision) -> Condition:
    return next(one for one in decision.conditions if one.type == "Stalled")
