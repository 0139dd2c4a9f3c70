"""What agents are told, what they answer, and the tokens."""

import hashlib
import hmac
import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.core.facts.agent_reports import Rebalance
from streamapp.core.facts.hold_record import Epoch
from streamapp.core.facts.ids import ProcessId
from streamapp.wire.agent_token import accepted, token
from streamapp.wire.announcement import announcement, epoch_in, error_in, heartbeat_cap
from tests.wire.agent_reports import ANNOUNCEMENT_SCHEMA, HEARTBEAT_SCHEMA

TWO = [ProcessId.parse(f"0000000{number}-0000-4000-8123-0123456789ab") for number in (2, 1)]
EPOCH = Epoch(lease=3, counter=1790000000)


def test_an_announcement_is_what_the_schema_asks_for() -> None:
    made = json.loads(announcement(TWO, EPOCH, Rebalance.CONSERVATIVE, timedelta(seconds=20)))
    ANNOUNCEMENT_SCHEMA.validate(made)
    assert made == {
        "epoch": {"lease": 3, "counter": 1790000000},
        "ttlSeconds": 20,
        "processIds": [str(TWO[1]), str(TWO[0])],
        "rebalance": "Conservative",
    }


@given(
    st.lists(st.uuids().map(ProcessId), max_size=20),
    st.builds(Epoch, lease=st.integers(0, 2**40), counter=st.integers(0, 2**40)),
    st.sampled_from(Rebalance),
    st.integers(1, 60),
)
def test_every_announcement_keeps_the_schema_and_a_renewal_is_the_same_bytes(
    processes: list[ProcessId], epoch: Epoch, rebalance: Rebalance, seconds: int
) -> None:
    made = announcement(processes, epoch, rebalance, timedelta(seconds=seconds))
    ANNOUNCEMENT_SCHEMA.validate(json.loads(made))
    assert made == announcement(reversed(processes), epoch, rebalance, timedelta(seconds=seconds))
    assert epoch_in(made) == epoch


@pytest.mark.parametrize("ttl", [timedelta(0), timedelta(milliseconds=900), timedelta(seconds=601)])
def test_a_time_that_no_agent_takes_is_refused(ttl: timedelta) -> None:
    with pytest.raises(ValueError, match="only for 1 to 600 s"):
        announcement(TWO, EPOCH, Rebalance.EAGER, ttl)


@pytest.mark.parametrize(("cap", "ttl"), [(100, 0), (300, 60_000), (5_000, 120_000)])
def test_a_heartbeat_cap_is_what_the_schema_asks_for(cap: int, ttl: int) -> None:
    made = json.loads(heartbeat_cap(timedelta(milliseconds=cap), timedelta(milliseconds=ttl)))
    HEARTBEAT_SCHEMA.validate(made)
    assert made == {"capMillis": cap, "ttlSeconds": ttl // 1000}


@pytest.mark.parametrize(
    ("cap", "ttl", "says"),
    [(99, 0, "not from"), (5_001, 0, "not from"), (300, 121_000, "only for"), (300, -1, "only for")],
)
def test_a_heartbeat_cap_that_no_agent_takes_is_refused(cap: int, ttl: int, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        heartbeat_cap(timedelta(milliseconds=cap), timedelta(milliseconds=ttl))


def test_more_processes_than_agents_take_are_refused() -> None:
    many = [ProcessId.parse(f"{number:08x}-0000-4000-8123-0123456789ab") for number in range(1001)]
    with pytest.raises(ValueError, match="1001 processes, at most 1000"):
        announcement(many, EPOCH, Rebalance.EAGER, timedelta(seconds=5))


@pytest.mark.parametrize(
    ("answer", "epoch", "error"),
    [
        (b'{"epoch": {"lease": 1, "counter": 2}}', Epoch(1, 2), ""),
        (b'{"error": "a higher\\nepoch", "epoch": {"lease": 1, "counter": 2}}', Epoch(1, 2), "a higher epoch"),
        (b'{"epoch": {"lease": true, "counter": 2}}', None, ""),
        (b'{"epoch": {"lease": -1, "counter": 2}}', None, ""),
        (b'{"epoch": 5, "error": 5}', None, ""),
        (b"[1]", None, ""),
        (b"\xff", None, ""),
        (b"[" * 100_000, None, ""),
    ],
)
def test_an_answer_is_read_as_far_as_it_says_something(answer: bytes, epoch: Epoch | None, error: str) -> None:
    assert (epoch_in(answer), error_in(answer)) == (epoch, error)


KEY, OTHER, UID = b"k" * 32, b"o" * 32, "5c1f0a52-7d0e-4f0e-9d57-0a1b2c3d4e5f"


def test_a_token_is_the_hmac_of_the_protocol() -> None:
    assert token(KEY, UID) == hmac.digest(KEY, f"streamapp.dev/agent/{UID}".encode(), "sha256").hex()
    # Pinned: agents of a running application know its hash.
    assert token(KEY, UID) == "4e5b77d369e1fd3f2c4004e382bf5cec3b7731a867a922fe3efcd434d5152781"
    assert token(KEY, UID) != token(KEY, "another") != token(OTHER, UID)


def test_a_template_has_the_hashes_of_all_tokens_in_an_order_that_does_not_change() -> None:
    hashes = {hashlib.sha256(token(key, UID).encode()).hexdigest() for key in (KEY, OTHER)}
    assert set(accepted([KEY, OTHER], UID).split(",")) == hashes
    assert accepted([KEY, OTHER], UID) == accepted([OTHER, KEY], UID)
    assert accepted([KEY, KEY], UID) == accepted([KEY], UID)
    assert accepted([], UID) == ""
