"""What the resource says about how far things are: convergence, estimates, gaps."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from streamapp.core.decide import decide
from streamapp.core.evidence.coverage import Copy, TaskWait
from streamapp.core.evidence.eta import Estimate, EtaAt, LagSample, NeverAtThisSpeed, NotKnown, when_caught_up
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.facts.agent_reports import AgentsSeen
from streamapp.core.facts.group import FollowUp, GroupReading, GroupState
from streamapp.core.facts.hold_record import Epoch, HoldRecord
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.lag import EndsUnreadable, Measured
from streamapp.core.facts.policy import RolloutPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import Episode, Snapshot
from streamapp.core.facts.tasks import TopologyUnknown
from streamapp.core.gates.convergence import Counts, measure
from streamapp.core.reasons import Reason
from streamapp.core.status.gaps import Gap, GapUnknown, RunningSeen, worst_gap
from tests.builders import (
    NOW,
    POLICY,
    a_capture,
    a_pod,
    a_reading,
    a_snapshot,
    a_step,
    ago,
    an_end,
    an_unreadable,
    pods,
    seconds,
    without_subscriptions,
)
from tests.support import example

GROUP = example.members(3)


def steady(**changes: Any) -> Snapshot:
    return a_snapshot(desired=3, record=None, **changes)


def missing(snapshot: Snapshot, policy: ScalingPolicy = POLICY) -> tuple[str | None, bool]:
    """What is waited for, and whether anybody can tell."""
    seen = measure(Evidence(snapshot, policy))
    return (None if seen.waits_for is None else seen.waits_for.reason.name), seen.can_be_told


def _blind() -> GroupReading:
    reading = a_reading(GROUP)
    assert reading.rebalance is not None
    return replace(reading, rebalance=replace(reading.rebalance, ends=EndsUnreadable("not authorised")))


@pytest.mark.parametrize(
    ("snapshot", "found"),
    [
        pytest.param(steady(), (None, True), id="all is well"),
        pytest.param(steady(readings=()), ("BrokersUnreachable", False), id="never read"),
        pytest.param(steady(readings=(an_unreadable(),)), ("BrokersUnreachable", False), id="brokers are gone"),
        pytest.param(
            steady(
                readings=(
                    a_reading(without_subscriptions(GROUP), state=GroupState.PREPARING_REBALANCE, rebalance=None),
                )
            ),
            ("GroupRebalancing", True),
            id="rebalancing",
        ),
        pytest.param(
            steady(members=(example.member(0, active=(0, 1), follow_up=FollowUp.SCHEDULED), *GROUP[1:])),
            ("FollowUpScheduled", True),
            id="a follow-up is scheduled",
        ),
        pytest.param(steady(task_set=TopologyUnknown("?")), ("TopologyUnknown", False), id="topology unknown"),
        pytest.param(steady(members=GROUP[:2]), ("TaskUnassigned", True), id="a task is nowhere"),
        pytest.param(
            steady(readings=(a_reading(GROUP, rebalance=None),)),
            (None, True),
            id="no join was watched, all is said to run",
        ),
        pytest.param(
            steady(
                readings=(a_reading((example.member(0, active=(0, 1), running=False), *GROUP[1:]), rebalance=None),)
            ),
            ("TasksRestoring", True),
            id="no join was watched, a task restores",
        ),
        pytest.param(steady(readings=(_blind(),)), ("EndOffsetsUnread", False), id="ends were not read"),
        pytest.param(
            steady(members=(example.member(0, active=(0, 1), running=False), *GROUP[1:])),
            ("TasksRestoring", True),
            id="a task restores",
        ),
        pytest.param(steady(members=example.members(3, lag=10_001)), ("LearnersCatchingUp", True), id="copies lag"),
        pytest.param(steady(members=example.members(3, lag=None)), ("LagUnknown", False), id="copies unknown"),
        pytest.param(a_snapshot(desired=2), ("ReplicasPending", True), id="less is wished for"),
        pytest.param(a_snapshot(desired=5), ("ReplicasPending", True), id="more is wished for"),
        pytest.param(
            steady(workload={"pods": pods(3, p1=a_pod(1, ready=False))}),
            ("PodsNotReady", True),
            id="a pod is not ready",
        ),
        pytest.param(steady(workload={"pods": pods(4)}), ("PodsNotReady", True), id="a pod too many"),
        pytest.param(steady(workload={"statefulset": None}), ("StatefulSetMissing", True), id="no StatefulSet"),
        pytest.param(
            steady(statefulset={"template_is_written": False}),
            ("TemplateUnwritten", True),
            id="a template is not written yet",
        ),
        pytest.param(
            steady(statefulset={"update_revision": "newer"}), ("RolloutInProgress", True), id="an older template"
        ),
        pytest.param(
            steady(statefulset={"generation": 7}), ("StatefulSetUnobserved", True), id="a write was not observed yet"
        ),
    ],
)
def test_converged_is_the_last_of_several_things(snapshot: Snapshot, found: tuple[str | None, bool]) -> None:
    assert missing(snapshot) == found


ELSEWHERE = (replace(GROUP[0], client_host="10.9.9.9"), *GROUP[1:])
OF_ANOTHER_RUN = a_capture(0, container_id="containerd://former")
UNWATCHED = a_reading(GROUP, rebalance=None)


@pytest.mark.parametrize(
    ("snapshot", "found"),
    [
        pytest.param(
            steady(readings=(a_reading(ELSEWHERE, rebalance=None),)), "TasksRestoring", id="it has another address"
        ),
        pytest.param(
            steady(readings=(UNWATCHED,), observed=(OF_ANOTHER_RUN,)), "TasksRestoring", id="it was seen elsewhere"
        ),
        pytest.param(
            a_snapshot(
                desired=3,
                record=HoldRecord(epoch=Epoch(lease=0, counter=1), step=a_step(observed=(OF_ANOTHER_RUN,))),
                readings=(UNWATCHED,),
            ),
            "TasksRestoring",
            id="a step has taken its container",
        ),
        pytest.param(
            steady(readings=(UNWATCHED,), observed=(replace(OF_ANOTHER_RUN, is_confirmed=False),)),
            None,
            id="one read of the pods alone has it elsewhere",
        ),
        pytest.param(
            steady(readings=(a_reading([replace(one, client_host="10.9.9.9") for one in GROUP], rebalance=None),)),
            None,
            id="all addresses are translated",
        ),
        pytest.param(steady(members=ELSEWHERE), None, id="it has joined since the pod runs"),
    ],
)
def test_a_member_of_a_pods_former_run_runs_nothing(snapshot: Snapshot, found: str | None) -> None:
    assert missing(snapshot) == (found, True)


RESTORED = (example.member(0, active=(0, 1), standby=(2, 3), running=False), *GROUP[1:])
HEARD, HEARD_BEFORE = example.agents(GROUP), example.agents(RESTORED)
RUN_OF_LATE = replace(HEARD, words={pod: (heard[0], HEARD_BEFORE.words[pod][1]) for pod, heard in HEARD.words.items()})


@pytest.mark.parametrize(
    ("agents", "changes", "found"),
    [
        pytest.param(HEARD, {}, None, id="all ran before the look"),
        pytest.param(RUN_OF_LATE, {}, "TasksRestoring", id="a task has run since the look only"),
        pytest.param(RUN_OF_LATE, {"was_at_rest": True}, None, id="nothing was done since it was said"),
        pytest.param(
            RUN_OF_LATE, {"readings": (a_reading(GROUP, at=1),)}, None, id="the group was read since the task runs"
        ),
    ],
)
def test_agents_saw_all_tasks_run_as_the_group_was_read(
    agents: AgentsSeen, changes: dict[str, Any], found: str | None
) -> None:
    snapshot = replace(steady(agents=agents, readings=(a_reading(GROUP, at=4),)), **changes)
    assert missing(snapshot, replace(POLICY, agent=True)) == (found, True)


LONG_ASKED = replace(a_reading(GROUP), asked_at=ago(11))


@pytest.mark.parametrize(
    ("snapshot", "found"),
    [
        pytest.param(steady(readings=(LONG_ASKED,)), ("FactsStale", False), id="the group was asked long ago"),
        pytest.param(steady(readings=(a_reading(GROUP, at=-5),)), ("FactsStale", False), id="the clock was set back"),
        pytest.param(steady(workload={"read_at": ago(11)}), ("FactsStale", False), id="the pods were read long ago"),
        pytest.param(steady(readings=(LONG_ASKED,), was_at_rest=True), (None, True), id="nothing was done since"),
        pytest.param(
            a_snapshot(desired=5, readings=(LONG_ASKED,)), ("ReplicasPending", True), id="something better is known"
        ),
        pytest.param(
            steady(readings=(replace(a_reading(GROUP, rebalance=None), asked_at=ago(11)),)),
            ("FactsStale", False),
            id="no join was watched",
        ),
    ],
)
def test_the_word_rests_on_a_fresh_look_unless_nothing_was_done_since_it_was_said(
    snapshot: Snapshot, found: tuple[str | None, bool]
) -> None:
    assert missing(snapshot) == found


def test_a_member_without_a_pod_may_be_of_one_that_has_just_gone() -> None:
    """Without claims nothing but the pod told whose it is: its tasks are said to run, and a rebalance is due."""
    gone = replace(example.member(3, standby=(0,)), client_host="10.9.9.9", client_id="?")
    assert missing(steady(members=(*GROUP, gone))) == ("ForeignMember", True)


def test_the_group_is_read_again_at_once_where_only_a_fresh_look_is_missing() -> None:
    old, fresh = decide(steady(readings=(LONG_ASKED,)), POLICY), decide(steady(), POLICY)
    assert (old.needs_fresh_group, old.waits_for_news) == (True, False)
    assert (fresh.needs_fresh_group, fresh.waits_for_news) == (False, True)


@pytest.mark.parametrize(
    ("snapshot", "detail"),
    [
        (a_snapshot(desired=2), "desired 2, current 3"),
        (steady(workload={"pods": pods(4)}), "current 3, 4 exist, 4 are ready"),
        (steady(workload={"pods": pods(3, p1=a_pod(1, ready=False))}), "current 3, 3 exist, 2 are ready"),
    ],
    ids=["less is wished for", "a pod too many", "a pod is not ready"],
)
def test_pods_that_are_missing_are_told_in_figures(snapshot: Snapshot, detail: str) -> None:
    waits_for = measure(Evidence(snapshot, POLICY)).waits_for
    assert waits_for is not None
    assert waits_for.detail == detail


def test_a_template_that_its_user_holds_back_is_not_waited_for() -> None:
    paused = replace(POLICY, rollout=RolloutPolicy.PAUSED)
    for statefulset in ({"template_is_written": False}, {"update_revision": "newer"}):
        assert measure(Evidence(steady(statefulset=statefulset), paused)).waits_for is None


def test_a_template_that_waits_leaves_the_group_settled() -> None:
    """Nobody polls faster for it: the group does not move before a pod restarts."""
    settled = [
        (found.is_converged, found.is_settled)
        for found in (
            measure(Evidence(steady(statefulset={"update_revision": "newer"}), POLICY)),
            measure(Evidence(steady(members=example.members(3, lag=10_001)), POLICY)),
        )
    ]
    assert settled == [(False, True), (False, False)]


def test_what_runs_and_what_is_caught_up_is_counted() -> None:
    lagging = (*GROUP[:2], example.member(2, active=(4, 5), standby=(2, 3), lag=60_000))
    seen = measure(Evidence(steady(members=lagging), POLICY))
    slow = [
        TaskWait(
            task=TaskId(0, task),
            reason=Reason.LearnersCatchingUp,
            best=Copy(Ordinal(2), Measured(60_000)),
            records_to_go=50_000,
        )
        for task in (2, 3)
    ]
    assert (seen.counts, seen.remaining_lag, seen.slowest) == (
        Counts(tasks=6, running=6, learners=6, caught_up=4),
        100_000,
        tuple(slow),
    )


@pytest.mark.parametrize(
    ("before", "lag", "progress", "episode"),
    [
        pytest.param(None, 110_000, 0.0, Episode(began_at=NOW, lag_at_start=600_000, least_lag=600_000), id="begins"),
        pytest.param(
            Episode(began_at=ago(60), lag_at_start=1_200_000, least_lag=900_000),
            110_000,
            0.5,
            Episode(began_at=ago(60), lag_at_start=1_200_000, least_lag=600_000, improved_at=NOW),
            id="goes on",
        ),
        pytest.param(
            Episode(began_at=ago(60), lag_at_start=1_200_000, least_lag=300_000),
            110_000,
            0.75,
            Episode(began_at=ago(60), lag_at_start=1_200_000, least_lag=300_000),
            id="never falls behind its best",
        ),
        pytest.param(
            Episode(began_at=ago(60), lag_at_start=6_000, least_lag=0),
            110_000,
            0.0,
            Episode(began_at=ago(60), lag_at_start=600_000, least_lag=600_000, lowest=0),
            id="but has more to do than it seemed at first",
        ),
        pytest.param(
            Episode(began_at=ago(60), lag_at_start=900_000, least_lag=900_000, lowest=5_000),
            110_000,
            1 - 600_000 / 900_000,
            Episode(began_at=ago(60), lag_at_start=900_000, least_lag=600_000, lowest=5_000),
            id="that it falls behind by less is no improvement",
        ),
        pytest.param(
            Episode(began_at=ago(60), lag_at_start=900_000, least_lag=900_000, lowest=5_000, layout_since=ago(90)),
            110_000,
            1 - 600_000 / 900_000,
            Episode(began_at=ago(60), lag_at_start=900_000, least_lag=600_000, improved_at=NOW),
            id="but is one after the tasks moved",
        ),
        pytest.param(Episode(began_at=ago(60), lag_at_start=1_200_000, least_lag=300_000), 0, 1.0, None, id="ends"),
    ],
)
def test_progress_is_the_best_so_far(
    before: Episode | None, lag: int, progress: float, episode: Episode | None
) -> None:
    seen = measure(Evidence(steady(members=example.members(3, lag=lag), episode=before), POLICY))
    assert (seen.progress, seen.episode) == (progress, episode)


def test_what_nobody_can_see_leaves_progress_as_it_was() -> None:
    before = Episode(began_at=ago(60), lag_at_start=100, least_lag=25)
    seen = measure(Evidence(steady(readings=(an_unreadable(),), episode=before), POLICY))
    assert (seen.progress, seen.remaining_lag, seen.counts, seen.episode) == (0.75, None, None, before)


def _wait(task: int, left: int | None, ordinal: int | None = 0) -> TaskWait:
    best = None if ordinal is None else Copy(Ordinal(ordinal), Measured(left or 0))
    return TaskWait(task=TaskId(0, task), reason=Reason.LearnersCatchingUp, best=best, records_to_go=left)


@pytest.mark.parametrize(
    ("before", "after", "estimate"),
    [
        pytest.param([_wait(0, 300)], [_wait(0, 100)], EtaAt(NOW + seconds(5)), id="at the speed between the two"),
        pytest.param(
            [_wait(0, 300), _wait(1, 300)],
            [_wait(0, 100), _wait(1, 200)],
            EtaAt(NOW + seconds(20)),
            id="the slowest counts",
        ),
        pytest.param([_wait(0, 300)], [], EtaAt(NOW), id="nothing is left"),
        pytest.param([_wait(0, 300)], [_wait(0, 0)], EtaAt(NOW), id="a copy has just arrived"),
        pytest.param([_wait(0, 300)], [_wait(0, 300)], NeverAtThisSpeed(), id="it stands still"),
        pytest.param([_wait(0, 300)], [_wait(0, 301)], NeverAtThisSpeed(), id="it falls back"),
        pytest.param(
            [_wait(0, 10**12)], [_wait(0, 10**12 - 1)], NeverAtThisSpeed(), id="it would take longer than a year"
        ),
        pytest.param([], [_wait(0, 100)], NotKnown(), id="it was not waited for before"),
        pytest.param([_wait(0, 300)], [_wait(0, None)], NotKnown(), id="its lag is unknown"),
        pytest.param([_wait(0, 300, 1)], [_wait(0, 100, 2)], NotKnown(), id="it is another copy"),
    ],
)
def test_when_the_slowest_will_be_caught_up(before: list[TaskWait], after: list[TaskWait], estimate: Estimate) -> None:
    assert when_caught_up(LagSample(ago(10), before), LagSample(NOW, after)) == estimate


def test_two_looks_at_the_same_time_show_no_speed() -> None:
    look = LagSample(NOW, [_wait(0, 100)])
    assert when_caught_up(look, look) == NotKnown()


def test_a_scale_up_tells_how_long_still() -> None:
    later, earlier = a_reading(example.members(3, lag=60_000), at=1), a_reading(example.members(3, lag=90_000), at=16)
    # 30,000 records in 15 s, 50,000 to go
    assert measure(Evidence(steady(readings=(later, earlier)), POLICY)).eta == EtaAt(ago(3) + seconds(25))


def _looks(*seen: tuple[float, int | None]) -> list[RunningSeen]:
    """Where the one task was, at so many seconds; None: nowhere."""
    task = TaskId(0, 0)
    return [RunningSeen(NOW + seconds(at), {} if on is None else {task: Ordinal(on)}) for at, on in seen]


@pytest.mark.parametrize(
    ("looks", "gap"),
    [
        pytest.param(_looks((0, 1), (9, 1)), (0, 0), id="it never moved"),
        pytest.param(_looks((0, 1), (2, 2)), (0, 2), id="it moved between two looks"),
        pytest.param(_looks((0, 1), (1, None), (4, None), (6, 2)), (3, 6), id="it was seen to be away"),
        pytest.param(_looks((0, 1), (1, None), (2, 1)), (0, 2), id="it was seen away once"),
        pytest.param(_looks((0, 1), (2, 2), (3, 2), (8, 3)), (0, 5), id="the longest of two moves"),
        pytest.param(_looks((6, 2), (0, 1), (4, None), (1, None)), (3, 6), id="looks in any order"),
    ],
)
def test_the_gap_of_a_step_is_a_range(looks: list[RunningSeen], gap: tuple[float, float]) -> None:
    found = worst_gap(looks, [TaskId(0, 0)])
    assert found == Gap(seconds(gap[0]), seconds(gap[1]))
    assert isinstance(found, Gap)
    assert found.error == timedelta(seconds=gap[1] - gap[0])


def test_a_task_that_was_given_to_somebody_may_have_run_all_the_time() -> None:
    task = TaskId(0, 0)
    given = [RunningSeen(NOW + seconds(at), {}, frozenset({task})) for at in (4, 9)]
    looks = [*_looks((0, 1), (1, None), (3, None)), *given, *_looks((10, None), (11, None), (12, 2))]
    assert worst_gap(looks, [task]) == Gap(seconds(2), seconds(12))


@pytest.mark.parametrize(
    "looks",
    [_looks(), _looks((0, None)), _looks((0, 1), (1, None)), _looks((0, None), (1, 1))],
    ids=["no look", "never seen", "not back yet", "away from the first look on"],
)
def test_a_gap_without_both_ends_is_unknown(looks: list[RunningSeen]) -> None:
    assert worst_gap(looks, [TaskId(0, 0)]) == GapUnknown(TaskId(0, 0))


def test_the_worst_task_gives_the_gap() -> None:
    first, second = TaskId(0, 0), TaskId(0, 1)
    looks = [
        RunningSeen(NOW, {first: Ordinal(1), second: Ordinal(1)}),
        RunningSeen(NOW + seconds(3), {first: Ordinal(1)}),
        RunningSeen(NOW + seconds(4), {first: Ordinal(0), second: Ordinal(0)}),
    ]
    assert worst_gap(looks, [first, second]) == Gap(seconds(0), seconds(4))


def test_a_task_whose_pod_is_gone_does_not_run_however_long_its_member_is_listed() -> None:
    # Two are granted, wished for and there; the third has ended, and nobody has put its member out yet.
    snapshot = a_snapshot(desired=2, record=None, statefulset={"replicas": 2}, workload={"pods": pods(2)})
    assert missing(snapshot) == ("TasksRestoring", True)
    counts = measure(Evidence(snapshot, POLICY)).counts
    assert counts is not None
    assert (counts.tasks, counts.running) == (6, 4)


@pytest.mark.parametrize(("finished_at", "found"), [(ago(5), ("TasksRestoring", True)), (ago(52), (None, True))])
def test_a_task_does_not_run_with_a_member_that_was_seen_in_a_container_before_its_end(
    finished_at: datetime, found: tuple[str | None, bool]
) -> None:
    again = a_pod(2, container=replace(example.pod(2).container, id="containerd://the-next-one"))
    ended = {"observed": (a_capture(2),), "container_ends": (an_end(2, finished_at=finished_at),)}
    joined_since = (a_reading(GROUP), a_reading(GROUP, at=15))
    assert missing(steady(readings=joined_since, workload={"pods": pods(3, p2=again)}, **ended)) == found
    unwatched = (a_reading(GROUP, rebalance=None),)
    still = steady(readings=unwatched, workload={"pods": pods(3, p2=again)}, **ended)
    assert missing(still) == ("TasksRestoring", True)


def test_a_pod_that_is_ready_but_has_not_joined_is_still_missing() -> None:
    # The others run everything, and nothing is scheduled: so it is in the first seconds of every scale-up.
    snapshot = a_snapshot(desired=4, record=None, statefulset={"replicas": 4}, workload={"pods": pods(4)})
    assert missing(snapshot) == ("PodNotInGroup", True)
    joined = (*GROUP, example.member(3))
    assert missing(replace(snapshot, readings=example.two_readings(joined))) == (None, True)


def test_a_single_pod_is_converged_without_any_copy() -> None:
    assert missing(a_snapshot(pods=1, desired=1, record=None)) == (None, True)


def test_a_single_member_that_has_not_said_that_its_tasks_run_cannot_be_asked_again() -> None:
    alone = a_snapshot(pods=1, desired=1, record=None, members=(example.member(0, active=range(6), running=False),))
    assert missing(alone) == ("RebalanceTriggerImpossible", False)


def test_what_was_not_watched_is_not_counted() -> None:
    seen = measure(Evidence(steady(readings=(a_reading(GROUP, rebalance=None),)), POLICY))
    assert (seen.counts, seen.remaining_lag, seen.progress) == (None, None, 1.0)


def test_the_restoring_task_counts_with_all_it_may_have_to_read() -> None:
    restoring = (example.member(0, active=(0,), standby=(4, 5), running=False), *GROUP[1:])
    first = replace(restoring[0], id="wordcount-0-consumer")
    second = replace(example.member(0, active=(1,)), id="wordcount-0-second")
    seen = measure(Evidence(steady(members=(first, second, *GROUP[1:])), POLICY))
    assert (seen.remaining_lag, [wait.reason for wait in seen.slowest]) == (example.END, [Reason.TasksRestoring])
