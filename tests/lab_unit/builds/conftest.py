"""What the tests of builders share."""

import socket
from collections.abc import Iterator

import pytest


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Give a port of 127.0.0.1 that is bound by us and where nobody listens: a network that refuses at once."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]
