"""The manifest: a version counts as a whole or not at all, and of two runs one loses."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.analytics.failures import AnalyticsError
from streamapp.analytics.ingest import record_files, suspicious
from streamapp.analytics.store import Input, Store, Version, changed_days


def test_a_version_comes_back_as_it_was_committed(tmp_path: Path) -> None:
    store = Store(tmp_path, "bronze", {})
    assert store.current() == Version()
    told = Version(inputs={"d": Input("f", 3, {"r": (0, 2)})}, built_from={"2026-11-01": ("a",)}, definitions=4)
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
    assert sorted(path.name for path in (store.folder / "manifest").iterdir()) == ["1.json"]


def test_a_layout_from_the_future_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path, "bronze", {})
    store.commit(Version(layout=2))
    with pytest.raises(AnalyticsError, match="layout 2"):
        store.current()


def test_a_day_has_changed_when_its_runs_differ() -> None:
    before = {"1": ("a",), "2": ("a", "b"), "3": ("c",)}
    assert changed_days({"1": ("a",), "2": ("b", "a"), "4": ("d",)}, before) == {"3", "4"}


@pytest.mark.parametrize(
    ("fresh", "known", "found"),
    [
        ([(0, 9), (10, 19)], [], set()),
        ([(10, 19)], [(0, 9), (20, 29)], set()),
        ([(10, 19)], [(0, 10)], {"r"}),
        ([(0, 99)], [(10, 19)], {"r"}),
        ([(0, 9), (9, 12)], [], {"r"}),
        ([(50, 60)], [(0, 9), (5, 7)], set()),
    ],
    ids=["apart", "late between", "edge", "around", "both new", "old ones are settled"],
)
def test_recorders_are_suspicious_where_new_numbers_overlap(
    fresh: list[tuple[int, int]], known: list[tuple[int, int]], found: set[str]
) -> None:
    new, old = ([Input("f", 1, {"r": span}) for span in spans] for spans in (fresh, known))
    assert suspicious(new, old, []) == found


FILES = st.lists(st.sets(st.integers(0, 30), min_size=1), max_size=5)


@given(FILES, FILES)
def test_no_number_that_is_there_twice_goes_unsuspected(fresh: list[set[int]], known: list[set[int]]) -> None:
    new, old = ([Input("f", 1, {"r": (min(one), max(one))}) for one in files] for files in (fresh, known))
    is_twice = any(one & other for n, one in enumerate(fresh) for other in (*fresh[n + 1 :], *known))
    assert not is_twice or suspicious(new, old, []) == {"r"}


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
