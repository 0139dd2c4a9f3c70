"""An event loop in a thread of its own for the election: renewals do not wait for decisions.

Used by `lifecycle`. A process short of processor time, a long garbage collection or the many passes after a take-over
can block the main event loop for longer than a renewal may take, even if the API server has answered in time.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from streamapp.controller.leader.leadership import Leadership

T = TypeVar("T")
LONGEST_END_SECONDS = 5.0


class ThreadLoop:
    """One such loop."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)

    async def run(self, what: Coroutine[Any, Any, T]) -> T:
        """Run it there and wait for it here; if the caller is cancelled, so is the coroutine."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(what, self._loop))

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LONGEST_END_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()

    @classmethod
    @asynccontextmanager
    async def running(cls, name: str) -> AsyncIterator["ThreadLoop"]:
        """Start one, and end it with the block."""
        own = cls(name)
        own._thread.start()
        try:
            yield own
        finally:
            await asyncio.to_thread(own._end)


class RemoteLeadership:
    """A `leadership.Leadership` that lives in a thread loop, for callers in another loop.

    What is awaited runs there. What is asked without waiting reads single values, which the other thread replaces
    whole.
    """

    def __init__(self, of: Leadership, own: ThreadLoop) -> None:
        self._of, self._own = of, own

    @property
    def transitions(self) -> int:
        """As the one that it stands for."""
        return self._of.transitions

    @property
    def holder(self) -> str:
        """As the one that it stands for."""
        return self._of.holder

    def leads(self) -> bool:
        """As the one that it stands for."""
        return self._of.leads()

    def check(self) -> None:
        """As the one that it stands for."""
        self._of.check()

    def blind(self) -> str:
        """As the one that it stands for."""
        return self._of.blind()

    async def confirm(self) -> None:
        """As the one that it stands for."""
        await self._own.run(self._of.confirm())

    async def give_way(self, number: int) -> None:
        """As the one that it stands for."""
        await self._own.run(self._of.give_way(number))

    async def stand(self) -> None:
        """As the one that it stands for."""
        await self._own.run(self._of.stand())

    async def keep(self) -> None:
        """As the one that it stands for."""
        await self._own.run(self._of.keep())

    async def release(self) -> None:
        """As the one that it stands for."""
        await self._own.run(self._of.release())
