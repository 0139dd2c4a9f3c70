"""How long a step of a streams group silenced a task is seen by the agents, since brokers do not show what runs."""

from dataclasses import replace

import pytest

from streamapp.controller.apps.memory import Memory
from streamapp.controller.reconcile.report import note_running
from streamapp.core.facts.agent_reports import AgentsSeen
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.status.gaps import Gap, RunningSeen, worst_gap
from tests.builders import NOW, a_snapshot, ago, seconds
from tests.support import example
from tests.support.streams import streams_reading

TIMING = ScalingPolicy(agent=True).timing
MEMBERS = example.members(3)
OWNERS = [frozenset() if one.assignment is None else one.assignment.active for one in MEMBERS]


def a_look(agents: AgentsSeen | None, *, is_streams: bool = True) -> Snapshot:
    reading = streams_reading(MEMBERS, 1) if is_streams else example.two_readings(MEMBERS)[0]
    return a_snapshot(readings=(reading,), agents=agents)


def noted(snapshot: Snapshot) -> list[RunningSeen]:
    memory = Memory("u")
    note_running(memory, snapshot, TIMING)
    return memory.running_samples


def test_each_pass_notes_what_agents_see_run() -> None:
    (seen,) = noted(a_look(example.agents(MEMBERS)))
    assert (seen.at, seen.until, seen.unproven) == (ago(2), ago(2), frozenset())
    assert seen.by_task == {task: pod for pod, tasks in enumerate(OWNERS) for task in tasks}
    before = RunningSeen(NOW - seconds(9), dict.fromkeys(seen.by_task, seen.by_task[example.task(0)]))
    assert worst_gap((before, seen), seen.by_task) == Gap(seconds(0), seconds(7))


@pytest.mark.parametrize(
    "snapshot",
    [a_look(None), a_look(example.agents(MEMBERS), is_streams=False)],
    ids=["no agent", "a classic group, whose members show it"],
)
def test_nothing_is_noted_without_agents_and_of_a_group_that_shows_it_itself(snapshot: Snapshot) -> None:
    assert noted(snapshot) == []


def test_a_pod_whose_agent_is_silent_may_run_the_tasks_that_no_other_pod_runs() -> None:
    heard = example.agents(MEMBERS)
    (seen,) = noted(a_look(replace(heard, words={o: said for o, said in heard.words.items() if o != 2})))
    assert seen.unproven == OWNERS[2]
