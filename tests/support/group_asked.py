"""Asks a real group by the operator's own client, over a connection for one question."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from streamapp.controller.apps.apps import ClusterAccess
from streamapp.controller.apps.kafka_group import connect
from streamapp.controller.ports import ApplicationGroup

T = TypeVar("T")
DEADLINE = 10.0
"""Seconds, of each request."""


def asked(bootstrap: str, application_id: str, ask: Callable[[ApplicationGroup], Awaitable[T]]) -> T:
    """Ask after a look: only then the protocol of the group is known."""

    async def main() -> T:
        one = connect(ClusterAccess(bootstrap, (), application_id, ""), DEADLINE)
        try:
            await one.describe()
            return await ask(one)
        finally:
            one.close()

    return asyncio.run(main())
