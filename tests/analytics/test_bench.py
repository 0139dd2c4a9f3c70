"""What the bench shows is what was measured, and its three engines answer the same questions."""

import io
import json
import math
import time
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.benchmarks import engines, fleet_day, page, pipeline, steps
from tests.benchmarks.engines import Answered
from tests.benchmarks.fleet_day import AddedDay, Figures, PipelineRun, Plan

FAST = PipelineRun(20.0, 30.0, {"bronze: read lines": 15.0, "silver: samples": 0.01}, 90.0)
SLOW = PipelineRun(40.0, 50.0, {"bronze: read lines": 25.0, "silver: samples": 0.02}, 95.0)
FIGURES = Figures(
    Plan(on_top=(1, 7)),
    "2026-11-21 12:00",
    "4.3.0",
    "17.0.15",
    "3.11.7",
    2,
    "4g",
    PipelineRun(10.0, 20.0, {}, 50.0),
    3_000_000,
    289,
    [FAST, SLOW],
    {"record": 30_000_000, "bronze": 6_000_000, "silver": 900_000, "gold": 90_000},
    1500.0,
    200.0,
    [AddedDay(1, 50_000, (1.0, 2.0), (3.0, 4.0)), AddedDay(7, 50_000, (1.5, 2.5), (3.5, 4.5))],
)


def test_figures_survive_their_file() -> None:
    assert fleet_day.figures(json.loads(json.dumps(asdict(FIGURES)))) == FIGURES


def test_every_run_is_shown_and_how_many_met_the_aim() -> None:
    whole, stages, sizes, age = fleet_day.sections(FIGURES)
    assert [row[1:] for row in whole.rows] == [
        ("20.0", "30.0", "50.0", "90.0", "60,000"),
        ("40.0", "50.0", "90.0", "95.0", "33,333"),
        ("10.0", "20.0", "30.0", "50.0", "-"),
    ]
    assert "1 of 2 runs met the aim of 60 s." in whole.note
    assert stages.rows == (("bronze: read lines", "15.0, 25.0", "150,000"), ("silver: samples", "0.0, 0.0", "-"))
    assert sizes.rows[0] == ("record", "30", "10.00")
    assert age.rows == (("1", "50,000", "1.0, 2.0", "3.0, 4.0"), ("7", "50,000", "1.5, 2.5", "3.5, 4.5"))
    assert "0 of 1 runs met the aim of 60 s." in fleet_day.sections(replace(FIGURES, passages=[SLOW]))[0].note
    assert len(fleet_day.sections(replace(FIGURES, on_top=[]))) == 3


def test_processor_time_is_counted_and_unknown_of_a_process_that_is_gone() -> None:
    before = engines.cpu_seconds("self")
    ends = time.process_time() + 0.1
    while time.process_time() < ends:
        pass
    assert engines.cpu_seconds("self") - before == pytest.approx(0.1, abs=0.09)
    assert math.isnan(engines.cpu_seconds("self", "0"))


def test_a_page_is_a_table_that_names_cannot_break() -> None:
    section = page.Section("Title", ("", "s"), (("a|b", "1"),), "A note.")
    assert page.markdown("Run", "About.", [section]).splitlines() == [
        *("### Run", "", "About.", "", "#### Title", "", "A note.", ""),
        *("|  | s |", "| --- | ---: |", "| a\\|b | 1 |"),
    ]


def test_what_is_left_follows_the_pace_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("tests.benchmarks.steps.time.monotonic", lambda: now[0])
    out = io.StringIO()
    shown = steps.Steps(200.0, out)
    with shown.step("one", 50.0):
        now[0] += 100.0
    with shown.step("two", 150.0):
        now[0] += 300.0
    with shown.step("more than was planned", 10.0):
        pass
    assert out.getvalue().splitlines() == [
        "one; about 3 min left",
        "two; about 5 min left",
        "more than was planned; about 0 s left",
    ]


def test_steps_are_planned_for_what_is_measured() -> None:
    plan = Plan(apps=10, tasks=10, repeats=1, on_top=())
    assert fleet_day.expected_seconds(replace(plan, repeats=3)) > fleet_day.expected_seconds(plan)
    assert fleet_day.expected_seconds(Plan()) < 20 * 60


START = datetime(2026, 11, 1, tzinfo=UTC)


def sample(minute: float, ordinal: int, position: int | None, **more: Any) -> dict[str, Any]:
    copy = {"task": "0_0", "role": "STANDBY", "state": None, "ordinal": ordinal, "process_id": f"p{ordinal}"}
    rest = {"end_offset": 1000, "interval_seconds": 60.0, "seq": int(minute * 10) + 1000 * ordinal}
    key = {"cluster": "c", "namespace": "n", "app": "a", "uid": "u", "ts": START + timedelta(minutes=minute)}
    return {**key, **copy, "offset": position, **rest, **more}


SAMPLES = [
    # Behind for three samples of which a gap of ten minutes breaks off the last; the limit is 100 slots.
    sample(0, 1, 100),
    sample(1, 1, 400),
    sample(11, 1, 700),
    sample(12, 1, 1000),
    # Never behind the limit, once further than a tenth of it, in two hours.
    sample(0, 2, 980),
    sample(70, 2, 1000),
    # A running active owes nothing; of what has no position nothing is known.
    sample(0, 0, None, role="ACTIVE", state="RUNNING"),
    sample(0, 3, None),
]


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, list[str]]:
    """Bronze by hand, as the manifest names it."""
    config = [{"cluster": "c", "namespace": "n", "app": "a", "uid": "u", "acceptable_recovery_lag": 100}]
    for table, rows in (("b_sample", SAMPLES), ("b_config", config)):
        for run in ("counts", "rubbish"):
            place = tmp_path / "bronze" / table / f"run={run}" / "dt=2026-11-01"
            place.mkdir(parents=True)
            pq.write_table(pa.Table.from_pylist(rows), place / "part.parquet")
    (tmp_path / "bronze" / "manifest").mkdir()
    days = {"2026-11-01": ["counts"]}
    for number in (9, 10):
        manifest = {"tables": {"b_sample": days, "b_config": days}}
        (tmp_path / "bronze" / "manifest" / f"{number}.json").write_text(json.dumps(manifest))
    return {table: engines.live_files(tmp_path, table) for table in engines.TABLES}


@pytest.mark.parametrize("engine", [engines.duckdb, engines.polars])
def test_questions_have_the_answers_found_by_hand(engine: Any, tables: dict[str, list[str]]) -> None:
    assert all("run=counts" in file for files in tables.values() for file in files)
    with ExitStack() as stack:
        _, questions, _ = engine(tables, stack)
        answers = {name: {column: float(value) for column, value in ask().items()} for name, ask in questions.items()}
    assert answers == {
        # Two copies in the first hour: (900 + 600 + 300 + 0 + 20) / 5; one in the second.
        "lag by hour": {"found": 2, "n": 6, "copies": 3, "mean": 364.0, "most": 900.0},
        "far behind": {"found": 4, "lag": 1820.0, "copies": 2},
        "times behind": {"found": 2, "n": 3, "restored": 300.0},
    }


def answered(engine: str, mean: float) -> Answered:
    answer = {"lag by hour": {"n": 6.0, "mean": mean}}
    return Answered(engine, "1", 0.5, {"lag by hour": [2.0, 1.0, 1.5]}, answer, 100.0)


def test_engines_that_disagree_are_told() -> None:
    assert pipeline.disagreements([answered("duckdb", 364.0), answered("spark", 364.0 + 1e-8)]) == []
    (odd,) = pipeline.disagreements([answered("duckdb", 364.0), answered("spark", 365.0)])
    assert odd.startswith("lag by hour: duckdb")


def test_the_page_has_all_runs_of_all_engines() -> None:
    measured = pipeline.Whole("machine", asdict(FIGURES), 5000, oracle_s=[9.0])
    measured.plain.ingest_s, measured.plain.build_s = [10.0, 12.0], [20.0, 22.0]
    measured.archived.ingest_s, measured.archived.build_s = [7.0, 8.0], [14.0, 15.0]
    measured.engines = [answered("duckdb", 364.0), answered("spark", 365.0), answered("duckdb", 364.0)]
    cold, asked, start = pipeline.sections(measured)
    assert cold.rows[1] == ("with an AppCDS archive", "7.0, 8.0", "14.0, 15.0", "21.0, 23.0", "22.0")
    assert asked.rows[0] == ("lag by hour", "duckdb", "2.00, 2.00", "1.00, 1.50, 1.00, 1.50", "1.0")
    assert asked.rows[-1][1:4] == ("the pipeline's build", "-", "30.0, 50.0")
    assert "their answers differ" in asked.note
    assert start.rows == (("duckdb", "0.50, 0.50", "100, 100"), ("spark", "0.50", "100"))
