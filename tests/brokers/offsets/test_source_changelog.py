"""A source topic that serves as changelog, on a real broker: a copy is caught up at the group's committed offset.

With `topology.optimization=all` a table has no changelog of its own. What lies in its topic behind the committed offset
is not restored, so it must not count as lag.
"""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from streamapp.core.facts.ids import TaskId
from streamapp.core.facts.ids import TopicPartition as Partition
from streamapp.core.facts.lag import EndOffsets, Measured, task_lag
from streamapp.core.facts.tasks import TaskFacts, TaskSet
from tests.brokers.access import asked, scram
from tests.brokers.members import APPLICATION, SOURCE
from tests.brokers.secured import ANSWER_SECONDS, Cluster

pytestmark = pytest.mark.brokers

WRITTEN, COMMITTED = 40, 25
NEVER_COMMITTED = 5
"""A partition."""


@pytest.fixture
def written(cluster: Cluster) -> Iterator[Cluster]:
    """Give a broker with records in each partition of the source topic, most of them behind the committed offset.

    The group is deleted at the end: other tests expect that there is none.
    """
    producer = Producer({"bootstrap.servers": cluster.at("ADMIN"), "log_level": 0})
    for partition in range(6):
        for _ in range(WRITTEN):
            producer.produce(SOURCE, b"value", key=b"key", partition=partition)
    assert producer.flush(ANSWER_SECONDS) == 0
    consumer = Consumer({"bootstrap.servers": cluster.at("ADMIN"), "group.id": APPLICATION, "log_level": 0})
    offsets = [TopicPartition(SOURCE, number, COMMITTED) for number in range(NEVER_COMMITTED)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()
    yield cluster
    (deleted,) = cluster.admin.delete_consumer_groups([APPLICATION]).values()
    deleted.result(ANSWER_SECONDS)


def table(number: int) -> TaskFacts:
    """Give a task with one store, whose changelog is the source topic."""
    source = Partition(SOURCE, number)
    return TaskFacts(id=TaskId(0, number), stateful=True, changelogs=(source,), source_partitions=(source,))


def test_a_copy_is_caught_up_at_the_committed_offset_however_much_lies_behind_it(written: Cluster) -> None:
    task_set = TaskSet(tuple(table(number) for number in range(6)))
    ends = asked(written.at("SCRAM"), scram(written), lambda group: group.ends(task_set))
    assert isinstance(ends, EndOffsets)
    empty = {task.id.partition: task_lag(task, 0, ends) for task in task_set.tasks}
    restored = {task.id.partition: task_lag(task, COMMITTED, ends) for task in task_set.tasks[:NEVER_COMMITTED]}
    assert empty == {number: Measured(0 if number == NEVER_COMMITTED else COMMITTED) for number in range(6)}
    assert restored == dict.fromkeys(range(NEVER_COMMITTED), Measured(0))
    assert min(end.end for end in ends.partitions.values()) >= WRITTEN
