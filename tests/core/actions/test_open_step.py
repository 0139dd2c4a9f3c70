"""The open step: it is carried to its end beside every branch, and nothing else begins before."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from streamapp.core.actions.decision import CompletedStep, Event, GrantReplicas, OpenBudget, WriteHoldRecord
from streamapp.core.decide import decide
from streamapp.core.facts.agent_reports import AgentsSeen
from streamapp.core.facts.containers import MemberKey
from streamapp.core.facts.group import GroupState, Member
from streamapp.core.facts.hold_record import HoldRecord
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TopologyUnknown
from streamapp.core.facts.workload import Budget
from streamapp.core.reasons import Reason
from tests.builders import (
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
    told,
    without_subscriptions,
)
from tests.support import example
from tests.support.raised_standbys import POLICY as ON_DEMAND
from tests.support.raised_standbys import reports
from tests.support.streams import streams_reading

GONE = example.member(3)
GROUP = example.members(3)
UNPROVEN = tuple(example.member(n, active=(2 * n, 2 * n + 1), running=False) for n in range(3))


def step_progress(*, step: Any = None, **changes: Any) -> Snapshot:
    """A step from 4 to 3 is open, the wish is 2; by default everything of pod 3 has gone."""
    workload = {"budget": Budget.CLOSED, **changes.pop("workload", {})}
    return a_snapshot(record=a_record(step=step or a_step()), workload=workload, **changes)


@pytest.mark.parametrize(
    ("snapshot", "reason", "detail"),
    [
        pytest.param(
            step_progress(workload={"pods": pods(4)}), "PodTerminating", "ordinal 3", id="the pod is still there"
        ),
        pytest.param(
            step_progress(workload={"pods": (*pods(3), a_pod(3, uid="other"))}),
            "PodTerminating",
            "ordinal 3",
            id="some pod of that ordinal is",
        ),
        pytest.param(
            step_progress(members=(*GROUP, GONE), container_ends=(an_end(),)),
            "ContainerEnded",
            "member wordcount-3-consumer",
            id="its member is being put out",
        ),
        pytest.param(
            step_progress(members=(*GROUP, GONE)),
            "EvictionMissed",
            "member wordcount-3-consumer",
            id="its end was seen by nobody",
        ),
        pytest.param(
            step_progress(members=(*GROUP, GONE), container_ends=(an_end(finished_at=ago(52)),)),
            "EvictionMissed",
            "member wordcount-3-consumer",
            id="its end was too close to its last sighting",
        ),
        pytest.param(
            step_progress(
                members=(*GROUP, replace(GONE, id="late-thread")),
                workload={"volumes": example.workload(4).volumes},
            ),
            "EvictionMissed",
            "member late-thread",
            id="a thread of it that was never captured",
        ),
        pytest.param(
            step_progress(readings=()), "BrokersUnreachable", "the group has not been read yet", id="never read"
        ),
        pytest.param(
            step_progress(readings=(an_unreadable(),)), "BrokersUnreachable", "timed out", id="brokers are gone"
        ),
        pytest.param(
            step_progress(readings=(a_reading(without_subscriptions(GROUP), state=GroupState.PREPARING_REBALANCE),)),
            "GroupRebalancing",
            "PreparingRebalance",
            id="the group rebalances",
        ),
        pytest.param(step_progress(members=GROUP[:2]), "TaskUnassigned", "task 0_4, 0_5", id="tasks are on their way"),
        pytest.param(
            step_progress(members=UNPROVEN),
            "TasksNotRunning",
            "task 0_0, 0_1, 0_2, 0_3, 0_4 and 1 more",
            id="tasks are only assigned",
        ),
        pytest.param(
            step_progress(readings=(a_reading(GROUP, rebalance=None),)),
            "TasksNotRunning",
            "task 0_0, 0_1, 0_2, 0_3, 0_4 and 1 more",
            id="the join was not watched",
        ),
        pytest.param(step_progress(), "StepClosed", "", id="all is done"),
    ],
)
def test_a_step_waits_for_pod_members_and_tasks_in_that_order(snapshot: Snapshot, reason: str, detail: str) -> None:
    decision = decide(snapshot, POLICY)
    assert (told(decision), decision.detail) == (("CloseStep", reason), detail)


def test_a_step_that_is_done_opens_the_budget_keeps_the_hold_and_is_told() -> None:
    decision = decide(step_progress(), POLICY)
    write = decision.plan[1]
    assert isinstance(write, WriteHoldRecord)
    assert write.record is not None
    assert (decision.plan[0], write.record.hold, write.record.step) == (
        OpenBudget(reason=Reason.StepClosed),
        a_record().hold,
        None,
    )
    assert (decision.events, decision.closed_step) == (
        (Event(Reason.StepClosed, "4 to 3"),),
        CompletedStep(hold_id="h-1", from_replicas=4, to_replicas=3, granted_at=ago(30), took=seconds(30), forced=None),
    )


def test_while_a_step_is_open_the_next_one_does_not_begin() -> None:
    waiting = decide(step_progress(workload={"pods": pods(4)}), POLICY)
    assert (waiting.plan, waiting.closed_step) == ((), None)


@pytest.mark.parametrize(
    ("changes", "verdict", "left"),
    [
        pytest.param({"desired": 5}, ("Grow", "Growing"), False, id="a raise"),
        pytest.param({"desired": 3}, ("CloseStep", "PodTerminating"), False, id="the wish comes up"),
        pytest.param({"app": {"paused": True}}, ("Paused", "Paused"), False, id="a pause"),
        pytest.param({"app": {"deleting": True}}, ("Paused", "BeingDeleted"), False, id="a deletion"),
        pytest.param({"app": {"fault": "broken"}}, ("Stalled", "InvalidSpec"), True, id="an invalid spec"),
        pytest.param({"app": {"dry_run": True}}, ("CloseStep", "PodTerminating"), True, id="a dry run"),
    ],
)
def test_the_step_stays_on_record_beside_every_branch(
    changes: dict[str, Any], verdict: tuple[str, str], left: bool
) -> None:
    decision = decide(step_progress(workload={"pods": pods(4)}, **changes), POLICY)
    written = [step.record for step in decision.plan if isinstance(step, GrantReplicas | WriteHoldRecord)]
    record = written[0] if written else a_record(step=a_step())
    assert isinstance(record, HoldRecord)
    assert (told(decision), record.step, record.hold is not None) == (verdict, a_step(), left)


@pytest.mark.parametrize("app", [{"paused": True}, {"deleting": True}, {"fault": "broken"}, {"dry_run": True}], ids=str)
def test_it_is_closed_beside_every_branch_too(app: dict[str, Any]) -> None:
    decision = decide(step_progress(app=app), POLICY)
    assert (steps(decision), decision.closed_step is not None) == (("OpenBudget", "WriteHoldRecord"), True)


def test_nobody_elses_statefulset_is_touched_not_even_for_that() -> None:
    decision = decide(step_progress(statefulset={"is_ours": False}), POLICY)
    assert (told(decision), decision.plan) == (("Stalled", "ForeignStatefulSet"), ())


def test_after_ten_minutes_the_budget_opens_though_the_step_does_not_close() -> None:
    slow = step_progress(step=a_step(granted_at=ago(601)), workload={"pods": pods(4)})
    decision = decide(slow, POLICY)
    assert (told(decision), decision.detail, decision.plan) == (
        ("CloseStep", "StepSlow"),
        "PodTerminating: ordinal 3",
        (OpenBudget(reason=Reason.StepSlow),),
    )


def test_a_step_found_open_with_an_open_budget_closes_it() -> None:
    decision = decide(step_progress(workload={"pods": pods(4), "budget": Budget.OPEN}), POLICY)
    assert steps(decision) == ("CloseBudget",)


def test_a_budget_found_closed_without_a_step_is_opened() -> None:
    decision = decide(a_snapshot(desired=3, record=None, workload={"budget": Budget.CLOSED}), POLICY)
    assert decision.plan == (OpenBudget(reason=Reason.HoldCancelled),)


def test_the_end_of_the_last_step_to_zero_needs_no_running_task() -> None:
    step = a_step(from_replicas=1, to_replicas=0, observed=(a_capture(0),))
    snapshot = a_snapshot(
        pods=1,
        desired=0,
        record=replace(a_record(), hold=None, step=step),
        statefulset={"replicas": 0},
        workload={"pods": ()},
        readings=(a_reading((), state=GroupState.EMPTY, rebalance=None),),
    )
    assert told(decide(snapshot, ScalingPolicy(allow_zero=True))) == ("CloseStep", "StepClosed")


@pytest.mark.parametrize(
    ("changes", "policy"),
    [
        pytest.param({"members": UNPROVEN}, ScalingPolicy(trigger_rebalance=False), id="no rebalance is triggered"),
        pytest.param(
            {"task_set": TopologyUnknown("?"), "members": UNPROVEN, "step": a_step(reason=Reason.OverriddenByPolicy)},
            POLICY,
            id="the topology was never known",
        ),
    ],
)
def test_where_running_cannot_be_proven_being_assigned_will_do(changes: dict[str, Any], policy: ScalingPolicy) -> None:
    assert told(decide(step_progress(**changes), policy)) == ("CloseStep", "StepClosed")


RUNS_AGAIN = replace(example.pod(2).container, id="containerd://the-next-one")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"container_ends": (an_end(2),)}, "TasksNotRunning", id="it ended after its member was seen"),
        pytest.param(
            {"container_ends": (an_end(2, finished_at=ago(52)),)},
            "StepClosed",
            id="the member may be of the container that runs",
        ),
        pytest.param({}, "StepClosed", id="no end of its container is known"),
        pytest.param(
            {"workload": {"pods": pods(3, p2=a_pod(2, container=not_running()))}},
            "TasksNotRunning",
            id="its pod does not run",
        ),
    ],
)
@pytest.mark.parametrize("has_agents", [True, False])
def test_a_task_that_is_assigned_to_a_member_of_a_container_that_ended_does_not_run(
    changes: dict[str, Any], reason: str, has_agents: bool
) -> None:
    pod = a_pod(2, container=RUNS_AGAIN)
    snapshot = step_progress(
        **{"workload": {"pods": pods(3, p2=pod)}, "observed": (a_capture(2),), **changes},
        readings=tuple(streams_reading(GROUP, seconds) for seconds in (1, 15)),
        agents=reports(GROUP) if has_agents else None,
    )
    decision = decide(snapshot, ON_DEMAND if has_agents else POLICY)
    assert told(decision) == ("CloseStep", reason)
    assert decision.detail == ("" if reason == "StepClosed" else "task 0_4, 0_5")


HEARD = example.agents(GROUP)
HEARD_BEFORE = example.agents((replace(GROUP[0], subscription=UNPROVEN[0].subscription), *GROUP[1:]))
RUN_OF_LATE = replace(HEARD, words={pod: (heard[0], HEARD_BEFORE.words[pod][1]) for pod, heard in HEARD.words.items()})


@pytest.mark.parametrize(
    ("agents", "looked", "reason"),
    [
        pytest.param(HEARD, 4, "StepClosed", id="all ran before the look"),
        pytest.param(RUN_OF_LATE, 4, "TasksRestoring", id="a task has run since the look only"),
        pytest.param(RUN_OF_LATE, 1, "StepClosed", id="the group was read since the task runs"),
    ],
)
def test_a_step_ends_with_a_look_before_which_agents_saw_all_tasks_run(
    agents: AgentsSeen, looked: float, reason: str
) -> None:
    """Else a rebalance can have begun between the look and their words: its end was not seen."""
    snapshot = step_progress(agents=agents, readings=(a_reading(GROUP, at=looked),))
    assert told(decide(snapshot, replace(POLICY, agent=True))) == ("CloseStep", reason)


def test_a_step_that_was_covered_is_not_closed_while_the_tasks_cannot_be_inferred() -> None:
    # Between the two rebalances of a move a task is nowhere; what is assigned does not tell of it.
    snapshot = step_progress(task_set=TopologyUnknown("lines-4 is assigned to nobody"), members=GROUP[:2])
    assert told(decide(snapshot, POLICY)) == ("CloseStep", "TopologyUnknown")


def test_a_group_of_one_member_cannot_be_rebalanced_so_its_step_closes_on_assignment() -> None:
    alone: Member = example.member(0, active=range(6), running=False)
    step = a_step(from_replicas=2, to_replicas=1, observed=(a_capture(1),))
    snapshot = a_snapshot(pods=1, desired=1, members=(alone,), record=replace(a_record(), hold=None, step=step))
    assert told(decide(snapshot, POLICY)) == ("CloseStep", "StepClosed")


def test_what_is_left_of_the_pod_may_be_static_members_of_a_scaled_ordinal() -> None:
    static = replace(GONE, instance_id="wordcount-3")
    step = a_step(observed=(a_capture(3, members=(MemberKey(GONE.id, "wordcount-3"),)),))
    snapshot = step_progress(step=step, members=(*GROUP, static), container_ends=(an_end(),))
    assert (told(decide(snapshot, POLICY)), steps(decide(snapshot, POLICY))) == (
        ("CloseStep", "ContainerEnded"),
        ("Evict",),
    )


def test_a_template_is_not_written_while_a_step_is_open() -> None:
    changed = step_progress(workload={"pods": pods(4)}, statefulset={"template_is_written": False})
    assert decide(changed, POLICY).plan == ()


def test_a_closed_step_took_no_less_than_nothing() -> None:
    early = step_progress(step=a_step(granted_at=ago(-5)))
    closed = decide(early, POLICY).closed_step
    assert closed is not None
    assert closed.took == timedelta(0)


def test_a_pod_that_a_raise_has_spared_is_not_waited_for() -> None:
    spared = step_progress(desired=4, statefulset={"replicas": 4}, workload={"pods": pods(4)}, members=(*GROUP, GONE))
    unseen = step_progress(desired=4, statefulset={"replicas": 4, "generation": 2}, workload={"pods": pods(4)})
    going = step_progress(
        desired=4, statefulset={"replicas": 4}, workload={"pods": (*pods(3), a_pod(3, terminating=True))}
    )
    assert [told(decide(one, POLICY)) for one in (spared, unseen, going)] == [
        ("CloseStep", "StepClosed"),
        ("CloseStep", "PodTerminating"),
        ("CloseStep", "PodTerminating"),
    ]


def test_a_spared_pod_whose_container_has_ended_all_the_same_is_waited_for() -> None:
    again = replace(example.pod(3).container, id="containerd://9", running_since=ago(1))
    restarted = step_progress(
        desired=4,
        statefulset={"replicas": 4},
        workload={"pods": (*pods(3), a_pod(3, container=again))},
        members=(*GROUP, GONE),
        container_ends=(an_end(),),
    )
    assert told(decide(restarted, POLICY)) == ("CloseStep", "ContainerEnded")


def crashed(*, granted_ago: float, **statefulset: Any) -> Snapshot:
    """A step is open, and all pods that stay have crashed since: nobody is in the group."""
    down = tuple(a_pod(number, ready=False, container=not_running(id_=f"c-{number}")) for number in range(3))
    return step_progress(
        step=a_step(granted_at=ago(granted_ago)),
        members=(),
        readings=tuple(a_reading((), at=at, state=GroupState.EMPTY, rebalance=None) for at in (1, 15)),
        task_set=TopologyUnknown("nobody is there"),
        workload={"pods": down, "budget": Budget.OPEN},
        statefulset=statefulset,
    )


def test_a_template_that_mends_a_crashed_application_is_let_in_when_the_step_is_slow() -> None:
    early, late = (
        crashed(granted_ago=300, template_is_written=False),
        crashed(granted_ago=660, template_is_written=False),
    )
    assert "WriteTemplate" not in steps(decide(early, POLICY))
    assert (told(decide(late, POLICY)), steps(decide(late, POLICY))) == (("CloseStep", "StepSlow"), ("WriteTemplate",))


def test_and_the_pods_that_do_not_run_get_it() -> None:
    late = crashed(granted_ago=660, update_revision="r2")
    decision = decide(late, POLICY)
    assert (steps(decision), decision.plan[-1].reason) == (("RestartPod",), Reason.RestartOfIdlePod)
    assert "RestartPod" not in steps(decide(crashed(granted_ago=300, update_revision="r2"), POLICY))


def test_a_pod_that_runs_is_not_restarted_while_a_step_is_slow() -> None:
    late = step_progress(
        step=a_step(granted_at=ago(660)),
        members=UNPROVEN,
        statefulset={"update_revision": "r2"},
        workload={"budget": Budget.OPEN},
    )
    assert "RestartPod" not in steps(decide(late, POLICY))
