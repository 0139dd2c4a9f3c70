"""What all tests of the shell have in common."""

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict


@pytest.fixture(autouse=True)
def log_lines() -> Iterator[list[EventDict]]:
    """Catch the log."""
    with capture_logs() as lines:
        yield lines
