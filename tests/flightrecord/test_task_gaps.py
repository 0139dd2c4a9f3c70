"""Gaps of tasks, as the looks leave them open: by the word of agents, and by that of members."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from streamapp.core.evidence.membership import place_members
from streamapp.core.facts.agent_reports import AgentReport, LocalTask, TaskState, TaskTimes
from streamapp.core.facts.group import GroupDescription, GroupReading, Member
from streamapp.flightrecord.schema import GapLine, SampleSource
from streamapp.flightrecord.task_gaps import TaskGapLog
from tests.support import example
from tests.support.example import NOW, SECOND

HEAD = {"cluster": "c", "namespace": "n", "app": "a", "uid": "u", "recorder": "r"}
START = datetime(2026, 11, 21, 12, tzinfo=UTC)
RUNS, STANDS = TaskState.RUNNING, TaskState.RESTORING


def told(at: float, ordinal: int, incarnation: str = "", **tasks: TaskState) -> AgentReport:
    """What the agent of a pod says of its active tasks."""
    report = example.report(example.member(ordinal))
    local = tuple(
        LocalTask(id=example.task(int(name.removeprefix("t"))), is_active=True, state=state)
        for name, state in tasks.items()
    )
    as_of = START + timedelta(seconds=at)
    return replace(report, as_of=as_of, tasks=local, incarnation=incarnation or report.incarnation)


def heard(log: TaskGapLog, *reports: AgentReport) -> list[tuple[str, int, float, float]]:
    """Task, pod, and the gap at least and at most, in seconds."""
    return [range_of(line) for line in log.by_agents(HEAD, {report.ordinal: report for report in reports})]


def range_of(line: GapLine) -> tuple[str, int, float, float]:
    return line.task, line.ordinal, line.stood_seconds, (line.ts - line.last_ran_at).total_seconds()


def test_a_task_that_another_process_runs_may_have_stood_still_since_it_was_last_seen() -> None:
    log = TaskGapLog()
    assert heard(log, told(0, 0, t0=RUNS, t1=RUNS)) == []
    assert heard(log, told(2, 0, t0=RUNS, t1=RUNS)) == []
    assert heard(log, told(4, 0, t0=RUNS), told(4.5, 1, t1=RUNS)) == [("0_1", 1, 0, 2.5)]
    assert heard(log, told(6, 0, t0=RUNS), told(6.5, 1, t1=RUNS)) == []


def timed(report: AgentReport, started: float | None = None, stopped: float | None = None) -> AgentReport:
    """With the times of task 0, in seconds after the start."""

    def at(seconds: float | None) -> datetime | None:
        return None if seconds is None else START + timedelta(seconds=seconds)

    return replace(report, task_times=(TaskTimes(example.task(0), at(started), at(stopped)),))


def exact(log: TaskGapLog, *reports: AgentReport) -> list[tuple[float | None, float | None]]:
    """When the task stopped and began to run, in seconds after the start."""
    lines = log.by_agents(HEAD, {report.ordinal: report for report in reports})
    return [
        tuple(None if one is None else (one - START).total_seconds() for one in (line.stopped_at, line.started_at))  # type: ignore[misc]
        for line in lines
    ]


def test_agents_that_report_when_the_task_stopped_and_began_give_the_gap_as_a_figure() -> None:
    log = TaskGapLog()
    assert exact(log, timed(told(0, 0, t0=RUNS), started=-3600)) == []
    moved = timed(told(4, 0, t1=RUNS), started=-3600, stopped=2.1), timed(told(4.5, 1, t0=RUNS), started=2.35)
    assert exact(log, *moved) == [(2.1, 2.35)]


def test_a_process_that_died_leaves_no_time_of_its_stop() -> None:
    log = TaskGapLog()
    exact(log, timed(told(0, 0, t0=RUNS), started=-3600, stopped=-3601))
    assert exact(log, timed(told(4.5, 1, t0=RUNS), started=3)) == [(None, 3)]


def test_the_time_of_an_earlier_stop_is_not_that_of_this_gap() -> None:
    log = TaskGapLog()
    exact(log, timed(told(0, 0, t0=RUNS), started=-3600))
    exact(log, timed(told(4, 0), stopped=2), timed(told(4.5, 1, t0=RUNS), started=2.5))
    exact(log, timed(told(60, 1, t0=RUNS), started=2.5))
    assert exact(log, timed(told(64, 2, t0=RUNS), started=63)) == [(None, 63)]


def test_a_task_that_was_seen_restoring_stood_still_for_so_long_at_least() -> None:
    log = TaskGapLog()
    heard(log, told(0, 0, t0=RUNS))
    for at in (2, 4, 6):
        assert heard(log, told(at, 1, t0=STANDS)) == []
    assert heard(log, told(8, 1, t0=RUNS)) == [("0_0", 1, 4, 8)]


def test_a_process_that_was_started_again_had_stopped_even_where_no_look_saw_it() -> None:
    log = TaskGapLog()
    heard(log, told(0, 0, "first", t0=RUNS))
    assert heard(log, told(2, 0, "second", t0=RUNS)) == [("0_0", 0, 0, 2)]


def test_an_old_word_tells_nothing_and_who_took_over_is_not_heard_before_whoever_had_it() -> None:
    log = TaskGapLog()
    heard(log, told(0, 1, t0=RUNS))
    # Asked in one round: pod 0 has it since, pod 1 spoke before that.
    assert heard(log, told(3, 0, t0=RUNS), told(2, 1, t0=RUNS)) == [("0_0", 0, 0, 1)]
    assert heard(log, told(2.5, 1, t0=RUNS)) == []
    assert heard(log, told(4, 0, t0=RUNS)) == []


def test_a_clock_that_is_set_back_makes_no_gap_and_silences_nothing() -> None:
    log = TaskGapLog()
    heard(log, told(0, 0, t0=RUNS))
    assert heard(log, told(-3600, 1, t0=RUNS)) == []
    assert heard(log, told(-3598, 0, t0=RUNS)) == [("0_0", 0, 0, 2)]


def test_members_tell_at_a_join_what_they_run_and_a_look_that_shows_the_same_brings_it_up_to_date() -> None:
    log, workload, task_set = TaskGapLog(), example.workload(), example.task_set()

    def seen(at: timedelta, members: tuple[Member, ...], settled: timedelta) -> list[GapLine]:
        group = example.reading(members, timedelta(0)).group
        assert isinstance(group, GroupDescription)
        rebalance = example.rebalance(members, NOW + settled)
        reading = GroupReading(ended_at=NOW + at, group=group, rebalance=rebalance)
        return list(log.by_group(HEAD, reading, place_members(group, workload), workload, task_set))

    members = example.members(3)
    (first, second, *_), last = members, members[-1]
    assert seen(0 * SECOND, members, 0 * SECOND) == []
    assert seen(30 * SECOND, members, 0 * SECOND) == []
    assert first.assignment is not None
    assert last.assignment is not None
    numbers = {task.partition for task in first.assignment.active | last.assignment.active}
    taken = (example.member(0, active=sorted(numbers)), second)
    found = seen(40 * SECOND, taken, 39 * SECOND)
    assert {line.task for line in found} == {f"0_{task.partition}" for task in last.assignment.active}
    assert {(line.ordinal, line.ts - line.last_ran_at) for line in found} == {(0, 10 * SECOND)}
    assert {line.source for line in found} == {SampleSource.GROUP}
    assert seen(42 * SECOND, taken, 39 * SECOND) == []


def test_a_task_that_was_given_but_not_yet_said_to_run_is_still_away() -> None:
    log, workload, task_set = TaskGapLog(), example.workload(), example.task_set()
    for at, pod, running, wanted in ((0, 0, True, 0), (5, 1, False, 0), (14, 1, True, 1)):
        members = (example.member(pod, active=[0], running=running),)
        group = example.reading(members, timedelta(0)).group
        assert isinstance(group, GroupDescription)
        reading = GroupReading(
            ended_at=NOW + at * SECOND, group=group, rebalance=example.rebalance(members, NOW + at * SECOND)
        )
        found = list(log.by_group(HEAD, reading, place_members(group, workload), workload, task_set))
        assert len(found) == wanted
    assert found[0].ts - found[0].last_ran_at == 14 * SECOND


def begun(lines: list[GapLine]) -> list[tuple[str, float, float, float | None]]:
    """Task, first look, first time seen running, and start, in seconds after the start of the test."""
    assert all(line.began_before for line in lines)
    return [
        (
            line.task,
            (line.last_ran_at - START).total_seconds(),
            (line.ts - START).total_seconds(),
            None if line.started_at is None else (line.started_at - START).total_seconds(),
        )
        for line in lines
    ]


def test_a_task_that_did_not_run_at_the_first_look_of_a_new_leader_has_a_gap_that_began_before() -> None:
    log = TaskGapLog()
    first = timed(told(0, 0, t1=RUNS), started=-3600)
    assert list(log.by_agents(HEAD, {first.ordinal: first})) == []
    found = timed(told(60, 1, t0=RUNS), started=58)
    assert begun(list(log.by_agents(HEAD, {found.ordinal: found}))) == [("0_0", 0, 60, 58)]


def test_a_task_that_began_shortly_before_the_first_look_may_have_stood_while_nobody_looked() -> None:
    log, found = TaskGapLog(), timed(told(0, 1, t0=RUNS), started=-20)
    assert begun(list(log.by_agents(HEAD, {found.ordinal: found}))) == [("0_0", -20, 0, -20)]


def test_an_agent_that_answers_later_than_the_first_shows_no_gap_without_a_time() -> None:
    log = TaskGapLog()
    assert heard(log, told(0, 0, t1=RUNS)) == []
    assert heard(log, told(5, 1, t0=RUNS)) == []
    assert heard(log, told(10, 2, t2=STANDS)) == []
    found = told(30, 2, t2=RUNS)
    assert begun(list(log.by_agents(HEAD, {found.ordinal: found}))) == [("0_2", 0, 30, None)]
