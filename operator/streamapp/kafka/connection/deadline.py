"""The deadline that every call of this package has."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from streamapp.kafka.connection.errors import timed_out


@asynccontextmanager
async def within(seconds: float, what: str) -> AsyncIterator[None]:
    """Give the body `seconds`, then cancel what it waits for and raise KafkaTimeoutError.

    `what` names the object and the call, for example `group counter: describe`.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise timed_out(what, seconds) from error
