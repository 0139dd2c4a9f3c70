"""Asks what a pod serves on its loopback address, in one HTTP exchange over a port-forward of the API server.

Used by `client`. The API server decides who may, by the right to `pods/portforward`, and nobody else in the pod network
comes to that address. The frames are those of Kubernetes' own `v4.channel.k8s.io`: the first byte of a binary message
names the channel, and the first message on each channel is the port.
"""

import io
from http.client import HTTPException, parse_headers

import aiohttp

SUBPROTOCOL = "v4.channel.k8s.io"
_DATA, _ERROR = 0, 1
_PORT_BYTES = 2


class ForwardError(Exception):
    """The connection to the pod gave no answer; says why."""


async def exchange(socket: aiohttp.ClientWebSocketResponse, path: str) -> tuple[int, bytes]:
    """Send GET for a path with its query; give the status and the body. ForwardError without a whole answer."""
    await socket.send_bytes(bytes([_DATA]) + f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
    known: set[int] = set()
    said = bytearray()
    async for message in socket:
        if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
            continue
        channel, content = message.data[0], message.data[1:]
        if channel not in known:
            known.add(channel)
            content = content[_PORT_BYTES:]
        if channel == _ERROR and content:
            raise ForwardError(content.decode(errors="replace").strip())
        if channel == _DATA and content:
            said += content
            answer = _answer(said)
            if answer is not None:
                return answer
    raise ForwardError("the connection ended before the answer was whole")


def _answer(said: bytearray) -> tuple[int, bytes] | None:
    """The answer, if all of it is there."""
    head, end, body = said.partition(b"\r\n\r\n")
    if not end:
        return None
    first, _, headers = head.partition(b"\r\n")
    try:
        status = int(first.split(b" ", 2)[1])
        length = int(parse_headers(io.BytesIO(headers + end))["Content-Length"] or "")
    except (HTTPException, IndexError, ValueError) as error:
        raise ForwardError(f"what answers does not speak HTTP: {bytes(first[:80])!r}") from error
    return (status, bytes(body[:length])) if len(body) >= length else None
