"""The tokens with which the operator speaks to agents, and what of them stands in a pod template.

Called by `streamapp.agents` for requests and by the controller for templates. A token is derived from the
installation's key and the StreamApp's UID, so that no agent's token is of any use with another application; a template
carries only hashes, from which no token can be had.
"""

import hashlib
import hmac
from collections.abc import Sequence

LEAST_KEY = 32
"""Bytes of an installation key: what a random one of 128 bits has in hexadecimal digits."""
MOST_KEYS = 2
_CONTEXT = "streamapp.dev/agent/"


def token(key: bytes, app_uid: str) -> str:
    """The token for one StreamApp, as hexadecimal digits."""
    return hmac.new(key, f"{_CONTEXT}{app_uid}".encode(), hashlib.sha256).hexdigest()


def accepted(keys: Sequence[bytes], app_uid: str) -> str:
    """The hashes of the tokens that agents of one StreamApp accept, with commas between them.

    In an order of their own: to use the other key first, in the middle of a rotation, must not restart any pod.
    """
    hashes = {hashlib.sha256(token(key, app_uid).encode()).hexdigest() for key in keys}
    return ",".join(sorted(hashes))
