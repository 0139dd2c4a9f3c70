"""Lines of the flight record, kind by kind, where a whole story does not show them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from streamapp.api.validation.parse import parse
from streamapp.core.decide import decide
from streamapp.core.evidence.coverage import Copy, TaskWait
from streamapp.core.facts.agent_reports import TaskState as CoreTaskState
from streamapp.core.facts.group import GroupDescription, GroupReading, GroupState, GroupUnreadable
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.lag import Measured
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import DesiredSample, Snapshot
from streamapp.core.reasons import Reason
from streamapp.flightrecord import lines
from streamapp.flightrecord.changes import FlightLog, Look
from streamapp.flightrecord.schema import (
    MOST_BLOCKERS,
    ConfigLine,
    DecisionLine,
    GroupLine,
    PodLine,
    Record,
    Role,
    SamplesLine,
    SampleSource,
    TaskState,
)
from tests.controller.doubles.bench import a_stream_app
from tests.support import example
from tests.support.example import NOW, SECOND

HEAD = {"cluster": "lab", "namespace": "shop", "app": "orders", "uid": "u", "recorder": "pod_1"}


def written(manager: str, subresource: str = "") -> dict[str, Any]:
    entry = {"manager": manager, "time": "2026-11-21T12:00:00Z", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    return {"metadata": {"generation": 7, "managedFields": [{**entry, "subresource": subresource}]}}


@pytest.mark.parametrize(
    ("resource", "actor", "manager"),
    [
        (written("kube-controller-manager", "scale"), "HPA", "kube-controller-manager"),
        (written("horizontal-pod-autoscaler", "scale"), "HPA", "horizontal-pod-autoscaler"),
        (written("keda-operator", "scale"), "KEDA", "keda-operator"),
        (written("kubectl", "scale"), "USER", "kubectl"),
        (written("kube-controller-manager"), "USER", "kube-controller-manager"),
        ({"metadata": {"generation": 7}}, "UNKNOWN", ""),
        (None, "UNKNOWN", ""),
    ],
)
def test_who_wishes_is_who_wrote_the_field(resource: dict[str, Any] | None, actor: str, manager: str) -> None:
    line = lines.scale_line(HEAD, DesiredSample(NOW, 3), 4, resource)
    assert (line.actor.value, line.manager, line.old_replicas, line.new_replicas) == (actor, manager, 4, 3)
    assert line.generation == (7 if resource else 0)


def look(snapshot: Snapshot, policy: ScalingPolicy | None = None) -> Look:
    policy = policy or ScalingPolicy()
    app = a_stream_app()
    metadata = {"uid": example.UID, "generation": 1, "creationTimestamp": "2026-11-21T11:00:00Z"}
    app["metadata"].update(metadata, resourceVersion="1")
    return Look(
        streamapp=parse(app),
        resource=app,
        pods=(),
        snapshot=snapshot,
        policy=policy,
        decision=decide(snapshot, policy),
    )


def of(records: list[Record], kind: type[Any]) -> list[Any]:
    return [line for line in records if isinstance(line, kind)]


def test_a_pass_that_shows_what_the_last_one_showed_adds_nothing() -> None:
    log, snapshot = FlightLog(HEAD), example.snapshot()
    assert log.lines(look(snapshot))
    assert log.lines(look(snapshot)) == []


def test_of_very_many_blockers_the_furthest_are_named_and_all_are_counted() -> None:
    snapshot = example.snapshot()
    waits = tuple(
        TaskWait(TaskId(0, number), Reason.LearnersCatchingUp, Copy(Ordinal(1), Measured(number)), number)
        for number in range(300)
    )
    nobody = TaskWait(TaskId(1, 0), Reason.NoLearners, None, None)
    decision = replace(decide(snapshot, ScalingPolicy()), waiting_for=(*waits, nobody))
    line = lines.decision_line(HEAD, decision, snapshot)
    assert len(line.blocking) == MOST_BLOCKERS
    assert line.blocking_count == 301
    assert [(one.task, one.lag) for one in line.blocking[:3]] == [("1_0", None), ("0_299", 299), ("0_298", 298)]


def test_each_state_that_the_group_went_through_between_two_passes_is_told() -> None:
    log, snapshot = FlightLog(HEAD), example.snapshot()
    [first] = of(log.lines(look(snapshot)), GroupLine)
    later = snapshot.now + 10 * SECOND
    readings = (
        GroupReading(ended_at=later - SECOND, group=snapshot.readings[0].group, rebalance=None),
        GroupReading(
            ended_at=later - 2 * SECOND, group=GroupDescription(GroupState.PREPARING_REBALANCE), rebalance=None
        ),
        GroupReading(
            ended_at=later - 3 * SECOND, group=GroupUnreadable(Reason.BrokersUnreachable, "no answer"), rebalance=None
        ),
    )
    workload = replace(snapshot.workload, read_at=later)
    found = of(
        log.lines(look(replace(snapshot, now=later, readings=(*readings, *snapshot.readings), workload=workload))),
        GroupLine,
    )
    assert [line.state for line in found] == ["BrokersUnreachable", "PreparingRebalance", "Stable"]
    assert {line.epoch for line in found} == {first.epoch}, "the same members with the same tasks are the same layout"
    assert first.epoch == int(first.ts.timestamp() * 1000)
    assert [len(line.holders) for line in (first, found[-1])] == [3, 3]


def test_agents_are_sampled_by_their_own_word_and_their_copies_are_learners_where_there_are_no_standbys() -> None:
    members = example.members(lag=50_000)
    agents = example.agents(members, is_ours=True, standby_replicas=0)
    snapshot = replace(example.snapshot(), agents=agents)
    [line] = of(FlightLog(HEAD).lines(look(snapshot, ScalingPolicy(agent=True))), SamplesLine)
    assert line.ts == max(one.at for one in line.copies) <= snapshot.now
    assert {one.source for one in line.copies} == {SampleSource.AGENT}
    assert {one.role for one in line.copies} == {Role.ACTIVE, Role.LEARNER}
    learners = [one for one in line.copies if one.role is Role.LEARNER]
    lags = [zip(one.offsets or (), one.end_offsets or (), strict=True) for one in learners]
    assert {(end or 0) - (offset or 0) for pairs in lags for offset, end in pairs} == {50_000}
    actives = [one for one in line.copies if one.role is Role.ACTIVE]
    assert {(one.state, one.offsets) for one in actives} == {(TaskState[CoreTaskState.RUNNING.name], None)}
    assert all(one.interval_seconds < 15 for one in learners)
    assert timedelta(0) <= snapshot.now - learners[0].at < timedelta(seconds=10)
    tasks = {(one.ordinal, task) for one in line.copies for task in one.tasks}
    assert len(tasks) == sum(len(one.tasks) for one in line.copies)
    assert {task for _, task in tasks} == {str(task.id) for task in snapshot.task_set.tasks}  # type: ignore[union-attr]


def test_a_clock_that_is_set_back_silences_nothing() -> None:
    log, snapshot = FlightLog(HEAD), example.snapshot()
    first = log.lines(look(snapshot))
    back = timedelta(hours=1)
    ends = example.ends(NOW - back)
    readings = tuple(
        replace(
            one,
            ended_at=one.ended_at - back,
            group=replace(one.group, members=example.members(2)),
            rebalance=None
            if one.rebalance is None
            else replace(
                one.rebalance,
                began_at=one.rebalance.began_at - back,
                settled_at=one.rebalance.settled_at - back,
                ends=ends,
            ),
        )
        for one in snapshot.readings
        if isinstance(one.group, GroupDescription)
    )
    desired = replace(
        snapshot.app.desired, replicas=2, history=(DesiredSample(NOW - back, 3), DesiredSample(NOW - back, 2))
    )
    again = replace(
        example.snapshot(pods=2),
        now=NOW - back,
        app=replace(snapshot.app, desired=desired),
        readings=readings,
        workload=replace(example.workload(2), read_at=NOW - back),
    )
    found = log.lines(look(again))
    assert {line.kind for line in found} >= {"scale", "group", "samples", "decision"}
    epochs = [line.epoch for line in (*of(first, GroupLine), *of(found, GroupLine))]
    assert epochs == sorted(set(epochs)), "an epoch never falls"


def test_the_limit_of_the_application_is_on_record_beside_that_of_the_streamapp() -> None:
    agents = example.agents(example.members(), recovery_lag=500)
    snapshot = replace(example.snapshot(), agents=agents)
    log, policy = FlightLog(HEAD), ScalingPolicy(agent=True, acceptable_recovery_lag=10_000)
    [line] = of(log.lines(look(snapshot, policy)), ConfigLine)
    assert (line.acceptable_recovery_lag, line.application_recovery_lag) == (10_000, 500)
    # Agents that do not answer for a while take no limit away.
    silent = replace(snapshot, agents=example.agents(example.members(), recovery_lag=None))
    assert [line.application_recovery_lag for line in of(log.lines(look(silent, policy)), ConfigLine)] == [500]


def later(snapshot: Snapshot, by: timedelta) -> Snapshot:
    now = snapshot.now + by
    return replace(snapshot, now=now, workload=replace(snapshot.workload, read_at=now), was_at_rest=True)


def test_each_five_minutes_a_decision_says_that_somebody_still_looks() -> None:
    log, snapshot = FlightLog(HEAD), example.snapshot()
    told = [log.lines(look(later(snapshot, timedelta(minutes=minute)))) for minute in range(11)]
    assert [len(of(lines, DecisionLine)) for lines in told] == [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]
    assert [len(of(lines, GroupLine)) for lines in told] == [1, *[0] * 10]


def test_after_a_time_without_a_look_all_states_are_told_again() -> None:
    log, snapshot = FlightLog(HEAD), example.snapshot()
    kinds = (DecisionLine, PodLine, ConfigLine)
    first = [len(of(log.lines(look(snapshot)), kind)) for kind in kinds[:1]]
    assert first == [1]
    lines = log.lines(look(later(snapshot, timedelta(minutes=20))))
    assert [len(of(lines, kind)) for kind in kinds] == [1, len(snapshot.workload.pods), 1]
