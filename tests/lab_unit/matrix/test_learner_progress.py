"""When learners count as caught up and a process as empty: what is unknown never does."""

from datetime import UTC, datetime

import pytest

from lab.matrix.learner_progress import all_at_work, behind, changelogs, is_empty
from streamapp.core.facts.agent_reports import AgentReport, AnnouncementAck, AnnouncementState, LocalTask, TaskState
from streamapp.core.facts.ids import Ordinal, TaskId, TopicPartition

TASK, OTHER = TaskId(0, 1), TaskId(0, 2)
RUNNING, RESTORING = TaskState.RUNNING, TaskState.RESTORING
ENDS = {TopicPartition("app-store-changelog", 1): 1_000, TopicPartition("app-more-changelog", 1): 50}


def active(task: TaskId, state: TaskState | None = RUNNING) -> LocalTask:
    return LocalTask(id=task, is_active=True, state=state)


def learner(task: TaskId, **positions: int) -> LocalTask:
    return LocalTask(id=task, is_active=False, state=None, positions=positions)


def report(*tasks: LocalTask) -> AgentReport:
    return AgentReport(
        ordinal=Ordinal(0),
        pod_uid="process-0",
        incarnation="one",
        sequence=1,
        as_of=datetime(2026, 1, 1, tzinfo=UTC),
        process_id=None,
        tasks=tasks,
        heard=AnnouncementAck(state=AnnouncementState.EMPTY),
    )


UNASKED = AgentReport(
    ordinal=Ordinal(1),
    pod_uid="process-1",
    incarnation="one",
    sequence=1,
    as_of=datetime(2026, 1, 1, tzinfo=UTC),
    process_id=None,
    tasks=None,
    heard=AnnouncementAck(state=AnnouncementState.EMPTY),
)


@pytest.mark.parametrize(
    ("survivors", "lag"),
    [
        ([report(), report(active(OTHER))], None),
        ([report(learner(TASK))], None),
        ([report(learner(TASK, stranger=5))], None),
        ([UNASKED], None),
        ([report(active(TASK, RESTORING))], None),
        ([report(learner(TASK, store=400))], 600),
        ([report(learner(TASK, store=400, more=50))], 600),
        ([report(learner(TASK, store=1_000, more=10))], 40),
        ([report(learner(TASK, store=1_200))], 0),
        ([report(learner(TASK, store=400)), report(learner(TASK, store=990))], 10),
        ([report(active(TASK))], 0),
    ],
    ids=[
        *("no copy", "no position", "end unknown", "not asked", "restoring", "behind", "one store behind"),
        *("the other behind", "end read earlier", "the best of two", "moved already"),
    ],
)
def test_how_far_the_best_copy_of_the_survivors_is_behind(survivors: list[AgentReport], lag: int | None) -> None:
    assert behind(TASK, survivors, ENDS, "app") == lag


def test_changelogs_are_those_of_the_stores_that_were_told() -> None:
    told = [report(learner(TASK, store=1), active(OTHER)), report(learner(OTHER, more=2))]
    assert changelogs(told, "app") == {"app-store-changelog", "app-more-changelog"}


@pytest.mark.parametrize(
    ("reports", "at_work"),
    [
        ([report(active(TASK)), report(active(OTHER))], True),
        ([report(active(TASK), active(OTHER)), report(learner(TASK, store=1))], True),
        ([report(active(TASK))], False),
        ([report(active(TASK)), report(active(OTHER), active(TASK))], False),
        ([report(active(TASK)), report(active(OTHER, RESTORING))], False),
        ([report(active(TASK), active(OTHER)), report(active(TaskId(1, 0)))], False),
    ],
    ids=["all", "with a learner", "one missing", "one twice", "one restoring", "one too many"],
)
def test_all_are_at_work_only_once_each_and_none_restoring(reports: list[AgentReport], at_work: bool) -> None:
    assert all_at_work(reports, [OTHER, TASK]) is at_work


def test_only_a_process_that_said_so_is_empty() -> None:
    assert [is_empty(each) for each in (report(), report(learner(TASK)), UNASKED)] == [True, False, False]
