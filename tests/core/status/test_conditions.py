"""The conditions of the resource, and the laws that they keep."""

from typing import Any

import pytest

from streamapp.core.actions.decision import Answer, Condition
from streamapp.core.decide import decide
from streamapp.core.facts.group import GroupState
from streamapp.core.facts.hold_record import Progress
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import OnTimeout, RolloutPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TopologyUnknown
from streamapp.core.facts.workload import PodFault, QuotaLimit, Volume
from streamapp.core.reasons import Reason
from tests.builders import (
    POLICY,
    a_pod,
    a_reading,
    a_record,
    a_snapshot,
    a_step,
    ago,
    an_unreadable,
    pods,
    volumes,
    without_subscriptions,
)
from tests.support import example, state_table

TYPES = [
    "Ready",
    "Reconciling",
    "Stalled",
    "Converged",
    "ScaleDownHeld",
    "ProcessIdentityStable",
    "KafkaReachable",
    "LearnersAvailable",
    "DisruptionAllowed",
    "AutoscalingHealthy",
]
LAGGING = example.members(3, lag=500_000)
FULL = PodFault(reason="Error", container="app", exit_code=1, last_words="IO error: No space left on device: /state")
CRASH = PodFault(reason="Error", container="app", exit_code=1, restarts=4, last_words="boom")
NO_NODE = PodFault(reason="Unschedulable", last_words="0/2 nodes are available")
ON_NO_NODE = {"pods": pods(3, p0=a_pod(0, ready=False, fault=NO_NODE))}
WITHOUT_QUOTA = {
    "pods": pods(2),
    "quota_limits": (QuotaLimit(quota="compute", resource="pods", used="2", hard="2"),),
}
OTHER_VOLUME = (*volumes(2), Volume(ordinal=Ordinal(2), process_id=example.process_id(9)))
REBALANCING = a_reading(
    without_subscriptions(example.members(3)), at=2, state=GroupState.PREPARING_REBALANCE, rebalance=None
)
STUCK = a_record(
    reason=Reason.NoProgress,
    progress=Progress(best=980_000, improved_at=ago(9000), counted_at=ago(9000)),
)


def of(snapshot: Snapshot, kind: str, policy: ScalingPolicy = POLICY) -> tuple[str, str]:
    found = {condition.type: condition for condition in decide(snapshot, policy).conditions}
    return found[kind].status.value, found[kind].reason.name


def test_all_of_them_are_there_in_every_state_and_reconciling_never_goes_with_stalled() -> None:
    for row in state_table.rows():
        found = {condition.type: condition.status for condition in row.decision.conditions}
        assert list(found) == TYPES
        assert (found["Reconciling"], found["Stalled"]) != (Answer.TRUE, Answer.TRUE), row


def test_a_template_that_waits_is_told_from_the_first_look_on() -> None:
    unwritten = a_snapshot(desired=3, record=None, statefulset={"template_is_written": False})
    written = a_snapshot(desired=3, record=None, statefulset={"update_revision": "newer"}, members=LAGGING)
    covered = a_snapshot(desired=3, record=None, statefulset={"update_revision": "newer"})
    told = [(of(one, "Converged"), of(one, "Reconciling")) for one in (unwritten, written, covered)]
    assert told == [
        (("False", "TemplateUnwritten"), ("True", "TemplateUnwritten")),
        (("False", "LearnersCatchingUp"), ("True", "LearnersCatchingUp")),
        (("False", "RolloutInProgress"), ("True", "RestartCovered")),
    ]


def test_a_held_scale_down_is_a_healthy_state() -> None:
    decision = decide(a_snapshot(members=LAGGING), POLICY)
    told = {condition.type: condition.status.value for condition in decision.conditions}
    assert told == {
        "Ready": "True",
        "Reconciling": "False",
        "Stalled": "False",
        "Converged": "False",
        "ScaleDownHeld": "True",
        "ProcessIdentityStable": "True",
        "KafkaReachable": "True",
        "LearnersAvailable": "True",
        "DisruptionAllowed": "True",
        "AutoscalingHealthy": "True",
    }


def test_a_condition_carries_the_particulars() -> None:
    decision = decide(a_snapshot(members=LAGGING), POLICY)
    assert decision.conditions[4] == Condition(
        type="ScaleDownHeld",
        status=Answer.TRUE,
        reason=Reason.LearnersCatchingUp,
        detail="2 tasks wait; 0_5 on ordinal 0 is 500000 records behind",
    )
    assert decision.message == (
        "Copies on the remaining pods are still behind. 2 tasks wait; 0_5 on ordinal 0 is 500000 records behind"
    )


@pytest.mark.parametrize(
    ("kind", "changes", "condition"),
    [
        pytest.param("Ready", {"desired": 5}, ("False", "Growing"), id="pods are being added"),
        pytest.param("Ready", {"desired": 5, "app": {"paused": True}}, ("False", "Paused"), id="they would be"),
        pytest.param(
            "Ready",
            {"workload": {"pods": pods(3, p0=a_pod(0, ready=False))}},
            ("False", "PodsNotReady"),
            id="one is not",
        ),
        pytest.param(
            "Ready",
            {"workload": {"pods": pods(3, p0=a_pod(0, terminating=True))}},
            ("False", "PodsNotReady"),
            id="one is on its way out",
        ),
        pytest.param(
            "Ready",
            {"workload": {"pods": pods(3, p0=a_pod(0, ready=False, fault=CRASH))}},
            ("False", "PodFails"),
            id="one crashes",
        ),
        pytest.param(
            "Ready",
            {
                "workload": {
                    "pods": pods(3, p0=a_pod(0, ready=False, fault=CRASH), p2=a_pod(2, ready=False, fault=FULL))
                }
            },
            ("False", "VolumeFull"),
            id="one found no space, and another crashes",
        ),
        pytest.param("Ready", {"workload": WITHOUT_QUOTA}, ("False", "QuotaExceeded"), id="a quota keeps one away"),
        pytest.param("Reconciling", {"desired": 3, "workload": WITHOUT_QUOTA}, ("True", "QuotaExceeded"), id="a quota"),
        pytest.param("Ready", {"workload": ON_NO_NODE}, ("False", "PodsUnschedulable"), id="one is on no node"),
        pytest.param(
            "Reconciling", {"desired": 3, "workload": ON_NO_NODE}, ("True", "PodsUnschedulable"), id="no node takes it"
        ),
        pytest.param(
            "Ready",
            {"workload": {**WITHOUT_QUOTA, "pods": pods(2, p0=a_pod(0, ready=False, fault=CRASH))}},
            ("False", "PodFails"),
            id="a crash says more than a quota",
        ),
        pytest.param("Ready", {"app": {"fault": "?"}}, ("False", "InvalidSpec"), id="the spec is invalid"),
        pytest.param(
            "Ready", {"statefulset": {"deleting": True}}, ("False", "StatefulSetMissing"), id="it is being deleted"
        ),
        pytest.param(
            "Ready", {"workload": {"statefulset": None}}, ("False", "StatefulSetMissing"), id="nothing is there"
        ),
        pytest.param("Reconciling", {"desired": 5}, ("True", "Growing"), id="a raise"),
        pytest.param("Reconciling", {}, ("True", "Covered"), id="a step"),
        pytest.param("Reconciling", {"record": a_record(step=a_step())}, ("True", "StepClosed"), id="an open step"),
        pytest.param(
            "Reconciling",
            {"desired": 3, "statefulset": {"update_revision": "new"}},
            ("True", "RestartCovered"),
            id="a rollout",
        ),
        pytest.param(
            "Reconciling",
            {"desired": 3, "workload": {"pods": pods(3, p0=a_pod(0, ready=False))}},
            ("True", "PodsNotReady"),
            id="a pod that starts",
        ),
        pytest.param("Reconciling", {"app": {"dry_run": True}}, ("False", "DryRun"), id="a dry run does nothing"),
        pytest.param("Reconciling", {"app": {"paused": True}}, ("False", "Paused"), id="a pause neither"),
        pytest.param("Stalled", {"statefulset": {"is_ours": False}}, ("True", "ForeignStatefulSet"), id="foreign"),
        pytest.param("Stalled", {"members": LAGGING, "record": STUCK}, ("True", "NoProgress"), id="no progress"),
        pytest.param("Stalled", {"members": LAGGING}, ("False", "LearnersCatchingUp"), id="slow is not stalled"),
        pytest.param("Converged", {"desired": 3, "record": None}, ("True", "Converged"), id="all is well"),
        pytest.param(
            "Converged", {"readings": (an_unreadable(),)}, ("Unknown", "BrokersUnreachable"), id="cannot tell"
        ),
        pytest.param("Converged", {"members": LAGGING}, ("False", "LearnersCatchingUp"), id="copies lag"),
        pytest.param("ScaleDownHeld", {"desired": 3, "record": None}, ("False", "Steady"), id="nothing to hold"),
        pytest.param("ScaleDownHeld", {"app": {"held_because": "audit"}}, ("True", "HeldByUser"), id="by the user"),
        pytest.param("ProcessIdentityStable", {}, ("True", "IdentityHolds"), id="identity holds"),
        pytest.param("ProcessIdentityStable", {"readings": ()}, ("Unknown", "BrokersUnreachable"), id="never read"),
        pytest.param(
            "ProcessIdentityStable",
            {"readings": (an_unreadable(),)},
            ("Unknown", "BrokersUnreachable"),
            id="unreadable",
        ),
        pytest.param(
            "ProcessIdentityStable",
            {"workload": {"volumes": (*volumes(2), Volume(ordinal=Ordinal(2), process_id=None))}},
            ("Unknown", "ProcessIdUnrecorded"),
            id="not recorded yet",
        ),
        pytest.param(
            "ProcessIdentityStable",
            {"workload": {"volumes": OTHER_VOLUME}},
            ("False", "ProcessIdMismatch"),
            id="another process ID",
        ),
        pytest.param(
            "ProcessIdentityStable",
            {"readings": (REBALANCING, a_reading(example.members(3), at=30)), "workload": {"volumes": OTHER_VOLUME}},
            ("False", "ProcessIdMismatch"),
            id="another process ID, also while the group rebalances",
        ),
        pytest.param(
            "ProcessIdentityStable",
            {"readings": (REBALANCING,)},
            ("Unknown", "GroupRebalancing"),
            id="no process ID was ever shown",
        ),
        pytest.param(
            "ProcessIdentityStable",
            {"readings": (REBALANCING,), "workload": {"volumes": volumes(2)}},
            ("False", "VolumeClaimMissing"),
            id="a volume is not in view, while the group rebalances",
        ),
        pytest.param(
            "ProcessIdentityStable",
            {"workload": {"volumes": volumes(2)}},
            ("False", "VolumeClaimMissing"),
            id="a volume is not in view",
        ),
        pytest.param(
            "ProcessIdentityStable",
            {"workload": {"volumes": ()}, "statefulset": {"is_ours": False}},
            ("True", "IdentityHolds"),
            id="pods of others need no volume of ours",
        ),
        pytest.param(
            "ProcessIdentityStable",
            {"workload": {"volumes": ()}, "app": {"fault": "spec.replicas must not be negative"}},
            ("Unknown", "InvalidSpec"),
            id="the spec does not say which volumes",
        ),
        pytest.param(
            "ProcessIdentityStable",
            {"app": {"keeps_state": False}, "workload": {"volumes": ()}},
            ("True", "NoStateOnDisk"),
            id="no state on disk",
        ),
        pytest.param("KafkaReachable", {}, ("True", "KafkaAnswers"), id="it answers"),
        pytest.param("KafkaReachable", {"readings": ()}, ("Unknown", "BrokersUnreachable"), id="not asked"),
        pytest.param("KafkaReachable", {"readings": (an_unreadable(),)}, ("False", "BrokersUnreachable"), id="silent"),
        pytest.param(
            "KafkaReachable",
            {"readings": (an_unreadable(reason=Reason.GroupProtocolUnsupported),)},
            ("True", "GroupProtocolUnsupported"),
            id="it answers with something else",
        ),
        pytest.param("LearnersAvailable", {}, ("True", "StandbysDetected"), id="standbys"),
        pytest.param(
            "LearnersAvailable", {"members": example.members(3, standbys=False)}, ("False", "NoLearners"), id="none"
        ),
        pytest.param(
            "LearnersAvailable", {"task_set": TopologyUnknown("?")}, ("Unknown", "TopologyUnknown"), id="no topology"
        ),
        pytest.param(
            "LearnersAvailable", {"readings": (an_unreadable(),)}, ("Unknown", "BrokersUnreachable"), id="no answer"
        ),
        pytest.param("LearnersAvailable", {"readings": ()}, ("Unknown", "BrokersUnreachable"), id="no question"),
        pytest.param(
            "LearnersAvailable",
            {"readings": (a_reading(example.members(1)),)},
            ("Unknown", "LearnersNotDetected"),
            id="a single process",
        ),
    ],
)
def test_each_condition_has_its_status_and_reason(
    kind: str, changes: dict[str, Any], condition: tuple[str, str]
) -> None:
    assert of(a_snapshot(**changes), kind) == condition


def test_a_pod_that_a_hold_lets_go_need_not_become_ready_any_more() -> None:
    """As where load fell while the pods that it had called for still restored."""
    leaving = a_snapshot(members=LAGGING, workload={"pods": pods(3, p2=a_pod(2, ready=False))})
    assert (of(leaving, "Ready"), of(leaving, "Reconciling")) == (
        ("True", "LearnersCatchingUp"),
        ("False", "LearnersCatchingUp"),
    )
    staying = a_snapshot(members=LAGGING, workload={"pods": pods(3, p1=a_pod(1, ready=False))})
    assert (of(staying, "Ready"), of(staying, "Reconciling")) == (("False", "PodsNotReady"), ("True", "PodsNotReady"))


def test_a_pod_that_restores_for_an_hour_is_waited_for_and_not_stalled() -> None:
    restoring = a_snapshot(desired=3, record=None, workload={"pods": pods(3, p2=a_pod(2, ready=False))})
    assert [of(restoring, kind) for kind in ("Ready", "Reconciling", "Stalled")] == [
        ("False", "PodsNotReady"),
        ("True", "PodsNotReady"),
        ("False", "Steady"),
    ]


@pytest.mark.guarantee(3)
def test_a_pod_that_restores_keeps_no_other_from_being_added() -> None:
    restoring = a_snapshot(desired=6, record=None, workload={"pods": pods(3, p2=a_pod(2, ready=False))})
    assert decide(restoring, POLICY).plan[0] == decide(a_snapshot(desired=6, record=None), POLICY).plan[0]


def test_what_was_given_up_is_stalled() -> None:
    policy = ScalingPolicy(on_timeout=OnTimeout.GIVE_UP)
    assert of(a_snapshot(record=a_record(gave_up_at=1)), "Stalled", policy) == ("True", "GaveUp")


def test_a_paused_rollout_is_not_reconciling() -> None:
    snapshot = a_snapshot(desired=3, record=None, statefulset={"update_revision": "new"})
    assert of(snapshot, "Reconciling", ScalingPolicy(rollout=RolloutPolicy.PAUSED)) == ("False", "Steady")


def test_an_application_without_state_needs_no_learners() -> None:
    snapshot = a_snapshot(members=example.stateless_members(), task_set=example.stateless_task_set())
    assert of(snapshot, "LearnersAvailable") == ("True", "NoStatefulTasks")


def test_every_reason_has_a_note_and_a_next_step_that_end_as_sentences_do() -> None:
    ends = {reason.name: (reason.note[-1], reason.next_step[-1]) for reason in Reason}
    assert ends == dict.fromkeys((reason.name for reason in Reason), (".", "."))


def test_reasons_fit_the_form_that_kubernetes_asks_of_a_condition() -> None:
    assert [reason.name for reason in Reason if not (reason.name.isalnum() and reason.name[0].isupper())] == []


def test_a_crash_is_named_wherever_a_user_would_look_for_it() -> None:
    """With nobody in the group and no pod ready, the pods are the cause and not the group."""
    crashing = tuple(a_pod(number, ready=False, fault=CRASH) for number in range(3))
    decision = decide(a_snapshot(desired=3, members=(), workload={"pods": crashing}), POLICY)
    told = "container app of pod 0 ended with exit code 1 (Error, 4 restarts): boom; so it is with 2 more"
    ready, converged = (next(one for one in decision.conditions if one.type == kind) for kind in ("Ready", "Converged"))
    assert ready.detail == f"0 of 3 pods are ready; {told}"
    assert converged.detail.endswith(told)


def test_a_pod_that_a_hold_removes_may_crash() -> None:
    crashing = pods(3, p2=a_pod(2, ready=False, fault=CRASH))
    decision = decide(a_snapshot(desired=2, members=LAGGING, workload={"pods": crashing}), POLICY)
    assert next(one for one in decision.conditions if one.type == "Ready").reason is not Reason.PodFails
