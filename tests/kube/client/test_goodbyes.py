"""A server that says no goodbye leaves no socket behind when the client is closed; one that does costs no error."""

import asyncio
import gc
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kubernetes.aio.client.configuration import Configuration

from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.connections import ENDS_TWICE
from streamapp.kube.client.kinds import PODS
from tests.kube.client.self_signed import context_of_a_server

HEAD = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"


@contextmanager
def server(folder: Path, *, is_silent: bool) -> Iterator[int]:
    """Answer one request over TLS, and then neither read nor close, or say goodbye at once; gives the port."""
    context, over = context_of_a_server(folder), threading.Event()

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, context.wrap_socket(connection, server_side=True) as encrypted:
            encrypted.recv(65_536)
            encrypted.sendall(f"{HEAD}{{}}".encode())
            if is_silent:
                over.wait(20)
            else:
                encrypted.unwrap()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            over.set()
            thread.join()


async def ask(port: int) -> None:
    """Make one request, and close the client a little later."""
    configuration = Configuration(host=f"https://127.0.0.1:{port}")
    configuration.verify_ssl = False
    client = KubeClient(configuration, deadline_seconds=5)
    await client.get(PODS, "demo", "words-0")
    await asyncio.sleep(0.1)
    await client.close()


@pytest.mark.skipif(not ENDS_TWICE, reason="this Python waits for the goodbye")
def test_a_connection_whose_other_side_is_silent_ends_with_the_client(tmp_path: Path) -> None:
    with server(tmp_path, is_silent=True) as port, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(ask(port))
        gc.collect()
    assert [str(one.message) for one in caught if one.category is ResourceWarning] == []


def test_a_client_can_be_closed_when_the_other_side_has_said_goodbye(tmp_path: Path) -> None:
    with server(tmp_path, is_silent=False) as port:
        asyncio.run(ask(port))
