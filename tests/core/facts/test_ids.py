"""The names of things, as Kafka Streams prints and orders them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.core.facts.ids import ProcessId, TaskId


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_task_is_printed_and_read_as_kafka_streams_does(subtopology: int, partition: int) -> None:
    task = TaskId(subtopology, partition)
    assert str(task) == f"{subtopology}_{partition}"
    assert TaskId.parse(str(task)) == task


@pytest.mark.parametrize("text", ["", "0", "0_", "_3", "0-3", "-1_3", "0_3 ", "0_3\n", "eu__0_3", "٠_٣"])
def test_what_is_no_task_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no task id of the form 0_3"):
        TaskId.parse(text)


def test_tasks_are_ordered_by_number_and_not_by_text() -> None:
    assert sorted([TaskId(0, 10), TaskId(1, 0), TaskId(0, 9)]) == [TaskId(0, 9), TaskId(0, 10), TaskId(1, 0)]


def test_processes_are_ordered_as_java_compares_uuids() -> None:
    """Two signed halves: 8… comes before 1…, in the lower half too; the stock assignor deals tasks in this order."""
    in_order = [
        "80000000-0000-4000-8000-000000000000",
        "ffffffff-0000-4000-8000-000000000000",
        "00000000-0000-4000-8000-000000000001",
        "00000000-0000-4000-bfff-ffffffffffff",
        "00000000-0000-4000-0000-000000000000",
        "00000001-0000-4000-8000-000000000000",
        "10000000-0000-4000-8000-000000000000",
        "7fffffff-0000-4000-8000-000000000000",
    ]
    assert [str(process) for process in sorted(map(ProcessId.parse, in_order))] == in_order
    assert [str(process) for process in sorted(map(ProcessId.parse, reversed(in_order)))] == in_order


def test_what_is_no_process_is_refused() -> None:
    with pytest.raises(ValueError, match="badly formed"):
        ProcessId.parse("pod-0")
