"""Whether a raise was received since a pass read the replicas, so that nothing makes the raise wait."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from streamapp.kube.client.client import Json


@dataclass(frozen=True, slots=True)
class RaiseWatch:
    """Of one pass over one application."""

    is_received: Callable[[], bool]
    """Whether the StreamApp, as last received, desires more replicas than the pass has read."""
    receive: Callable[[], Awaitable[object]]
    """Returns as soon as that is so."""
    newest: Callable[[], Json | None] = lambda: None
    """Gives the StreamApp as last received; None if it is gone."""

    async def comes_after(self, work: asyncio.Future[Any]) -> bool:
        """Wait until the work is done or a raise is received; tell whether the work is done.

        The work goes on; who does not want it any more cancels it.
        """
        raised = asyncio.ensure_future(self.receive())
        try:
            await asyncio.wait({work, raised}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            raised.cancel()
        return work.done()
