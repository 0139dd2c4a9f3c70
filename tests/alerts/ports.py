"""Ports for processes that are about to listen.

The kernel gives no port below 32768 to a connection, so none of these is taken before its process has started.
"""

import secrets
import socket

LOWEST, HIGHEST = 15_000, 32_000


def closed_port() -> int:
    """Give a port of this machine at which nothing listens."""
    while True:
        port = LOWEST + secrets.randbelow(HIGHEST - LOWEST)  # tests that run at once have one seed for all else
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind(("", port))
            except OSError:
                continue
            return port
