"""The API server's end of a port-forward: what a pod answers, in the frames of `v4.channel.k8s.io`."""

from collections.abc import Callable

from aiohttp import WSMsgType, web

from streamapp.kube.client.port_forward import SUBPROTOCOL

DATA, ERROR = b"\0", b"\1"
PieceSize = int
Pod = Callable[[str], tuple[int, bytes] | str]
"""Gives the answer to a path with its query, or why there is no connection."""


async def tunnel(request: web.Request, pod: Pod, piece: PieceSize = 1000) -> web.StreamResponse:
    """Answer one exchange, in messages of so many bytes, as a kubelet would."""
    if request.headers.get("Accept") != "*/*":
        return web.json_response({"message": "only the following media types are accepted: */*"}, status=406)
    if request.headers.get("Upgrade", "").lower() != "websocket":
        return web.json_response({"message": "Upgrade request required"}, status=400)
    socket = web.WebSocketResponse(protocols=(SUBPROTOCOL,))
    await socket.prepare(request)
    port = int(request.query["ports"]).to_bytes(2, "little")
    await socket.send_bytes(DATA + port)
    await socket.send_bytes(ERROR + port)
    asked = await socket.receive()
    assert asked.type is WSMsgType.BINARY, asked
    found = pod(asked.data[1:].split(b" ")[1].decode())
    if isinstance(found, str):
        await socket.send_bytes(ERROR + found.encode())
    else:
        status, body = found
        said = f"HTTP/1.0 {status} Said\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        for begin in range(0, len(said), piece):
            await socket.send_bytes(DATA + said[begin : begin + piece])
    await socket.close()
    return socket
