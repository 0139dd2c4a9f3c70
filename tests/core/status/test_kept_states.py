"""What lies on the volume of a pod: recorded with its removal, and read when the pod may come back."""

from dataclasses import replace
from datetime import timedelta

from streamapp.core.actions.decision import GrantReplicas, RecordState, Verdict
from streamapp.core.decide import decide
from streamapp.core.evidence.learner_source import limited_evidence
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.workload import KeptState, Workload
from streamapp.core.status.task_table import TaskTable, positions_on, task_table
from streamapp.core.status.volumes import VolumeRow
from tests.builders import a_snapshot
from tests.support import example

LAG = 300
POLICY = ScalingPolicy()


def test_a_removal_records_what_its_pod_leaves() -> None:
    snapshot = a_snapshot()
    decision = decide(snapshot, POLICY)
    assert decision.verdict is Verdict.STEP
    (removal,) = (step for step in decision.plan if isinstance(step, GrantReplicas))
    (recorded,) = (step for step in decision.plan if isinstance(step, RecordState))
    assert decision.plan.index(recorded) > decision.plan.index(removal)
    assert (recorded.ordinal, recorded.state.at, recorded.reason) == (Ordinal(2), snapshot.now, removal.reason)
    assert recorded.state.positions == positions_on(limited_evidence(snapshot, POLICY), [Ordinal(2)])[Ordinal(2)]
    assert recorded.state.positions == dict.fromkeys(map(example.task, (2, 3, 4, 5)), example.END)


def test_a_hold_that_waits_records_nothing() -> None:
    snapshot = example.snapshot(desired=3)
    assert not [step for step in decide(snapshot, POLICY).plan if isinstance(step, RecordState)]


def without_pod_two(kept: KeptState | None, max_idle_time: timedelta | None = None) -> TaskTable:
    """Two pods, and the volume of a third."""
    snapshot = example.snapshot(pods=2, desired=2)
    volume = example.volume(2, kept=kept)
    workload: Workload = replace(snapshot.workload, volumes=(*snapshot.workload.volumes[:2], volume))
    snapshot = replace(snapshot, workload=workload, app=replace(snapshot.app, max_idle_time=max_idle_time))
    table = task_table(snapshot, POLICY)
    assert isinstance(table, TaskTable)
    return table


def test_a_volume_without_a_pod_shows_how_far_its_state_is_behind_now() -> None:
    kept = KeptState(example.NOW - timedelta(hours=1), {example.task(1): example.END - LAG, example.task(4): 0})
    (row,) = without_pod_two(kept).volumes
    assert row == VolumeRow(
        ordinal=Ordinal(2),
        process=example.process_id(2),
        kept_at=kept.at,
        lags={example.task(1): LAG, example.task(4): example.END},
    )


def test_positions_beyond_the_end_and_unknown_tasks_are_left_out() -> None:
    kept = KeptState(example.NOW, {example.task(1): example.END + 1, TaskId(7, 7): 5})
    (row,) = without_pod_two(kept).volumes
    assert row.lags == {}


def test_state_that_will_be_deleted_before_the_start_is_left_out() -> None:
    kept = KeptState(example.NOW - timedelta(hours=3), {example.task(1): example.END})
    assert without_pod_two(kept, max_idle_time=timedelta(hours=2)).volumes == ()
    assert len(without_pod_two(kept, max_idle_time=None).volumes) == 1


def test_a_volume_of_which_nothing_is_recorded_has_no_row() -> None:
    assert without_pod_two(None).volumes == ()
