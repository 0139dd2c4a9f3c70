"""Lets the decisions of large applications have the event loop one at a time, with a breath after each.

Used by `reconcile`. A decision about thousands of tasks takes half a second in which nobody else runs. Several of them
in one go take longer than a request may: an answer of a broker or of the API server is there, and comes too late.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

LONG_SECONDS = 0.05
BREATH_SECONDS = 0.01
"""After work that was longer than that: for answers that have come meanwhile, and for what is sent next."""


class Turns:
    """Whose turn it is."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for it; what is done in this block awaits nothing."""
        async with self._lock:
            loop = asyncio.get_running_loop()
            began = loop.time()
            yield
            if loop.time() - began > LONG_SECONDS:
                await asyncio.sleep(BREATH_SECONDS)
