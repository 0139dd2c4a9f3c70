"""What an ingest makes of lines that are written otherwise than by the recorder, and of files that are none."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamapp.analytics.bronze import ingest as ingest_module
from streamapp.analytics.bronze import quality
from streamapp.analytics.bronze.ingest import Ingest, Ingested, bronze
from streamapp.analytics.errors import AnalyticsError
from streamapp.analytics.progress import Stages
from streamapp.analytics.report.tables import missing
from tests.analytics.conftest import NOW
from tests.analytics.support.reading import records

pytestmark = pytest.mark.analytics

LINE = {"v": 1, "cluster": "c", "namespace": "n", "app": "a", "uid": "u", "ts": "2026-11-05T12:00:00.000000Z"}
SAMPLE = {
    "kind": "sample",
    "task": "0_1",
    "role": "STANDBY",
    "ordinal": 2,
    "processId": "p",
    "offset": 10,
    "endOffset": 12,
}
WORD = {"source": "AGENT", "intervalSeconds": 300.0, "epoch": 7}


def sample(seq: int, **more: Any) -> dict[str, Any]:
    return {**LINE, "recorder": "r", "seq": seq, **SAMPLE, **WORD, **more}


def plain(line: dict[str, Any]) -> str:
    """As the recorder writes it."""
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False)


def write(folder: Path, name: str, lines: Sequence[str]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


def ingest(spark: SparkSession, root: Path, record: Path) -> Ingested:
    return Ingest(spark, bronze(root), Stages(), NOW, most_bad=0.9).run([record])


# As many bytes as a time has more that is written out.
HIDDEN = {"ts": "2026-11-05", "novelty": 123456}
assert len(plain(sample(0, **HIDDEN))) == len(plain(sample(0)))


def test_a_field_that_is_not_known_is_kept_however_its_line_is_written(spark: SparkSession, tmp_path: Path) -> None:
    standing = {name: value for name, value in sample(1).items() if name not in {"offset", "endOffset"}}
    lines = [
        (plain(sample(0)), None),
        (plain(standing), None),
        (json.dumps(sample(2)), None),
        (plain(sample(3, app="ä")), None),
        (json.dumps(sample(4, app="ä"), separators=(",", ":")), None),
        (plain(sample(5, ts="2026-11-05T13:00:00.000000+01:00")), None),
        (plain(sample(6, intervalSeconds=1e20)), None),
        (plain(sample(7, novel="x")), {"novel": "x"}),
        (json.dumps(sample(8, novel=1)), {"novel": "1"}),
        (json.dumps(sample(9, app="ä", novel=1), separators=(",", ":")), {"novel": "1"}),
        (plain(sample(10, **HIDDEN)), {"novelty": "123456"}),
        (plain(standing | {"seq": 11, "novel": {"a": [1]}}), {"novel": '{"a":[1]}'}),
    ]
    write(tmp_path / "record", "a", [line for line, _ in lines])
    done = ingest(spark, tmp_path / "t", tmp_path / "record")
    assert (done.kept, done.bad) == (len(lines), 0)
    kept = sorted(records(tmp_path / "t", "b_sample"), key=lambda row: int(row["seq"]))
    assert [row["extra"] and dict(row["extra"]) for row in kept] == [extra for _, extra in lines]
    assert {(row["task"], row["process_id"], row["epoch"]) for row in kept} == {("0_1", "p", 7)}


def test_bad_samples_and_other_bad_lines_lie_in_quarantine_with_their_place(
    spark: SparkSession, tmp_path: Path
) -> None:
    gap = {**LINE, "recorder": "r", "seq": 5, "kind": "gap", "task": "none", "ordinal": 1, "processId": "p"}
    gap |= {"lastRanAt": LINE["ts"], "stoodSeconds": 1.0, "source": "AGENT"}
    write(tmp_path / "record", "a", [plain(sample(0)), plain(sample(1, offset=13)), plain(sample(2)), "torn"])
    write(tmp_path / "record", "b", ["", plain(sample(3)), plain(sample(4, role="NONE")), plain(gap), plain(LINE)])
    done = ingest(spark, tmp_path / "t", tmp_path / "record")
    assert (done.rows, done.kept, done.bad, done.doubled) == (8, 3, 5, 0)
    bad = {(row["file"][-10:-9], row["line"]): row["rule"] for row in records(tmp_path / "t", "b_quarantine")}
    assert bad == {
        ("a", 2): "endBeforeOffset",
        ("a", 4): "unparsable",
        ("b", 3): "unknownWord",
        ("b", 4): "malformedTask",
        ("b", 5): "unknownKind",
    }


def test_which_numbers_were_read_is_known_to_the_line(spark: SparkSession, tmp_path: Path) -> None:
    for name, numbers in {"a": range(3), "c": range(7, 9), "e": range(40_000, 40_002)}.items():
        write(tmp_path / "record", name, [plain(sample(seq)) for seq in numbers])
    ingest(spark, tmp_path / "t", tmp_path / "record")
    before = bronze(tmp_path / "t").current()
    assert before.recorders == {"r": ((0, 2), (7, 8), (40_000, 40_001))}
    assert missing(before.recorders) == 4 + 39_991

    # Late, one of them bad, and with two lines that are there already.
    late = [plain(sample(seq)) for seq in (3, 4, 6, 8, 2)]
    write(tmp_path / "record", "b", [*late, plain(sample(5, role="NONE"))])
    done = ingest(spark, tmp_path / "t", tmp_path / "record")
    assert (done.kept, done.doubled, done.bad) == (3, 2, 1)
    after = bronze(tmp_path / "t").current()
    assert (after.recorders, after.lines) == ({"r": ((0, 8), (40_000, 40_001))}, 13)
    there = [row["seq"] for row in records(tmp_path / "t", "b_sample")]
    assert sorted(there) == [0, 1, 2, 3, 4, 6, 7, 8, 40_000, 40_001]


def test_damaged_files_are_named_and_stop_nothing(spark: SparkSession, tmp_path: Path) -> None:
    record, root = tmp_path / "record", tmp_path / "t"
    write(record, "a", [plain(sample(0))])
    write(record, "b", [plain(sample(seq)) for seq in range(1, 9)])
    torn = gzip.compress("".join(f"{plain(sample(seq))}\n" for seq in range(10, 4000)).encode())[:-2000]
    (record / "b.jsonl.gz").write_bytes(torn)
    (record / "c.jsonl.gz").write_bytes(b'{"kind":"sample"}\n')
    write(record, "d", [plain(sample(5000))])
    done = ingest(spark, root, record)
    assert (done.files, done.bad, done.doubled) == (4, 0, 0)
    numbers = sorted(row["seq"] for row in records(root, "b_sample"))
    assert (numbers[:2], numbers[-1]) == ([0, 10], 5000)
    assert numbers[1:-1] == list(range(10, numbers[-2] + 1)), "the whole lines before the tear"
    assert len(numbers) > 1000
    told = sorted(bronze(root).current().damaged.values())
    assert sorted(done.damaged) == told
    assert told[0].startswith(f"{record}/b.jsonl.gz: {len(numbers) - 2} whole lines were read before the damage: ")
    assert told[1].startswith(f"{record}/c.jsonl.gz: 0 whole lines")
    assert not list((root / "bronze" / "staging").glob("*"))
    assert (ingest(spark, root, record).files, len(bronze(root).current().damaged)) == (0, 2)


@pytest.mark.parametrize("more", [{"v": 2}, {"v": 2, "ordinal": "two"}, {"v": 2, "kind": "gap"}])
def test_one_line_of_a_newer_version_stops_the_run_before_it_is_lost(
    spark: SparkSession, tmp_path: Path, more: dict[str, Any]
) -> None:
    write(tmp_path / "record", "a", [plain(sample(0)), "torn", "torn"])
    write(tmp_path / "record", "b", [plain(sample(1)), plain(sample(2, **more))])
    with pytest.raises(AnalyticsError, match=r"b\.jsonl\.gz: 1 lines .* first line 2 .*upgrade"):
        ingest(spark, tmp_path / "t", tmp_path / "record")
    assert not bronze(tmp_path / "t").current().number


def test_lines_of_a_newer_operator_come_out_of_quarantine_after_an_upgrade(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, record = tmp_path / "tables", tmp_path / "record"
    write(record, "a", [plain(sample(0)), plain(sample(1, role="SHADOW")), "{torn"])
    monkeypatch.setattr(ingest_module, "CONTRACT", "older")
    assert ingest(spark, root, record).bad == 2
    assert Ingest(spark, bronze(root), Stages(), NOW).again() is None
    # The upgrade knows the word.
    monkeypatch.setattr(ingest_module, "CONTRACT", "newer")
    monkeypatch.setitem(quality.WORDS, ("sample", "role"), ("ACTIVE", "STANDBY", "LEARNER", "SHADOW"))
    done = Ingest(spark, bronze(root), Stages(), NOW).again()
    assert done is not None
    assert (done.rows, done.kept, done.bad, done.version.lines) == (2, 1, 1, 3)
    assert sorted((row["seq"], row["role"]) for row in records(root, "b_sample")) == [(0, "STANDBY"), (1, "SHADOW")]
    assert [(row["rule"], row["line"]) for row in records(root, "b_quarantine")] == [("unparsable", 3)]
    assert Ingest(spark, bronze(root), Stages(), NOW).again() is None
