"""Old days go, and nothing that a later build needs; what a day's rows were made of may be gone, they stay."""

import os
import time
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StringType, StructField, StructType

from streamapp.analytics.__main__ import main
from streamapp.analytics.bronze.ingest import bronze
from streamapp.analytics.build import gold, silver
from streamapp.analytics.expire import Keep, first_days, remove_old
from streamapp.analytics.tables.bronze_schemas import QUARANTINE
from streamapp.analytics.tables.store import RUBBISH_AGE, Store, Version, stale_days
from tests.analytics.support.handmade import RUN, write

FIRST = date(2026, 9, 1)


def day(number: int) -> str:
    return (FIRST + timedelta(days=number)).isoformat()


def tables(root: Path, days: int) -> None:
    """A row for each day in one table of each layer, and in those whose oldest row is still in force."""
    dts = [{"dt": day(number)} for number in range(days)]
    built = {one["dt"]: (RUN,) for one in dts}
    write(bronze(root), {"b_sample": dts, "b_config": dts[:1], "b_scale": dts[:1], QUARANTINE: dts[:1]}, Version())
    made = Version(definitions=1, built_from=built)
    write(silver(root), {"s_seen": dts, "s_learner_sample": dts, "s_config": dts[:1]}, made)
    write(gold(root), {"g_churn_daily": dts, "g_restore_profile": dts[:1]}, made)


def days_of(store: Store, table: str) -> list[str]:
    return sorted(store.current().tables[table])


def test_each_layer_keeps_its_days_and_what_is_still_in_force(tmp_path: Path) -> None:
    tables(tmp_path, 12)
    removed = remove_old(tmp_path, Keep(bronze=2, silver=8))
    assert (removed.first_days, removed.days) == ((day(10), day(4), ""), (10, 4, 0))
    assert days_of(bronze(tmp_path), "b_sample") == [day(n) for n in range(10, 12)]
    assert days_of(bronze(tmp_path), QUARANTINE) == []
    assert days_of(bronze(tmp_path), "b_config") == days_of(bronze(tmp_path), "b_scale") == [day(0)]
    assert days_of(silver(tmp_path), "s_seen") == [day(n) for n in range(4, 12)]
    assert days_of(silver(tmp_path), "s_config") == days_of(gold(tmp_path), "g_restore_profile") == [day(0)]
    assert len(days_of(gold(tmp_path), "g_churn_daily")) == 12
    before = bronze(tmp_path).current()
    assert set(before.days(QUARANTINE)) == {day(n) for n in range(10, 12)}
    assert remove_old(tmp_path, Keep(bronze=2, silver=8)).days == (0, 0, 0)
    assert bronze(tmp_path).current() == before


def test_what_was_removed_is_nothing_to_be_built_again(tmp_path: Path) -> None:
    tables(tmp_path, 12)
    remove_old(tmp_path, Keep(bronze=2))
    of_bronze = bronze(tmp_path).current()
    for made in (silver(tmp_path).current(), gold(tmp_path).current()):
        assert stale_days(of_bronze.days(QUARANTINE), made, of_bronze.kept_from) == set()


@pytest.mark.parametrize("layer", [silver, gold], ids=["silver", "gold"])
def test_a_day_that_is_not_built_as_it_is_now_stays_with_all_after_it(tmp_path: Path, layer: type) -> None:
    tables(tmp_path, 12)
    store = layer(tmp_path)
    made = store.current()
    store.commit(replace(made, built_from={**made.built_from, day(6): ("another",)}))
    assert remove_old(tmp_path, Keep(bronze=2, silver=2)).first_days[:2] == (day(6), day(6))


DAYS = st.integers(0, 59).map(day)


@given(st.tuples(*[st.integers(0, 70)] * 3), DAYS, st.sets(DAYS, max_size=3))
def test_no_layer_loses_a_day_before_what_is_made_of_it(
    counts: tuple[int, int, int], newest: str, unbuilt: set[str]
) -> None:
    bounds = [count or 1000 for count in counts]
    if bounds != sorted(bounds):
        with pytest.raises(ValueError, match="for longer than"):
            Keep(*counts)
        return
    firsts = first_days(Keep(*counts), newest, unbuilt)
    assert list(firsts) == sorted(firsts, reverse=True)
    assert firsts[0] <= min({newest, *unbuilt})
    for count, first in zip(counts, firsts, strict=True):
        assert (first == "") if not count else (first <= newest)
        if count and not unbuilt:
            assert (date.fromisoformat(newest) - date.fromisoformat(first)).days == count - 1


def test_nothing_goes_while_a_run_works_or_was_killed_today(tmp_path: Path) -> None:
    tables(tmp_path, 12)
    working = silver(tmp_path).folder / "s_seen" / "run=other"
    working.mkdir()
    removed = remove_old(tmp_path, Keep(bronze=2))
    assert (removed.waits_for, removed.days) == (working, (0, 0, 0))
    old = time.time() - RUBBISH_AGE - 60
    os.utime(working, (old, old))
    assert remove_old(tmp_path, Keep(bronze=2)).days == (10, 0, 0)


def test_files_go_a_day_after_they_were_named_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables(tmp_path, 12)
    remove_old(tmp_path, Keep(bronze=2))
    places = [bronze(tmp_path).folder / "b_sample" / f"run={RUN}" / f"dt={day(n)}" for n in range(12)]
    assert all(place.exists() for place in places)

    def again() -> list[int]:
        bronze(tmp_path).commit(bronze(tmp_path).current())
        return [n for n, place in enumerate(places) if not place.exists()]

    now = time.time()
    for later, gone in ((RUBBISH_AGE - 60, []), (RUBBISH_AGE + 60, list(range(10)))):
        monkeypatch.setattr("streamapp.analytics.tables.store.time.time", lambda later=later: now + later)
        assert again() == again() == gone
    assert bronze(tmp_path).current().leaving == {}


def test_a_run_that_writes_nothing_leaves_no_folder_behind(tmp_path: Path) -> None:
    class Nothing:
        """What Spark makes of a frame without rows: an empty folder."""

        def __getattr__(self, _: str) -> object:
            return self

        def __call__(self, *arguments: object) -> object:
            if arguments and str(arguments[0]).startswith(str(tmp_path)):
                Path(str(arguments[0])).mkdir(parents=True)
            return self

    store = Store(tmp_path, "bronze", {"t": StructType([StructField("a", StringType())])})
    assert store.write(Nothing(), "t", "r") == ({}, {})  # type: ignore[arg-type]
    assert store.works_on() is None


def test_layers_are_kept_for_longer_the_higher_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for given_options in (["--keep-bronze", "0"], ["--keep-silver", "20"], ["--keep-gold", "300"]):
        assert main(["build", "--root", str(tmp_path), *given_options]) == 2
        assert "cannot be kept for longer than" in capsys.readouterr().err
