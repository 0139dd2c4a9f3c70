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
VALIDATOR = Draft202012Validator(schema())


def test_a_line_that_is_read_and_written_is_the_same_but_for_the_version_it_gains() -> None:
    record = RECORD.validate_python(SAMPLE)
    line = to_line(record)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"v": 1, **SAMPLE}
    assert RECORD.validate_json(line) == record


def test_times_keep_their_microseconds_and_say_that_they_are_utc() -> None:
    record = RECORD.validate_python({**SAMPLE, "ts": datetime(2026, 11, 21, tzinfo=UTC)})
    assert json.loads(to_line(record))["ts"] == "2026-11-21T00:00:00.000000Z"


def test_the_schema_takes_what_is_written() -> None:
    VALIDATOR.validate(json.loads(to_line(RECORD.validate_python(SAMPLE))))


@pytest.mark.parametrize(
    "changes",
    [{"kind": "simple"}, {"offset": -1}, {"task": "0-3"}, {"role": "OWNER"}, {"new": 1}, {"v": 2}, {"ts": "noon"}],
)
def test_what_breaks_the_contract_is_refused_by_both(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RECORD.validate_python({**SAMPLE, **changes})
    # A time is a format, which a validator of schemas need not check.
    assert changes == {"ts": "noon"} or not VALIDATOR.is_valid({**SAMPLE, **changes})
