"""Makes the connections to the API server: as many as it takes, and none that outlives the client.

Used by `client`. Before 3.12.8 and 3.13.1, Python's TLS waits half a minute for a goodbye that the other side owes, and
keeps the socket meanwhile, or for ever where the loop has ended. aiohttp ends such connections if it is asked to. In
3.11.1 to 3.11.3, which Debian 12 has, it must not be asked: there a connection that has ended cannot be ended again.
"""

import sys

import aiohttp
from aiohttp.connector import NEEDS_CLEANUP_CLOSED
from kubernetes.aio.client.rest import RESTClientObject

UNLIMITED = 0
"""Connections, in aiohttp's words: turns limit the requests, and watches hold theirs for as long as they last."""

ENDS_TWICE = not (3, 11, 1) <= sys.version_info[:3] < (3, 11, 4)
"""Whether this Python can end a TLS connection that has ended: https://github.com/python/cpython/pull/104474."""


class Connections(RESTClientObject):
    """Kubernetes' own, but for the connector."""

    def _create_connector(self) -> aiohttp.TCPConnector:
        must_end = NEEDS_CLEANUP_CLOSED and ENDS_TWICE
        return aiohttp.TCPConnector(limit=UNLIMITED, ssl=self.ssl_context, enable_cleanup_closed=must_end)
