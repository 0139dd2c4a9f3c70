"""When the tails of changelogs are looked at, and what becomes of what was found."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from streamapp.core.evidence import changelog_tails
from streamapp.core.evidence.changelog_tails import MOST_AT_ONCE, known_from, with_tails, worth_a_look
from streamapp.core.facts.group import GroupDescription, GroupState, Member
from streamapp.core.facts.ids import TopicPartition
from streamapp.core.facts.lag import EndOffsets, PartitionEnd, Unknown
from streamapp.core.facts.tasks import TaskFacts, TaskSet
from tests.builders import NOW
from tests.support import example

LIMIT = 100


def group(*members: Member) -> GroupDescription:
    return GroupDescription(GroupState.STABLE, members)


def of_lag(lag: int | None) -> GroupDescription:
    """Pod 0 runs 0_0 and has a standby of 0_3; pod 1 the other way round."""
    return group(example.member(0, active=(0,), standby=(3,), lag=lag), example.member(1, active=(3,), standby=(0,)))


def changelogs(*tasks: int) -> set[TopicPartition]:
    return {
        partition for task in example.task_set().tasks if task.id.partition in tasks for partition in task.changelogs
    }


def wanted(
    before: GroupDescription, now: GroupDescription, ends: EndOffsets | None = None, limit: int = LIMIT
) -> set[TopicPartition]:
    return set(worth_a_look(example.task_set(), before, now, ends or example.ends(NOW), limit))


@pytest.mark.parametrize(
    ("before", "now", "limit", "tasks"),
    [
        pytest.param(500, 500, LIMIT, (3,), id="behind, and where it was"),
        pytest.param(501, 500, LIMIT, (), id="behind, and coming nearer"),
        pytest.param(LIMIT, LIMIT, LIMIT, (), id="within the limit"),
        pytest.param(LIMIT + 1, LIMIT + 1, LIMIT, (3,), id="one record beyond the limit"),
        pytest.param(1, 1, 0, (3,), id="a marker, where the limit is nothing"),
        pytest.param(None, None, LIMIT, (), id="offsets unknown"),
        pytest.param(None, 500, LIMIT, (), id="offsets unknown before"),
    ],
)
def test_a_copy_beyond_the_limit_that_stands_still(
    before: int | None, now: int | None, limit: int, tasks: tuple[int, ...]
) -> None:
    assert wanted(of_lag(before), of_lag(now), limit=limit) == changelogs(*tasks)


def test_what_is_written_meanwhile_does_not_matter_only_that_the_copy_does_not_move() -> None:
    assert wanted(of_lag(500), of_lag(500), example.ends(NOW, example.END + 7)) == changelogs(3)


def test_a_member_that_was_not_there_before_is_not_known_to_stand_still() -> None:
    (first, second) = of_lag(500).members
    assert wanted(group(second), group(first, second)) == set()


def test_a_restoring_active_is_no_copy_to_look_for() -> None:
    restoring = group(example.member(0, active=(0,), running=False), example.member(1, standby=(0,)))
    assert wanted(restoring, restoring) == set()


def test_an_end_that_was_not_read_cannot_be_looked_at() -> None:
    blind = EndOffsets(read_at=NOW, partitions={}, committed={})
    assert wanted(of_lag(500), of_lag(500), blind) == set()


def test_a_tail_that_is_known_is_not_asked_for_again_and_one_that_was_not_told_is() -> None:
    known = with_tails(example.ends(NOW), dict.fromkeys(changelogs(3), example.END))
    assert wanted(of_lag(500), of_lag(500), known) == set()
    refused = with_tails(example.ends(NOW), dict.fromkeys(changelogs(3), Unknown("refused")))
    assert wanted(of_lag(500), of_lag(500), refused) == changelogs(3)


def _many(stores: int) -> TaskSet:
    (task,) = (each for each in example.task_set().tasks if each.id.partition == 3)
    behind = tuple(TopicPartition(f"counter-{store}-changelog", 3) for store in range(stores))
    return TaskSet((TaskFacts(id=task.id, stateful=True, changelogs=behind, source_partitions=task.source_partitions),))


def _ends_of(task_set: TaskSet, known: Iterable[TopicPartition] = ()) -> EndOffsets:
    partitions = {each: PartitionEnd(log_start=0, end=example.END) for each in task_set.changelogs}
    return with_tails(EndOffsets(read_at=NOW, partitions=partitions, committed={}), dict.fromkeys(known, example.END))


def test_only_so_many_are_looked_at_and_the_others_get_their_turn() -> None:
    task_set = _many(MOST_AT_ONCE + 3)
    first = worth_a_look(task_set, of_lag(500), of_lag(500), _ends_of(task_set), LIMIT)
    second = worth_a_look(task_set, of_lag(500), of_lag(500), _ends_of(task_set, first), LIMIT)
    assert (len(first), len(second)) == (MOST_AT_ONCE, 3)
    assert first.keys() | second.keys() == task_set.changelogs


def test_a_tail_is_kept_while_the_log_stands_still() -> None:
    a, b, c = sorted(example.task_set().changelogs)[:3]
    earlier = with_tails(example.ends(NOW), {a: 7, b: 8, c: Unknown("refused")})
    moved = replace(example.ends(NOW).partitions[b], end=example.END + 1)
    later = replace(example.ends(NOW), partitions={**example.ends(NOW).partitions, b: moved})
    found = known_from(earlier, later)
    assert {each: end.data_end for each, end in found.partitions.items() if end.data_end is not None} == {a: 7}
    assert {each: end.end for each, end in found.partitions.items()} == {
        each: end.end for each, end in later.partitions.items()
    }


def test_a_look_changes_nothing_else() -> None:
    before = example.ends(NOW)
    (a, *_) = sorted(before.partitions)
    after = changelog_tails.with_tails(before, {a: 7, TopicPartition("of-nobody", 0): 9})
    assert after == replace(before, partitions={**before.partitions, a: replace(before.partitions[a], data_end=7)})
