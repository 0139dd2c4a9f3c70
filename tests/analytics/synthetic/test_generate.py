"""What is made up keeps the contract, and follows from its seed alone."""

import gzip
import json
from pathlib import Path

from jsonschema import Draft202012Validator

from streamapp.analytics.synthetic.fleet import Fleet
from streamapp.analytics.synthetic.generate import planted, write_record
from streamapp.flightrecord.schema import RECORD, SampleLine, SamplesLine, schema
from tests.analytics.support.shapes import one_by_one

SMALL = Fleet(apps=3, days=1, tasks=4, file_seconds=21_600)


def lines(folder: Path) -> list[bytes]:
    """In the order of their numbers."""
    files = sorted(folder.glob("*.jsonl.gz"))
    found = [line for path in files for line in gzip.decompress(path.read_bytes()).splitlines()]
    return sorted(found, key=lambda line: int(json.loads(line)["seq"]))


def test_every_line_keeps_the_contract_and_numbers_rise_by_one(tmp_path: Path) -> None:
    told = dict(write_record(SMALL, tmp_path))
    records = [RECORD.validate_json(line) for line in lines(tmp_path)]
    assert [record.seq for record in records] == list(range(sum(told.values())))
    assert [record.ts for record in records] == sorted(record.ts for record in records)
    assert {record.kind for record in records} >= {"samples", "scale", "decision", "step", "stepClosed", "pod", "group"}
    for path in tmp_path.glob("*.jsonl.gz"):
        kinds = {json.loads(line)["kind"] for line in gzip.decompress(path.read_bytes()).splitlines()}
        assert (kinds == {"samples"}) is path.name.endswith("-samples.jsonl.gz")
    looks = [record for record in records if isinstance(record, SamplesLine)]
    assert all(look.ts == max(one.at for one in look.copies) for look in looks)
    validator = Draft202012Validator(schema())
    assert not [
        error
        for record in (*records[:50], *looks[:20])
        for error in validator.iter_errors(record.model_dump(mode="json", by_alias=True, exclude_none=True))
    ]


def test_a_seed_makes_the_same_record_and_another_seed_another(tmp_path: Path) -> None:
    for name, fleet in (("a", SMALL), ("b", SMALL), ("c", Fleet(apps=3, tasks=4, file_seconds=21_600, seed=2))):
        list(write_record(fleet, tmp_path / name))
    assert lines(tmp_path / "a") == lines(tmp_path / "b")
    assert lines(tmp_path / "a") != lines(tmp_path / "c")
    assert planted(tmp_path / "a") == planted(tmp_path / "b") != planted(tmp_path / "c")


def test_copies_catch_up_at_the_rates_that_are_planted(tmp_path: Path) -> None:
    list(write_record(SMALL, tmp_path))
    rates = planted(tmp_path).rates
    single = [RECORD.validate_python(one) for line in lines(tmp_path) for one in one_by_one(json.loads(line))]
    samples = [record for record in single if isinstance(record, SampleLine)]
    runs: dict[tuple[str, str, str, int], list[SampleLine]] = {}
    behind = [one for one in samples if one.role.value == "LEARNER" and (one.end_offset or 0) > (one.offset or 0)]
    for one in behind:
        if one.app != "app-001":  # It has the sick volume.
            runs.setdefault((one.app, one.task, one.process_id, one.epoch), []).append(one)
    assert len(runs) > 5
    for (app, task, *_), run in ((which, run) for which, run in runs.items() if len(run) > 2):
        moved = (run[-1].offset or 0) - (run[0].offset or 0)
        gross = moved / (run[-1].ts - run[0].ts).total_seconds()
        assert 0.8 < gross / rates[app][task.partition("_")[0]] < 1.25
