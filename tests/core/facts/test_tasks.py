"""Identities and the task universe."""

from dataclasses import replace

import pytest

from streamapp.core.facts.ids import Ordinal, ProcessId, TaskId, TopicPartition
from streamapp.core.facts.seeding import seeded_process_id
from streamapp.core.facts.tasks import TaskFacts, TaskSet

STORE, SOURCE = TopicPartition("app-s-changelog", 0), TopicPartition("orders", 0)


def test_the_order_in_which_tasks_and_partitions_are_named_means_nothing() -> None:
    one = TaskFacts(id=TaskId(0, 0), stateful=True, changelogs=(STORE, SOURCE), source_partitions=(SOURCE,))
    same = TaskFacts(id=TaskId(0, 0), stateful=True, changelogs=(SOURCE, STORE), source_partitions=(SOURCE,))
    other = TaskFacts(id=TaskId(0, 10), stateful=False)
    assert TaskSet((one, other)) == TaskSet((other, same))


def test_a_changelog_that_is_also_a_source_is_told_apart() -> None:
    task = TaskFacts(id=TaskId(0, 0), stateful=True, changelogs=(STORE, SOURCE), source_partitions=(SOURCE,))
    assert task.source_changelogs == (SOURCE,)


@pytest.mark.parametrize(
    ("stateful", "changelogs"),
    [(True, ()), (False, (STORE,)), (True, (STORE, STORE))],
    ids=["stateful without a changelog", "stateless with one", "one named twice"],
)
def test_a_task_whose_lag_would_come_out_wrong_is_refused(
    stateful: bool, changelogs: tuple[TopicPartition, ...]
) -> None:
    with pytest.raises(ValueError, match="task 0_0"):
        TaskFacts(id=TaskId(0, 0), stateful=stateful, changelogs=changelogs)


def test_a_universe_without_tasks_is_refused_since_everything_would_be_covered() -> None:
    with pytest.raises(ValueError, match="at least one task"):
        TaskSet(())


def test_a_task_described_twice_is_refused() -> None:
    task = TaskFacts(id=TaskId(0, 0), stateful=False)
    with pytest.raises(ValueError, match="described twice"):
        TaskSet((task, task))


def test_seeded_process_ids_are_ordered_by_ordinal_as_java_orders_them() -> None:
    ordinals = [Ordinal(number) for number in (4096, 0, 2**31 - 1, 9, 255, 10, 1)]
    by_process = sorted(ordinals, key=lambda ordinal: seeded_process_id("5c1f0a52", ordinal))
    assert by_process == sorted(ordinals)


def test_a_seeded_process_id_has_the_form_that_is_documented() -> None:
    # sha256("5c1f0a52") begins with b45cbf4c0cdd151
    assert seeded_process_id("5c1f0a52", Ordinal(26)) == ProcessId.parse("0000001a-0000-4000-8b45-cbf4c0cdd151")


def test_two_applications_never_share_a_process_id() -> None:
    seeded = {seeded_process_id(uid, Ordinal(number)) for uid in ("blue", "green") for number in range(50)}
    assert len(seeded) == 100


@pytest.mark.parametrize("ordinal", [-1, 2**31])
def test_an_ordinal_that_would_change_the_order_is_refused(ordinal: int) -> None:
    with pytest.raises(ValueError, match="a process ID holds"):
        seeded_process_id("5c1f0a52", Ordinal(ordinal))


def test_positions_by_store_become_positions_by_changelog_or_nothing() -> None:
    other = TopicPartition("other", 0)
    task = TaskFacts(
        id=TaskId(0, 0),
        stateful=True,
        changelogs=(STORE, other),
        stores={"counts": STORE, "others": other, "same": other},
    )
    assert task.by_changelog({"counts": 5, "others": 7, "same": 6}) == {STORE: 5, other: 6}
    assert task.by_changelog({"counts": 5, "others": 7}) is None
    assert replace(task, stores={"counts": STORE}).by_changelog({"counts": 5}) is None
    assert replace(task, stores={}).by_changelog({"counts": 5, "others": 7}) is None
