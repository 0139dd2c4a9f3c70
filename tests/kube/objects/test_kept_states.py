"""What a removed pod left on its volume, as text on the claim and back."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.core.facts.ids import TaskId
from streamapp.core.facts.workload import KeptState
from streamapp.kube.objects import trimmed
from streamapp.kube.objects.kept_states import MOST_CHARACTERS, decode, encode

AT = datetime(2026, 11, 25, 19, 30, tzinfo=UTC)
TASKS = st.builds(TaskId, st.integers(0, 30), st.integers(0, 500))


@given(st.dictionaries(TASKS, st.integers(0, 2**63 - 1), max_size=100))
def test_every_state_survives_the_annotation(positions: dict[TaskId, int]) -> None:
    text = encode(KeptState(AT, positions))
    assert text is not None
    assert decode(text) == KeptState(AT, positions)


def test_a_state_of_too_many_tasks_is_not_written() -> None:
    assert encode(KeptState(AT, {TaskId(0, number): 10**15 for number in range(1_000)})) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"at":"2026-11-25T19:30:00+00:00"}',
        '{"at":"soon","offsets":{}}',
        '{"at":"2026-11-25T19:30:00+00:00","offsets":{"0_1":-1}}',
        '{"at":"2026-11-25T19:30:00+00:00","offsets":{"0_1":true}}',
        '{"at":"2026-11-25T19:30:00+00:00","offsets":{"0_1":9223372036854775808}}',
        '{"at":"2026-11-25T19:30:00+00:00","offsets":{"first":1}}',
        '{"at":"2026-11-25T19:30:00+00:00","offsets":["0_1"]}',
        "[" * 10_000,
        '{"at":"2026-11-25T19:30:00+00:00","offsets":{}}' + " " * MOST_CHARACTERS,
    ],
)
def test_what_nobody_here_wrote_reads_as_nothing(text: str) -> None:
    assert decode(text) is None


@given(st.text(max_size=300))
def test_no_text_is_an_error(text: str) -> None:
    decode(text)


def test_a_text_that_is_too_long_is_not_kept_in_memory() -> None:
    metadata = {"name": "state-a-0", "annotations": {"streamapp.dev/kept-state": "x" * (MOST_CHARACTERS + 1)}}
    assert trimmed.claim({"metadata": metadata})["metadata"]["annotations"] == {}
