"""Keeps the decoding of much data away from the event loop, which all applications share.

Used by `group.groups` and `topics.tails` for bytes that the protocol library leaves as they are, and by the controller,
which translates what they say.
"""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

MEMBER_BYTES = 500
"""Of a usual member: for what is counted in members and no longer in bytes."""
_DECODED_AT_ONCE = 64 * 1024
"""Bytes that are decoded in the event loop; more are decoded in a thread."""


async def decode(size: int, decoder: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call the decoder of so many bytes: at once if they are few, else in a thread."""
    if size <= _DECODED_AT_ONCE:
        return decoder(*args, **kwargs)
    return await asyncio.to_thread(decoder, *args, **kwargs)
