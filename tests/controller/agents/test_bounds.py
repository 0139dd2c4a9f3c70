"""Reports bounded by the universe: what a hostile pod says does not fill the operator's memory."""

from dataclasses import replace

from streamapp.agents.answers import AgentReading
from streamapp.controller.agents.access import FEWEST_TASKS, MOST_TASKS_OF_APPLICATION, bounded
from streamapp.core.facts.agent_reports import AgentReport, AgentSilent, LocalTask
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.tasks import TaskFacts, TaskSet, TopologyUnknown
from streamapp.wire.agent_report import Expected, read_report
from tests.wire.agent_reports import ASKED_AT, FULL, POD_UID, body

UNKNOWN = TopologyUnknown("not read yet")


def report(ordinal: int, tasks: int) -> AgentReading:
    expected = Expected(ordinal=Ordinal(1), pod_uid=POD_UID, application_id="wordcount", asked_at=ASKED_AT)
    found = read_report(body(FULL), expected).report
    local = (LocalTask(id=TaskId(0, number), is_active=False, state=None, positions={}) for number in range(tasks))
    return AgentReading(replace(found, ordinal=Ordinal(ordinal), tasks=tuple(local)))


def kinds(readings: list[AgentReading]) -> list[type]:
    return [type(one.reply) for one in readings]


def test_a_report_with_far_more_tasks_than_the_application_is_not_taken() -> None:
    task_set = TaskSet(tuple(TaskFacts(id=TaskId(0, number), stateful=False) for number in range(80)))
    readings = bounded([report(0, 160), report(1, 161)], task_set)
    assert kinds(readings) == [AgentReport, AgentSilent]
    assert isinstance(readings[1].reply, AgentSilent)
    assert readings[1].reply.why == "agent of ordinal 1: its report has 161 tasks, and the application has 80"


def test_an_application_of_few_tasks_may_grow_by_a_new_version() -> None:
    task_set = TaskSet((TaskFacts(id=TaskId(0, 0), stateful=False),))
    assert kinds(bounded([report(0, FEWEST_TASKS)], task_set)) == [AgentReport]


def test_the_reports_of_all_pods_together_are_bounded() -> None:
    taken = MOST_TASKS_OF_APPLICATION // 5_000
    readings = bounded([report(ordinal, 5_000) for ordinal in range(taken + 1)], UNKNOWN)
    assert kinds(readings) == [AgentReport] * taken + [AgentSilent]
