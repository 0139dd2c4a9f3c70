"""Which store of a task is restored from which changelog, and what contradicts the tasks that are known."""

from dataclasses import replace

import pytest

from streamapp.core.decide import decide
from streamapp.core.facts.agent_reports import AgentReply, AgentSilent, AgentsSeen, LocalTask
from streamapp.core.facts.ids import TopicPartition
from streamapp.core.facts.policy import LearnerSource, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.facts.topology import infer_universe, universe_of
from tests.builders import a_snapshot, told
from tests.core.facts.test_topology import TWO, parsed, topics
from tests.support import example

WITH_AGENTS = ScalingPolicy(agent=True, source=LearnerSource.STANDBYS)


def test_each_task_knows_the_changelog_behind_each_store() -> None:
    written = universe_of(parsed("table"), topics({"users": 1}, {}))
    assert isinstance(written, TaskSet)
    assert [dict(each.stores) for each in written.tasks] == [{"users-store": TopicPartition("users", 0)}]
    inferred = infer_universe(TWO, topics({"in": 2, "other": 1}, {"app-a-changelog": 2, "app-b-c-changelog": 2}))
    assert isinstance(inferred, TaskSet)
    assert dict(inferred.tasks[1].stores) == {
        "a": TopicPartition("app-a-changelog", 1),
        "b-c": TopicPartition("app-b-c-changelog", 1),
    }
    assert dict(inferred.tasks[2].stores) == {}


def with_another_store(seen: AgentsSeen) -> AgentsSeen:
    """The standbys have one more store than has a changelog in view."""
    return replace(seen, words={one: tuple(map(_with_totals, said)) for one, said in seen.words.items()})


def _with_totals(word: AgentReply) -> AgentReply:
    if isinstance(word, AgentSilent) or word.tasks is None:
        return word
    with_totals = (task if task.is_active else _at_seven(task) for task in word.tasks)
    return replace(word, tasks=tuple(with_totals))


def _at_seven(task: LocalTask) -> LocalTask:
    return replace(task, positions={**task.positions, "totals": 7})


@pytest.mark.guarantee(1)
@pytest.mark.parametrize(
    ("snapshot", "why"),
    [
        pytest.param(
            a_snapshot(members=example.members(3, standbys=False), task_set=example.stateless_task_set()),
            "task 0_0 has state by the word of wordcount-0, and no changelog of it is seen",
            id="a member tells of state, and nobody has a copy",
        ),
        pytest.param(
            a_snapshot(members=example.members(3, lag=900_000), task_set=example.stateless_task_set()),
            "task 0_0 has state by the word of wordcount-0, and no changelog of it is seen",
            id="copies are far behind",
        ),
        pytest.param(
            a_snapshot(agents=with_another_store(example.agents(example.members(3)))),
            "task 0_4 has store totals on ordinal 0, and no changelog of it is seen",
            id="an agent tells of another store",
        ),
    ],
)
def test_state_of_which_no_changelog_is_seen_holds(snapshot: Snapshot, why: str) -> None:
    """A broker can list topics as they were, or leave out one that the operator may not describe."""
    policy = WITH_AGENTS if snapshot.agents else ScalingPolicy()
    decision = decide(snapshot, policy)
    assert told(decision) == ("Hold", "TopologyUnknown")
    assert decision.detail.startswith(why)
