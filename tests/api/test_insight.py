"""Insight comes from a file that anybody can have written: only what is fresh and inside all bounds is read."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.api.insight import (
    MOST_BYTES,
    AppInsight,
    EtaScore,
    Insight,
    InsightRefusedError,
    parse,
    to_json,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ETA = EtaScore(cover=0.9, median_error_seconds=-3.0, low=0.8, high=1.5, holds=40, days=20)
ORDERS = AppInsight(namespace="shop", app="orders", uid="u1", eta=ETA, advice=("minReplicas: 2 → 3",))
GOOD = Insight(cluster="north", made_at=NOW - timedelta(hours=1), valid_until=NOW + timedelta(days=1), apps=(ORDERS,))

Json = dict[str, Any]


def document(**changed: Any) -> bytes:
    return json.dumps(json.loads(to_json(GOOD)) | changed).encode()


def with_eta(**changed: Any) -> bytes:
    whole = json.loads(to_json(GOOD))
    whole["apps"][0]["eta"] |= changed
    return json.dumps(whole).encode()


def test_what_is_written_is_read_again() -> None:
    assert parse(to_json(GOOD), "north", NOW) == GOOD


@pytest.mark.parametrize(
    "text",
    {
        "nothing": b"",
        "no JSON": b"\xff\x00{",
        "ten megabytes": b" " * 10_000_000 + to_json(GOOD),
        "a byte too many": to_json(GOOD).ljust(MOST_BYTES + 1),
        "deep": b'{"apps":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        "a list": b"[]",
        "another version": document(v=2),
        "an unknown field": document(command="scale"),
        "NaN": with_eta(low=float("nan")),
        "infinite": with_eta(high=float("inf")),
        "a huge number": with_eta(high=1e300),
        "negative": with_eta(low=-1.0),
        "a text for a number": with_eta(low="1"),
        "true for a number": with_eta(holds=True),
        "another cluster": document(cluster="south"),
        "made in the future": document(madeAt="2026-11-21T12:06:00Z"),
        "no longer valid": document(validUntil="2026-11-21T12:00:00Z"),
        "valid before it was made": document(madeAt="2026-11-21T12:04:00Z", validUntil="2026-11-21T12:03:00Z"),
        "valid for ever": document(validUntil="9999-01-01T00:00:00Z"),
        "no time zone": document(validUntil="2026-11-22T12:00:00"),
        "control characters": document(apps=[{"namespace": "a", "app": "b", "uid": "c", "advice": ["\u001b[2J"]}]),
        "too many": document(apps=[{"namespace": "a", "app": "b", "uid": "c"}] * 1001),
    }.values(),
    ids=lambda text: str(len(text)),
)
def test_anything_else_is_refused(text: bytes) -> None:
    with pytest.raises(InsightRefusedError) as refused:
        parse(text, "north", NOW)
    assert 0 < len(str(refused.value)) < 500


@given(
    text=st.binary(max_size=200)
    | st.recursive(st.none() | st.floats() | st.text(), st.lists).map(lambda it: json.dumps(it).encode())
)
def test_rubbish_is_refused_and_raises_nothing_else(text: bytes) -> None:
    with pytest.raises(InsightRefusedError):
        parse(text, "north", NOW)


def test_an_application_is_found_by_its_uid_alone_and_never_by_half() -> None:
    assert GOOD.of("shop", "orders", "u1") is GOOD.apps[0]
    assert GOOD.of("shop", "orders", "u2") is None
    assert GOOD.of("bank", "orders", "u1") is None
    assert GOOD.model_copy(update={"apps": (ORDERS, ORDERS)}).of("shop", "orders", "u1") is None


@pytest.mark.parametrize(
    ("changed", "is_good"),
    [
        ({}, True),
        ({"cover": 0.85}, True),
        ({"cover": 0.97}, True),
        ({"cover": 0.849}, False),
        ({"cover": 0.971}, False),
        ({"holds": 19}, False),
        ({"low": 1.6}, False),
    ],
)
def test_a_range_is_shown_only_while_its_cover_is_good(changed: Json, is_good: bool) -> None:
    assert ETA.model_copy(update=changed).is_good is is_good
