"""The lag of one copy, over all changelogs of its task."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.core.facts.ids import TaskId, TopicPartition
from streamapp.core.facts.lag import (
    BeyondEnd,
    EndOffsets,
    Measured,
    PartitionEnd,
    Unknown,
    copy_lag,
    records_left,
    restore_size,
    task_lag,
    written_to,
)
from streamapp.core.facts.tasks import TaskFacts, TaskSet
from tests.builders import NOW

A, B = TopicPartition("app-a-changelog", 3), TopicPartition("app-b-changelog", 3)
SOURCE = TopicPartition("orders", 3)
CAUSE = "its topic was made anew, or the topology leaves out a changelog"
TWO_STORES = TaskFacts(id=TaskId(0, 3), stateful=True, changelogs=(A, B), source_partitions=(SOURCE,))
ONE_STORE = TaskFacts(id=TaskId(0, 3), stateful=True, changelogs=(A,), source_partitions=(SOURCE,))
FROM_SOURCE = TaskFacts(id=TaskId(0, 3), stateful=True, changelogs=(SOURCE,), source_partitions=(SOURCE,))


def ends(committed: dict[TopicPartition, int] | None = None, **partitions: PartitionEnd) -> EndOffsets:
    names = {"a": A, "b": B, "source": SOURCE}
    known = {names[name]: end for name, end in partitions.items()}
    return EndOffsets(read_at=NOW, partitions=known, committed=committed or {})


def end(offset: int, start: int = 0, data_end: int | Unknown | None = None) -> PartitionEnd:
    return PartitionEnd(log_start=start, end=offset, data_end=data_end)


def test_the_worked_example_of_the_design() -> None:
    # pod 1 reports 1,039,200 (A 999,300 + B 39,900); ends read after that are 1,001,500 and 40,030
    assert task_lag(TWO_STORES, 1_039_200, ends(a=end(1_001_500), b=end(40_030))) == Measured(2_330)


@pytest.mark.parametrize(
    ("position", "partitions", "lag"),
    [
        pytest.param(90, {"a": end(100)}, Measured(10), id="distance from position to end"),
        pytest.param(100, {"a": end(100)}, Measured(0), id="at the end"),
        pytest.param(0, {"a": end(100, start=100)}, Measured(0), id="an expired partition has nothing to be read"),
        pytest.param(0, {"a": end(100, start=70)}, Measured(30), id="no more than what exists"),
        pytest.param(95, {"a": end(100, start=70)}, Measured(5), id="the smaller of both bounds, from the position"),
        pytest.param(
            101, {"a": end(100)}, BeyondEnd(f"position 101 lies beyond the end 100: {CAUSE}"), id="beyond the end"
        ),
        pytest.param(80, {"a": end(100, data_end=90)}, Measured(10), id="markers behind the last record do not count"),
        pytest.param(95, {"a": end(100, data_end=90)}, Measured(0), id="a position among the markers is caught up"),
        pytest.param(80, {"a": end(100, data_end=Unknown("?"))}, Measured(20), id="an unknown tail counts whole"),
        pytest.param(0, {"a": end(100, start=70, data_end=70)}, Measured(0), id="nothing but markers"),
        pytest.param(0, {}, Unknown("the end of app-a-changelog-3 was not read"), id="an end is missing"),
    ],
)
def test_one_store(position: int, partitions: dict[str, PartitionEnd], lag: Measured | Unknown) -> None:
    assert task_lag(ONE_STORE, position, ends(None, **partitions)) == lag


def test_one_unknown_changelog_makes_the_whole_task_unknown() -> None:
    assert task_lag(TWO_STORES, 10, ends(a=end(10))) == Unknown("the end of app-b-changelog-3 was not read")


def test_a_source_topic_that_serves_as_changelog_ends_at_the_committed_offset() -> None:
    assert task_lag(FROM_SOURCE, 40, ends({SOURCE: 50}, source=end(900))) == Measured(10)


def test_a_source_topic_without_records_ends_at_zero() -> None:
    assert task_lag(FROM_SOURCE, 0, ends({SOURCE: 0}, source=end(0))) == Measured(0)


@pytest.mark.guarantee(1)
def test_a_source_topic_with_records_and_without_a_committed_offset_is_unknown() -> None:
    unread = Unknown("the committed offset of orders-3 was not read")
    assert task_lag(FROM_SOURCE, 0, ends({}, source=end(900))) == unread


def test_a_source_topic_ends_at_its_last_record_where_that_lies_before_the_committed_offset() -> None:
    assert task_lag(FROM_SOURCE, 40, ends({SOURCE: 50}, source=end(900, data_end=45))) == Measured(5)
    assert task_lag(FROM_SOURCE, 40, ends({SOURCE: 50}, source=end(900, data_end=890))) == Measured(10)


def test_of_two_tails_only_the_shorter_counts_since_one_position_may_lie_within_its_own() -> None:
    both = ends(a=end(1_000, data_end=100), b=end(500, data_end=490))
    # 1,000 may be the very end of a and nothing of b: all 490 records of b may be missing
    assert task_lag(TWO_STORES, 1_000, both) == Measured(490)
    # 590 may be all of both, or a's tail alone; what exists is the other bound
    assert task_lag(TWO_STORES, 590, both) == Measured(590)
    assert task_lag(TWO_STORES, 590, ends(a=end(1_000, data_end=990), b=end(500, data_end=495))) == Measured(905)


A_LOG = st.tuples(*[st.integers(0, 60)] * 4).map(sorted).map(tuple)


@given(
    st.lists(
        st.tuples(A_LOG, st.integers(0, 60), st.sampled_from(["known", "unknown", "not read"])), min_size=2, max_size=2
    )
)
def test_a_measured_lag_is_never_less_than_what_is_left_to_apply(
    logs: list[tuple[tuple[int, int, int, int], int, str]],
) -> None:
    """Two changelogs with a start, a last record and an end each; the positions lie anywhere up to the end."""
    left, position, partitions = 0, 0, {}
    for name, ((start, _, last, highest), at, look) in zip("ab", logs, strict=True):
        reached = min(at, highest)
        tails: dict[str, int | Unknown | None] = {"known": last, "unknown": Unknown("?"), "not read": None}
        partitions[name] = end(highest, start, tails[look])
        left += max(0, last - max(reached, start))
        position += reached
    lag = task_lag(TWO_STORES, position, ends(None, **partitions))
    assert isinstance(lag, Measured)
    assert lag.records >= left
    blind = {name: replace(one, data_end=None) for name, one in partitions.items()}
    plain = task_lag(TWO_STORES, position, ends(None, **blind))
    assert isinstance(plain, Measured)
    assert lag.records <= plain.records


@given(
    st.sampled_from([ONE_STORE, TWO_STORES, FROM_SOURCE]),
    st.integers(0, 70),
    st.dictionaries(st.sampled_from(["a", "b", "source"]), st.tuples(A_LOG, st.booleans())),
    st.none() | st.integers(0, 70),
)
def test_what_is_left_without_a_value_is_the_lag(
    task: TaskFacts, position: int, logs: dict[str, tuple[tuple[int, int, int, int], bool]], committed: int | None
) -> None:
    partitions = {
        name: end(highest, start, last if looked else None)
        for name, ((start, _, last, highest), looked) in logs.items()
    }
    known = ends(None if committed is None else {SOURCE: committed}, **partitions)
    lag, changelog = task_lag(task, position, known), TaskSet((task,)).sole_changelog.get(task.id)
    assert (changelog is not None) == (task is ONE_STORE)
    if changelog is not None:
        left = records_left(known.partitions.get(changelog), position)
        assert left == (lag.records if isinstance(lag, Measured) else None)


def test_a_committed_offset_that_was_not_read_is_unknown_and_not_zero() -> None:
    unknown = Unknown("the committed offset of orders-3 was not read")
    assert task_lag(FROM_SOURCE, 0, ends(source=end(900))) == unknown


def test_what_a_pod_without_state_must_read_is_what_exists() -> None:
    assert restore_size(TWO_STORES, ends(a=end(100, start=40), b=end(10))) == Measured(70)


def test_the_input_of_a_task_is_the_sum_of_its_ends() -> None:
    assert (written_to(TWO_STORES, ends(a=end(100), b=end(10))), written_to(TWO_STORES, ends(a=end(100)))) == (
        110,
        None,
    )


@pytest.mark.parametrize(
    ("start", "offset", "data_end"), [(5, 4, None), (-1, 4, None), (0, 4, 5)], ids=["backwards", "negative", "data"]
)
def test_ends_that_no_log_can_have_are_refused(start: int, offset: int, data_end: int | None) -> None:
    with pytest.raises(ValueError, match="partition end"):
        PartitionEnd(log_start=start, end=offset, data_end=data_end)


def test_known_positions_are_measured_changelog_by_changelog() -> None:
    known = ends(a=end(1_000, start=900), b=end(50, data_end=40))
    assert copy_lag(TWO_STORES, {A: 990, B: 45}, known) == Measured(10)
    assert copy_lag(TWO_STORES, {A: 5, B: 30}, known) == Measured(110)


def test_one_changelog_that_is_ahead_does_not_make_up_for_another_that_is_behind() -> None:
    assert copy_lag(TWO_STORES, {A: 1_001, B: 0}, ends(a=end(1_000), b=end(50))) == BeyondEnd(
        f"position 1001 lies beyond the end 1000: {CAUSE}"
    )
    assert isinstance(copy_lag(TWO_STORES, {A: 1, B: 1}, ends(a=end(1_000))), Unknown)
