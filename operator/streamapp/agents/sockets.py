"""The sockets of requests to agents: none lives longer than its request may take, whatever the agent does.

After the answer, asyncio says goodbye over TLS and waits 30 seconds for the agent's goodbye (`ssl_shutdown_timeout` of
asyncio). An agent that is slow, or that wants to harm, would keep a socket of the operator for that long after each
request.
"""

import asyncio
import contextlib
import socket
import weakref
from dataclasses import dataclass, field

from aiohttp import AddrInfoType

_SPARE_SECONDS = 0.5
"""After the deadline of a request: until then, aiohttp itself has ended what was too slow."""
_CLOSING_LOOKS = 200
_LOOK_SECONDS = 0.005


@dataclass(slots=True)
class AgentSockets:
    """All that are open."""

    lifetime_seconds: float
    """The deadline of a request."""
    _open: "weakref.WeakSet[socket.socket]" = field(default_factory=weakref.WeakSet, init=False)

    def make(self, address: AddrInfoType) -> socket.socket:
        """Make a socket for a request that begins now; aiohttp calls this."""
        family, kind, protocol, *_ = address
        made = socket.socket(family, kind, protocol)
        self._open.add(made)
        asyncio.get_running_loop().call_later(self.lifetime_seconds + _SPARE_SECONDS, _end, made)
        return made

    async def close(self) -> None:
        """End all, and wait until asyncio has closed them: a loop that ends sooner leaves them open."""
        for one in list(self._open):
            _end(one)
        for _ in range(_CLOSING_LOOKS):
            if all(one.fileno() == -1 for one in self._open):
                return
            await asyncio.sleep(_LOOK_SECONDS)


def _end(one: socket.socket) -> None:
    """Let asyncio read the end of the connection; it closes the socket itself."""
    if one.fileno() != -1:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
