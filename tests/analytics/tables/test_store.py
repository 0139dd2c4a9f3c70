"""The manifest: a version counts as a whole or not at all, and of two runs one loses."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from streamapp.analytics.bronze.ingest import record_files, suspicious, together
from streamapp.analytics.errors import AnalyticsError
from streamapp.analytics.tables.store import KEPT, Store, Version, changed_days


def test_a_version_comes_back_as_it_was_committed(tmp_path: Path) -> None:
    store = Store(tmp_path, "bronze", {})
    assert store.current() == Version()
    told = Version(
        inputs={"d": "f"}, recorders={"r": ((0, 2), (5, 9))}, lines=8, built_from={"2026-11-01": ("a",)}, definitions=4
    )
    told = told.with_table("t", {"2026-11-01": ("r1",)}, {"r1/2026-11-01": 3})
    assert store.commit(told) == replace(told, number=1) == store.current()
    assert (store.folder / "CURRENT").read_text() == "1\n"
    assert (told.count("t"), told.days("x"), told.days("t")) == (3, {"2026-11-01": ("r1",)}, {})


def test_of_two_runs_from_one_version_the_later_loses_and_changes_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path, "bronze", {})
    store.commit(Version(definitions=1))
    with pytest.raises(AnalyticsError, match="another run"):
        store.commit(Version(definitions=2))
    assert store.current().definitions == 1
    assert sorted(path.name for path in (store.folder / "manifest").glob("[!.]*")) == ["1.json"]


def test_a_run_loses_too_when_its_number_was_given_away_and_is_free_again(tmp_path: Path) -> None:
    store = Store(tmp_path, "bronze", {})
    begun = newest = store.commit(Version())
    for number in range(KEPT + 1):
        newest = store.commit(replace(newest, definitions=number))
    assert not (store.folder / "manifest" / f"{begun.number + 1}.json").exists()
    with pytest.raises(AnalyticsError, match="another run"):
        store.commit(begun)
    assert store.current() == newest
    assert (store.folder / "CURRENT").read_text() == f"{newest.number}\n"


def test_of_many_runs_at_once_one_wins_each_version(tmp_path: Path) -> None:
    def run(name: str) -> int:
        won = 0
        for _ in range(20):
            before = Store(tmp_path, "bronze", {}).current()
            with suppress(AnalyticsError):
                Store(tmp_path, "bronze", {}).commit(
                    replace(before, inputs={**before.inputs, f"{name}{before.number}": name})
                )
                won += 1
        return won

    with ThreadPoolExecutor(4) as pool:
        won = sum(pool.map(run, "abcd"))
    newest = Store(tmp_path, "bronze", {}).current()
    assert newest.number == len(newest.inputs) == won


def test_a_damaged_manifest_is_named_and_the_version_before_it_still_there(tmp_path: Path) -> None:
    store = Store(tmp_path, "bronze", {})
    first = store.commit(Version(definitions=1))
    path = store.folder / "manifest" / "2.json"
    path.write_text("")
    with pytest.raises(AnalyticsError, match=r"2\.json: it is damaged"):
        store.current()
    path.unlink()
    assert store.current() == first


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path, "gold", {"t": StructType()})
    folder = tmp_path / "gold" / "t" / "run=r" / "dt=2026-11-01"
    folder.mkdir(parents=True)
    (folder / "part-0.parquet").write_text("no Parquet")
    with pytest.raises(AnalyticsError, match=r"part-0\.parquet: it is damaged"):
        store.arrow(Version(tables={"t": {"2026-11-01": ("r",)}}), "t")


def test_a_layout_from_the_future_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path, "bronze", {})
    store.commit(Version(layout=3))
    with pytest.raises(AnalyticsError, match="layout 3"):
        store.current()


def test_a_day_has_changed_when_its_runs_differ() -> None:
    before = {"1": ("a",), "2": ("a", "b"), "3": ("c",)}
    assert changed_days({"1": ("a",), "2": ("b", "a"), "4": ("d",)}, before) == {"3", "4"}


@pytest.mark.parametrize(
    ("fresh", "known", "found"),
    [
        ([(10, 19)], [(0, 9), (20, 29)], set()),
        ([(10, 19)], [(0, 10)], {"r"}),
        ([(0, 99)], [(10, 19)], {"r"}),
        ([(0, 3), (50, 60)], [(5, 9), (60, 70)], {"r"}),
        ([(0, 3), (50, 60)], [(5, 9), (61, 70)], set()),
    ],
    ids=["between", "edge", "around", "the second", "apart"],
)
def test_recorders_are_suspicious_where_numbers_overlap_with_those_of_before(
    fresh: list[tuple[int, int]], known: list[tuple[int, int]], found: set[str]
) -> None:
    assert suspicious({"r": tuple(fresh), "other": ((0, 99),)}, {"r": tuple(known)}, []) == found


def test_who_says_a_number_twice_is_suspicious_whatever_was_before() -> None:
    assert suspicious({"r": ((0, 9),)}, {}, ["r"]) == {"r"}


NUMBERS = st.sets(st.integers(0, 30), min_size=1)


def spans(numbers: set[int], apart: int) -> tuple[tuple[int, int], ...]:
    """Spans over numbers that end at every multiple of `apart`, as those of a read end at buckets."""
    buckets = [[number for number in numbers if number // apart == nth] for nth in range(31 // apart + 1)]
    return together((min(one), max(one)) for one in buckets if one)


@given(NUMBERS, st.lists(NUMBERS, max_size=3), st.integers(1, 31))
def test_no_number_that_was_read_before_goes_unsuspected(fresh: set[int], known: list[set[int]], apart: int) -> None:
    before = together(span for one in known for span in spans(one, apart))
    is_there = any(fresh & one for one in known)
    assert not is_there or suspicious({"r": spans(fresh, apart)}, {"r": before}, []) == {"r"}


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)).map(lambda one: (one[0], sum(one)))))
def test_spans_that_meet_are_one_and_none_is_lost(given: list[tuple[int, int]]) -> None:
    found = together(given)
    numbers = {number for low, high in given for number in range(low, high + 1)}
    assert {number for low, high in found for number in range(low, high + 1)} == numbers
    assert all(one[1] + 1 < other[0] for one, other in pairwise(found))


def test_names_that_spark_passes_over_are_no_files_of_the_record(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").touch()
    for name in (".draft.jsonl.gz", "_other.jsonl.gz"):
        (tmp_path / name).touch()
        with pytest.raises(AnalyticsError, match="begin with"):
            record_files([tmp_path / name])
    assert record_files([tmp_path]) == [tmp_path / "a.jsonl.gz"]


def test_a_record_that_is_not_there_says_so(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl.gz.tmp").touch()
    with pytest.raises(AnalyticsError, match=r"no file \*\.jsonl\.gz"):
        record_files([tmp_path])
    with pytest.raises(AnalyticsError, match="there is no such"):
        record_files([tmp_path / "nowhere"])
