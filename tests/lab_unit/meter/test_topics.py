"""What the reader says where there is no broker."""

import socket
from collections.abc import Iterator

import pytest

from lab.errors import LabError
from lab.meter import topics
from lab.meter.topics import Broker, Isolation, Span, read


@pytest.fixture
def closed_port() -> Iterator[str]:
    """Give an address that is bound by us and where nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


def test_a_broker_that_does_not_answer_is_named(closed_port: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "REQUEST_S", 0.3)
    with pytest.raises(LabError) as caught:
        Broker(closed_port).partitions("counter-input")

    assert caught.value.what == f"broker {closed_port}: did not give the partitions of counter-input"


def test_a_reading_that_brings_nothing_ends_and_names_the_partitions(closed_port: str) -> None:
    with pytest.raises(LabError) as caught:
        list(read(closed_port, "counter-input", {2: Span(0, 9), 3: Span(5, 5)}, Isolation.COMMITTED, stall_s=0.3))

    assert (caught.value.what, caught.value.why) == (
        f"topic counter-input at {closed_port}: nothing new for 0.3 s",
        "partition 2 stands at 0 of 9; a transaction may be open there",
    )


def test_nothing_to_read_needs_no_broker(closed_port: str) -> None:
    assert list(read(closed_port, "counter-input", {0: Span(4, 4)}, Isolation.UNCOMMITTED)) == []
