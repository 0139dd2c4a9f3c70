"""Runs what a command does, so that every way to end it leaves the terminal as it was."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def run(what: Coroutine[Any, Any, Result]) -> Result:
    """Run it; an order to stop ends it as Ctrl-C does, so that the terminal is left as it was."""

    async def stoppable() -> Result:
        task = asyncio.ensure_future(what)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await task

    try:
        return asyncio.run(stoppable())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
