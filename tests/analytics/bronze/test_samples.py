"""Lines of samples: as many rows as copies, and one line all the same where lines are counted, judged or dropped."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamapp.analytics.bronze.ingest import Ingest, Ingested, bronze
from streamapp.analytics.build import Build
from streamapp.analytics.progress import Stages
from streamapp.analytics.synthetic.fleet import Fleet
from streamapp.analytics.synthetic.generate import write_record
from streamapp.analytics.tables.derived_schemas import GOLD, SILVER
from tests.analytics.conftest import NOW
from tests.analytics.support import shapes
from tests.analytics.support.reading import records, rows

pytestmark = [pytest.mark.analytics, pytest.mark.timeout(900)]

LINE = {"v": 1, "cluster": "c", "namespace": "n", "app": "a", "uid": "u", "ts": "2026-11-05T12:00:05.000000Z"}
ACTIVE = {
    "processId": "p",
    "ordinal": 2,
    "at": "2026-11-05T12:00:05.000000Z",
    "role": "ACTIVE",
    "state": "RUNNING",
    "source": "AGENT",
    "intervalSeconds": 300.0,
    "tasks": ["0_1", "1_1"],
}
STANDBY = {
    **{name: value for name, value in ACTIVE.items() if name != "state"},
    "at": "2026-11-05T12:00:00.000000Z",
    "role": "STANDBY",
    "tasks": ["0_2", "0_3", "0_4"],
    "offsets": [10, None, 12],
    "endOffsets": [15, None, 12],
}
GONE: Any = object()
"""A field that is left out."""


def samples(seq: int, *copies: dict[str, Any], **more: Any) -> dict[str, Any]:
    told = {**LINE, "recorder": "r", "seq": seq, "kind": "samples", "epoch": 7, "copies": list(copies), **more}
    return {name: value for name, value in told.items() if value is not GONE}


def changed(copies: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {name: value for name, value in {**copies, **changes}.items() if value is not GONE}


def ingest(spark: SparkSession, root: Path, record: Path) -> Ingested:
    return Ingest(spark, bronze(root), Stages(), NOW, most_bad=0.95).run([record])


def test_each_copy_is_a_row_with_its_own_time_and_what_is_not_known_is_null(
    spark: SparkSession, tmp_path: Path
) -> None:
    night = changed(ACTIVE, at="2026-11-06T00:00:01.000000Z", tasks=["0_1"])
    lines = [
        samples(0, ACTIVE, STANDBY),
        samples(1, changed(STANDBY, at="2026-11-05T23:59:59.000000Z", tasks=["0_2"], offsets=[1], endOffsets=GONE)),
        samples(2, changed(night, at="2026-11-05T23:59:59.000000Z"), changed(night, tasks=["0_5"]), novel=1),
    ]
    shapes.write(tmp_path / "record" / "a-samples.jsonl.gz", lines)
    done = ingest(spark, tmp_path / "t", tmp_path / "record")
    assert (done.rows, done.kept, done.bad, done.doubled) == (3, 3, 0, 0)
    names = ("seq", "task", "role", "state", "offset", "end_offset", "dt", "is_first")
    found = [tuple(row[name] for name in names) for row in records(tmp_path / "t", "b_sample")]
    assert sorted(found, key=str) == [
        (0, "0_1", "ACTIVE", "RUNNING", None, None, "2026-11-05", True),
        (0, "0_2", "STANDBY", None, 10, 15, "2026-11-05", False),
        (0, "0_3", "STANDBY", None, None, None, "2026-11-05", False),
        (0, "0_4", "STANDBY", None, 12, 12, "2026-11-05", False),
        (0, "1_1", "ACTIVE", "RUNNING", None, None, "2026-11-05", False),
        (1, "0_2", "STANDBY", None, 1, None, "2026-11-05", True),
        (2, "0_1", "ACTIVE", "RUNNING", None, None, "2026-11-05", True),
        (2, "0_5", "ACTIVE", "RUNNING", None, None, "2026-11-06", False),
    ]
    rows_of = records(tmp_path / "t", "b_sample")
    assert {(row["task"], f"{row['ts']:%H:%M:%S}") for row in rows_of if row["seq"] == 0} == {
        *{(task, "12:00:05") for task in ("0_1", "1_1")},
        *{(task, "12:00:00") for task in ("0_2", "0_3", "0_4")},
    }
    assert {row["seq"]: row["extra"] and dict(row["extra"]) for row in rows_of} == {0: None, 1: None, 2: {"novel": "1"}}
    assert {(row["process_id"], row["ordinal"], row["epoch"], row["source"]) for row in rows_of} == {
        ("p", 2, 7, "AGENT")
    }


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no copies": (samples(0), "missingField"),
    "no list of copies": (samples(0, copies=GONE), "missingField"),
    "no epoch": (samples(0, ACTIVE, epoch=GONE), "missingField"),
    "no process": (samples(0, STANDBY, changed(ACTIVE, processId=GONE)), "missingField"),
    "no tasks": (samples(0, STANDBY, changed(ACTIVE, tasks=[])), "missingField"),
    "a role of its own": (samples(0, STANDBY, changed(ACTIVE, role="OWNER")), "unknownWord"),
    "a task of its own": (samples(0, STANDBY, changed(ACTIVE, tasks=["0_1", "x"])), "malformedTask"),
    "a task that is null": (samples(0, STANDBY, changed(ACTIVE, tasks=["0_1", None])), "malformedTask"),
    "too few offsets": (samples(0, ACTIVE, changed(STANDBY, offsets=[1, 2])), "unequalLists"),
    "a negative offset": (samples(0, ACTIVE, changed(STANDBY, offsets=[1, None, -1])), "negativeNumber"),
    "a negative ordinal": (samples(0, STANDBY, changed(ACTIVE, ordinal=-1)), "negativeNumber"),
    "an offset past the end": (samples(0, ACTIVE, changed(STANDBY, endOffsets=[15, None, 11])), "endBeforeOffset"),
    "a copy of tomorrow": (samples(0, STANDBY, changed(ACTIVE, at="2027-11-05T12:00:00.000000Z")), "fromTheFuture"),
    "a number that is none": (samples(0, STANDBY, changed(ACTIVE, ordinal="two")), "wrongType"),
    "an offset that is none": (samples(0, changed(STANDBY, offsets=["ten", None, 1])), "wrongType"),
}


def test_a_bad_copy_takes_its_line_to_the_quarantine_as_a_whole(spark: SparkSession, tmp_path: Path) -> None:
    lines = [{**line, "seq": seq} for seq, (line, _) in enumerate(BAD.values())]
    shapes.write(tmp_path / "record" / "a-samples.jsonl.gz", [*lines, samples(len(lines), ACTIVE, STANDBY)])
    done = ingest(spark, tmp_path / "t", tmp_path / "record")
    assert (done.rows, done.kept, done.bad) == (len(BAD) + 1, 1, len(BAD))
    found = {row["line"]: row["rule"] for row in records(tmp_path / "t", "b_quarantine")}
    assert dict(zip(BAD, (found[line + 1] for line in range(len(BAD))), strict=True)) == {
        name: rule for name, (_, rule) in BAD.items()
    }
    kept = {json.loads(row["raw"])["seq"] for row in records(tmp_path / "t", "b_quarantine")}
    assert kept == {*range(len(BAD))}


def test_lines_are_counted_known_and_dropped_as_lines_whatever_is_in_them(spark: SparkSession, tmp_path: Path) -> None:
    record, root = tmp_path / "record", tmp_path / "t"
    shapes.write(record / "a-samples.jsonl.gz", [samples(seq, ACTIVE, STANDBY) for seq in range(3)])
    done = ingest(spark, root, record)
    assert (done.rows, done.kept, done.doubled) == (3, 3, 0)
    assert bronze(root).current().recorders == {"r": ((0, 2),)}
    # Another file of the same lines, of two new ones, and of one that is in it twice; its end is torn.
    late = [samples(seq, ACTIVE, STANDBY) for seq in (1, 2, 4, 4, 3)]
    path = shapes.write(record / "b-samples.jsonl.gz", [*late, *(samples(seq, ACTIVE) for seq in range(9, 4000))])
    path.write_bytes(path.read_bytes()[:-300])
    done = ingest(spark, root, record)
    assert [told.split(":")[0] for told in done.damaged] == [str(path)]
    assert (done.rows - done.kept, done.doubled, done.bad) == (3, 3, 0)
    [low, high], torn = bronze(root).current().recorders["r"]
    assert ((low, high), torn[0], torn[1]) == ((0, 4), 9, 9 + done.rows - 6)
    tasks = [(row["seq"], row["task"]) for row in records(root, "b_sample") if row["seq"] < 9]
    assert len(tasks) == len(set(tasks)) == 5 * 5


def without_numbers(root: Path, table: str) -> list[str]:
    """Rows without what says in which line a sample stood."""
    if table not in {"b_sample", "s_learner_sample"}:
        return rows(root, table)
    return sorted(
        str(sorted((name, str(value)) for name, value in row.items() if name not in {"seq", "is_first"}))
        for row in records(root, table)
    )


def apart(lines: list[shapes.Line]) -> dict[str, list[shapes.Line]]:
    """As the recorder writes them: the samples in a file of their own."""
    samples = [line for line in lines if line["kind"] == "samples"]
    return {"": [line for line in lines if line["kind"] != "samples"], "-samples": samples}


def test_a_record_of_an_older_operator_gives_the_same_tables(spark: SparkSession, tmp_path: Path) -> None:
    made = [path for path, _ in write_record(Fleet(apps=3, tasks=4, file_seconds=14_400), tmp_path / "made")]
    lines = shapes.lines_of(made)
    half = len(lines) // 2
    old, before = ([one for line in part for one in shapes.one_by_one(line)] for part in (lines, lines[:half]))
    assert len(old) > 3 * len(lines)
    for name, parts in {
        "new": [apart(lines)],
        "old": [{"": old}],
        "upgraded": [{"": before}, apart(lines[half:])],
    }.items():
        root = tmp_path / name
        for number, part in enumerate(parts):
            for mark, told in part.items():
                shapes.write(root / "record" / f"{number}{mark}.jsonl.gz", told)
            done = ingest(spark, root, root / "record")
            assert (done.bad, done.doubled) == (0, 0)
        Build(spark, root, Stages()).run()
    for table in ("b_sample", *SILVER, *GOLD):
        new = without_numbers(tmp_path / "new", table)
        assert without_numbers(tmp_path / "old", table) == new, table
        assert without_numbers(tmp_path / "upgraded", table) == new, table
