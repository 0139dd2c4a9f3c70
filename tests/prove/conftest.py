"""What all tests of the sweep have in common."""

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """Put back how logs are written: stories are played without any."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)
