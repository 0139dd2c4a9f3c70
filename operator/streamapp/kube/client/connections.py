"""Makes the connections to the API server: as many as it takes, and none that outlives the client.

Used by `client`. Before 3.12.8 and 3.13.1, Python's TLS waits half a minute for a goodbye that the other side owes, and
keeps the socket meanwhile, or for ever where the loop has ended. aiohttp ends such connections if it is asked to.
"""

import aiohttp
from aiohttp.connector import NEEDS_CLEANUP_CLOSED
from kubernetes.aio.client.rest import RESTClientObject

UNLIMITED = 0
"""Connections, in aiohttp's words: turns limit the requests, and watches hold theirs for as long as they last."""


class Connections(RESTClientObject):
    """Kubernetes' own, but for the connector."""

    def _create_connector(self) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(limit=UNLIMITED, ssl=self.ssl_context, enable_cleanup_closed=NEEDS_CLEANUP_CLOSED)
