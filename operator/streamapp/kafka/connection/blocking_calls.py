"""Runs what blocks (looking names up, reading certificates) in few threads, so that one that hangs holds no other up.

Used by `connector` and `tokens`; one for the whole process. A thread that hangs cannot be ended, so places are counted
until the thread has returned, whether or not its caller still waits:

- a call has a key, such as the name that is looked up: calls of one key share one thread;
- keys whose last call was quick have places of their own, so that new and slow ones take none from them;
- each tenant has few places, whatever the number of names.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

T = TypeVar("T")

AT_ONCE = 8
"""Threads for keys whose last call was quick."""
DOUBTFUL_AT_ONCE = 16
"""Threads for all other keys: new ones and slow ones."""
OF_ONE_TENANT = 2
"""Threads that calls of one tenant hold at the same time."""
QUICK_SECONDS = 1.0
_MOST_REMEMBERED = 10_000
"""Keys that were quick; the one that was called longest ago is forgotten first, and then counts as new."""


@dataclass(slots=True)
class _Tenant:
    """The places of one tenant."""

    places: asyncio.Semaphore
    users: int = 0
    """Calls that hold a place or wait for one."""


@dataclass(slots=True)
class BlockingCalls:
    """Calls of all applications."""

    name: str = "kafka-names"
    """Of the threads."""
    at_once: int = AT_ONCE
    doubtful_at_once: int = DOUBTFUL_AT_ONCE
    of_one_tenant: int = OF_ONE_TENANT
    monotonic: Callable[[], float] = time.monotonic
    _executor: ThreadPoolExecutor = field(init=False)
    _proven: asyncio.Semaphore = field(init=False)
    _doubtful: asyncio.Semaphore = field(init=False)
    _quick: OrderedDict[Hashable, None] = field(default_factory=OrderedDict, init=False)
    _running: dict[Hashable, asyncio.Future[Any]] = field(default_factory=dict, init=False)
    _tenants: dict[Hashable, _Tenant] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Start no thread yet."""
        most = self.at_once + self.doubtful_at_once
        self._executor = ThreadPoolExecutor(max_workers=most, thread_name_prefix=self.name)
        self._proven = asyncio.Semaphore(self.at_once)
        self._doubtful = asyncio.Semaphore(self.doubtful_at_once)

    def close(self) -> None:
        """Begin nothing more; waits for nothing."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def run(self, tenant: Hashable, key: Hashable, work: Callable[[], T]) -> T:
        """Call `work` in a thread and give its result, or that of a call of the same key that runs already.

        A caller that is cancelled leaves: a call that has not begun is forgotten, one that runs keeps its places.
        """
        running = self._running.get(key) or await self._begun(tenant, key, work)
        return cast("T", await asyncio.shield(running))

    async def _begun(self, tenant: Hashable, key: Hashable, work: Callable[[], T]) -> asyncio.Future[Any]:
        """Wait for the places, then begin; give the call that another caller has begun meanwhile, if there is one."""
        await self._enter(tenant)
        lane = self._proven if key in self._quick else self._doubtful
        try:
            await lane.acquire()
        except BaseException:
            self._leave(tenant)
            raise
        if key not in self._running:
            return self._begin(tenant, key, work, lane)
        lane.release()
        self._leave(tenant)
        return self._running[key]

    def _begin(
        self, tenant: Hashable, key: Hashable, work: Callable[[], T], lane: asyncio.Semaphore
    ) -> asyncio.Future[Any]:
        began_at = self.monotonic()

        def end(call: asyncio.Future[Any]) -> None:
            del self._running[key]
            lane.release()
            self._leave(tenant)
            self._note(key, self.monotonic() - began_at)
            if not call.cancelled():
                call.exception()  # nobody may wait for it any more

        try:
            running: asyncio.Future[Any] = asyncio.get_running_loop().run_in_executor(self._executor, work)
        except BaseException:
            lane.release()
            self._leave(tenant)
            raise
        self._running[key] = running
        running.add_done_callback(end)
        return running

    def _note(self, key: Hashable, seconds: float) -> None:
        self._quick.pop(key, None)
        if seconds < QUICK_SECONDS:
            self._quick[key] = None
        while len(self._quick) > _MOST_REMEMBERED:
            self._quick.popitem(last=False)

    async def _enter(self, tenant: Hashable) -> None:
        one = self._tenants.setdefault(tenant, _Tenant(asyncio.Semaphore(self.of_one_tenant)))
        one.users += 1
        try:
            await one.places.acquire()
        except BaseException:
            self._forget(tenant, one)
            raise

    def _leave(self, tenant: Hashable) -> None:
        one = self._tenants[tenant]
        one.places.release()
        self._forget(tenant, one)

    def _forget(self, tenant: Hashable, one: _Tenant) -> None:
        one.users -= 1
        if not one.users:
            del self._tenants[tenant]
