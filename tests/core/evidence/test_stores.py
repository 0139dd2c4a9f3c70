"""Which store of a task is restored from which changelog, since agents tell positions by store."""

from streamapp.core.facts.ids import TopicPartition
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.facts.topology import infer_universe, universe_of
from tests.core.facts.test_topology import TWO, parsed, topics


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
