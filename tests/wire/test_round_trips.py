"""What was encoded from Apache Kafka's layouts comes back from the decoders as it was, in every version."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamapp.core.facts.ids import TaskId
from streamapp.wire.assignment import DecodedAssignment, decode_assignment
from streamapp.wire.errors import UndecodableError
from streamapp.wire.subscription import (
    DecodedSubscription,
    SubscriptionInfo,
    decode_subscription,
    decode_subscription_info,
)
from tests.wire import encoding, strategies

NO_DEADLINE = settings(deadline=None)


@NO_DEADLINE
@given(strategies.subscriptions())
def test_a_subscription_comes_back_whole(subscription: DecodedSubscription) -> None:
    assert decode_subscription(encoding.subscription(subscription)) == subscription


@NO_DEADLINE
@given(strategies.assignments(), st.integers(0, 3))
def test_an_assignment_comes_back_whole(assignment: DecodedAssignment, consumer_version: int) -> None:
    assert decode_assignment(encoding.assignment(assignment, consumer_version)) == assignment


@NO_DEADLINE
@given(strategies.subscriptions(), st.data())
def test_a_subscription_cut_short_anywhere_is_undecodable(
    subscription: DecodedSubscription, data: st.DataObject
) -> None:
    raw = encoding.subscription(subscription)
    with pytest.raises(UndecodableError):
        decode_subscription(raw[: data.draw(st.integers(0, len(raw) - 1))])


@NO_DEADLINE
@given(strategies.assignments(), st.data())
def test_an_assignment_cut_short_anywhere_is_undecodable(assignment: DecodedAssignment, data: st.DataObject) -> None:
    raw = encoding.assignment(assignment, 3)
    with pytest.raises(UndecodableError):
        decode_assignment(raw[: data.draw(st.integers(0, len(raw) - 1))])


@NO_DEADLINE
@given(strategies.subscriptions(), st.binary(min_size=1, max_size=5))
def test_bytes_left_over_after_a_subscription_are_undecodable(subscription: DecodedSubscription, more: bytes) -> None:
    with pytest.raises(UndecodableError, match=f"{len(more)} bytes left over"):
        decode_subscription(encoding.subscription(subscription) + more)


@NO_DEADLINE
@given(strategies.assignments(), st.binary(min_size=1, max_size=5))
def test_bytes_left_over_after_an_assignment_are_undecodable(assignment: DecodedAssignment, more: bytes) -> None:
    with pytest.raises(UndecodableError, match=f"{len(more)} bytes left over"):
        decode_assignment(encoding.assignment(assignment, 3) + more)


@NO_DEADLINE
@given(strategies.subscription_infos(), st.one_of(st.integers(-(2**31), 6), st.integers(12, 2**31 - 1)))
def test_a_version_that_nobody_described_is_refused_by_number(info: SubscriptionInfo, version: int) -> None:
    raw = version.to_bytes(4, signed=True) + encoding.subscription_info(info)[4:]
    with pytest.raises(UndecodableError, match=f"version {version} is not one of 7–11"):
        decode_subscription_info(raw)


def test_a_task_with_several_inputs_is_one_task() -> None:
    """The bytes name a task once per input partition."""
    partitions = b"\0\3" + encoding.array(
        [encoding.string("a") + encoding.array([b"\0\0\0\0"]), encoding.string("b") + encoding.array([b"\0\0\0\0"])]
    )
    info = (
        bytes([0, 0, 0, 11, 0, 0, 0, 11])
        + encoding.array([encoding.task_id(11, TaskId(0, 0))] * 2)
        + bytes(16)
        + bytes(4)
        + (2**63 - 1).to_bytes(8)
    )
    decoded = decode_assignment(partitions + encoding.blob(info))
    assert decoded.active == {TaskId(0, 0): {("a", 0), ("b", 0)}}
