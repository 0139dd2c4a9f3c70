"""Insight comes from a file that anybody can have written: only what is fresh and inside all bounds is read."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.api.insight import (
    MOST_BYTES,
    Advice,
    AppInsight,
    Effect,
    EtaScore,
    Insight,
    InsightExpiredError,
    InsightRefusedError,
    Patch,
    parse,
    to_json,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ETA = EtaScore(cover=0.9, median_error_seconds=-3.0, low=0.8, high=1.5, holds=40, days=20)
WINDOW = Advice(
    knob="HorizontalPodAutoscaler scaleUp window",
    current="not in the record",
    proposed="5m",
    evidence="14 changes up were taken back, each within 4m",
    days=28,
    n=14,
    effect=Effect(low=11.2, mid=14.0, high=14.0, unit="flap pairs fewer a day"),
    vetoes=("see that the lag allows it",),
    patch=Patch(kind="HorizontalPodAutoscaler", name="orders", patch='{"spec": {}}'),
)
ORDERS = AppInsight(namespace="shop", app="orders", uid="u1", eta=ETA, days=28, advice=(WINDOW,))
GOOD = Insight(cluster="north", made_at=NOW - timedelta(hours=1), valid_until=NOW + timedelta(days=1), apps=(ORDERS,))

Json = dict[str, Any]


def document(**changed: Any) -> bytes:
    return json.dumps(json.loads(to_json(GOOD)) | changed).encode()


def with_eta(**changed: Any) -> bytes:
    whole = json.loads(to_json(GOOD))
    whole["apps"][0]["eta"] |= changed
    return json.dumps(whole).encode()


def with_advice(**changed: Any) -> bytes:
    whole = json.loads(to_json(GOOD))
    whole["apps"][0]["advice"][0] |= changed
    return json.dumps(whole).encode()


def with_patch(**changed: Any) -> bytes:
    return with_advice(patch=json.loads(WINDOW.model_dump_json())["patch"] | changed)


def test_what_is_written_is_read_again() -> None:
    assert parse(to_json(GOOD), "north", NOW) == GOOD
    assert parse(to_json(GOOD), None, NOW) == GOOD


def test_what_was_good_and_is_too_old_says_until_when_it_was() -> None:
    with pytest.raises(InsightExpiredError) as expired:
        parse(to_json(GOOD), "north", NOW + timedelta(days=1))
    assert (expired.value.made_at, expired.value.valid_until) == (GOOD.made_at, GOOD.valid_until)
    with pytest.raises(InsightRefusedError) as refused:
        parse(document(cluster="south", validUntil="2026-11-21T12:00:00Z"), "north", NOW)
    assert not isinstance(refused.value, InsightExpiredError)


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
        "no time in UTC": document(madeAt="0001-01-01T00:00:00+14:00", validUntil="0001-01-01T01:00:00+14:00"),
        "no time zone": document(validUntil="2026-11-22T12:00:00"),
        "control characters": with_advice(knob="\u001b[2J"),
        "a line that is too long": with_advice(evidence="x" * 1025),
        "advice as a line": document(apps=[{"namespace": "a", "app": "b", "uid": "c", "advice": ["minReplicas: 3"]}]),
        "too much advice": document(
            apps=[
                json.loads(ORDERS.model_dump_json(by_alias=True))
                | {"advice": [json.loads(WINDOW.model_dump_json())] * 9}
            ]
        ),
        "a patch of a Role": with_patch(kind="Role"),
        "a name with a command": with_patch(name="x;reboot"),
        "a name that is an option": with_patch(name="--all"),
        "a patch that is a list": with_patch(patch="[]"),
        "a patch that is no JSON": with_patch(patch="$(reboot)"),
        "a patch with NaN": with_patch(patch='{"spec": NaN}'),
        "a patch that is deep": with_patch(patch="[" * 500 + "]" * 500),
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
