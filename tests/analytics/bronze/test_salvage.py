"""Of a damaged file all whole lines before the damage are read, and nothing of what follows."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.analytics.bronze.salvage import is_whole, salvage

LINES = [f"line {number} of many, {number * 7919 % 1009}" for number in range(3000)]
PACKED = gzip.compress("".join(f"{line}\n" for line in LINES).encode())


def saved(folder: Path, content: bytes) -> list[str]:
    torn, whole = folder / "torn.jsonl.gz", folder / "whole.jsonl.gz"
    torn.write_bytes(content)
    assert is_whole(torn) is (content in {PACKED, PACKED + PACKED})
    count = salvage(torn, whole)
    assert is_whole(whole)
    found = gzip.decompress(whole.read_bytes()).decode().splitlines()
    assert len(found) == count
    return found


@given(st.integers(1, len(PACKED) - 1))
def test_a_file_that_ends_too_soon(tmp_path_factory: pytest.TempPathFactory, length: int) -> None:
    found = saved(tmp_path_factory.getbasetemp(), PACKED[:length])
    assert found == LINES[: len(found)]
    if length > len(PACKED) // 2:
        assert len(found) > 1000


def test_a_file_of_several_parts(tmp_path: Path) -> None:
    assert saved(tmp_path, PACKED + PACKED) == LINES + LINES
    found = saved(tmp_path, PACKED + PACKED[: len(PACKED) // 2])
    assert found[: len(LINES)] == LINES
    assert found == (LINES + LINES)[: len(found)]


def test_what_is_no_gzip_has_no_lines(tmp_path: Path) -> None:
    assert saved(tmp_path, b"plain text\n" * 50) == []
