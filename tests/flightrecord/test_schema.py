"""The contract of the flight record: what is written can be read, and the published schema says the same."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from streamapp.flightrecord.schema import RECORD, schema, to_line

LINE: dict[str, Any] = {
    "cluster": "c",
    "namespace": "shop",
    "app": "orders",
    "uid": "u-1",
    "ts": "2026-11-21T12:00:00.000001Z",
    "recorder": "streamapp-operator-0_1",
    "seq": 7,
}
SAMPLE: dict[str, Any] = {
    **LINE,
    "kind": "sample",
    "task": "0_3",
    "role": "STANDBY",
    "ordinal": 2,
    "processId": "00000002-0000-4000-8123-0123456789ab",
    "offset": 41,
    "endOffset": 50,
    "source": "GROUP",
    "intervalSeconds": 10.0,
    "epoch": 1795262400000,
}
SAMPLES: dict[str, Any] = {
    **LINE,
    "kind": "samples",
    "epoch": 1795262400000,
    "copies": [
        {
            "processId": SAMPLE["processId"],
            "ordinal": 2,
            "at": "2026-11-21T12:00:00.000001Z",
            "role": "STANDBY",
            "source": "AGENT",
            "intervalSeconds": 10.0,
            "tasks": ["0_3", "0_4"],
            "offsets": [41, None],
            "endOffsets": [50, None],
        }
    ],
}
VALIDATOR = Draft202012Validator(schema())


@pytest.mark.parametrize("given", [SAMPLE, SAMPLES])
def test_a_line_that_is_read_and_written_is_the_same_but_for_the_version_it_gains(given: dict[str, Any]) -> None:
    record = RECORD.validate_python(given)
    line = to_line(record)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"v": 1, **given}
    assert RECORD.validate_json(line) == record
    VALIDATOR.validate(json.loads(line))


def test_times_keep_their_microseconds_and_say_that_they_are_utc() -> None:
    record = RECORD.validate_python({**SAMPLE, "ts": datetime(2026, 11, 21, tzinfo=UTC)})
    assert json.loads(to_line(record))["ts"] == "2026-11-21T00:00:00.000000Z"


@pytest.mark.parametrize(
    "changes",
    [{"kind": "simple"}, {"offset": -1}, {"task": "0-3"}, {"role": "OWNER"}, {"new": 1}, {"v": 2}, {"ts": "noon"}],
)
def test_what_breaks_the_contract_is_refused_by_both(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RECORD.validate_python({**SAMPLE, **changes})
    # A time is a format, which a validator of schemas need not check.
    assert changes == {"ts": "noon"} or not VALIDATOR.is_valid({**SAMPLE, **changes})


@pytest.mark.parametrize("changes", [{"tasks": []}, {"offsets": [-1, 0]}, {"role": "OWNER"}, {"tasks": ["0_3", "x"]}])
def test_copies_that_break_the_contract_are_refused_by_both(changes: dict[str, Any]) -> None:
    bad = {**SAMPLES, "copies": [{**SAMPLES["copies"][0], **changes}]}
    with pytest.raises(ValidationError):
        RECORD.validate_python(bad)
    assert not VALIDATOR.is_valid(bad)


@pytest.mark.parametrize("changes", [{"offsets": [1]}, {"endOffsets": [1, 2, 3]}])
def test_a_list_that_does_not_fit_the_tasks_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="an entry for each task"):
        RECORD.validate_python({**SAMPLES, "copies": [{**SAMPLES["copies"][0], **changes}]})
