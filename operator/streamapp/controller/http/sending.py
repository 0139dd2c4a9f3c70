"""Sends answers to whoever asks, a few at a time and none for long: what nobody reads stays in the leader's memory.

Used by `routes`.
"""

import asyncio

from aiohttp import web

MOST_AT_ONCE = 16
"""Answers on their way; more are refused."""
LONGEST_SECONDS = 30.0
"""That one may be on its way."""


class Sending:
    """The answers that are on their way."""

    def __init__(self) -> None:
        self._under_way = 0

    async def send(self, request: web.Request, response: web.Response) -> web.Response:
        """Send it all before this returns; a reader who does not take it in time loses the connection."""
        if self._under_way >= MOST_AT_ONCE:
            refusal = "too many answers are on their way: ask again in some seconds"
            return web.Response(status=503, text=refusal, headers={"Retry-After": "5"})
        self._under_way += 1
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                await response.prepare(request)
                await response.write_eof()
        except (TimeoutError, ConnectionError):
            if request.transport is not None:
                request.transport.abort()  # closing it would wait for the reader again
        finally:
            self._under_way -= 1
        return response
