"""Watches objects of one kind: lists, then watches, and starts again after any interruption.

Used by the command line; the operator's own watches are kopf's. After every interruption all objects are listed again,
so that a deletion whose event was lost is noticed too.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from streamapp.kube.client.client import Json, KubeClient
from streamapp.kube.client.errors import ExpiredError, KubeError, NotFoundError
from streamapp.kube.client.kinds import Key, Kind

PAUSES = (1.0, 2.0, 4.0, 8.0)
"""Seconds before each further try; the last one for all that follow."""
WATCH_SECONDS = 50
"""The API server is asked to end a watch after this, so that a silent connection is noticed soon after."""


@dataclass(frozen=True, slots=True)
class ListEvent:
    """All that there are."""

    objects: Mapping[Key, Json]


@dataclass(frozen=True, slots=True)
class ChangeEvent:
    """One is new or different."""

    key: Key
    resource: Json


@dataclass(frozen=True, slots=True)
class DeleteEvent:
    """One is gone."""

    key: Key


@dataclass(frozen=True, slots=True)
class WatchInterrupted:
    """The watch is interrupted; earlier events can be out of date until the next `ListEvent`."""

    error: KubeError
    again_in_seconds: float


WatchEvent = ListEvent | ChangeEvent | DeleteEvent | WatchInterrupted


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectWatch:
    """What is followed, and how."""

    connect: Callable[[], Awaitable[KubeClient]]
    """Called before every try, so that credentials are fresh."""
    kind: Kind
    namespace: str | None
    """None: all."""
    name: str | None
    """None: all."""
    pauses: tuple[float, ...] = field(default_factory=lambda: PAUSES)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def events(self) -> AsyncGenerator[WatchEvent, None]:
        """Yield all events, without end.

        Raises:
            KubeError: The first try failed, or the kind is gone.
        """
        failures, has_listed = 0, False
        while True:
            try:
                async with aclosing(self._one_connection()) as events:
                    async for one in events:
                        if isinstance(one, ListEvent):
                            has_listed = True
                        else:
                            failures = 0
                        yield one
            except KubeError as error:
                if not has_listed or isinstance(error, NotFoundError):
                    raise
                pause = max(self.pauses[min(failures, len(self.pauses) - 1)], error.retry_after_seconds)
                failures += 1
                if not isinstance(error, ExpiredError):
                    yield WatchInterrupted(error, pause)
                # Also before listing again for an old version: where every watch ends so, it would never stop.
                await self.sleep(pause)

    async def _one_connection(self) -> AsyncGenerator[WatchEvent, None]:
        client = await self.connect()
        try:
            listing = await client.listing(self.kind, self.namespace, name=self.name)
            yield ListEvent({_key(one): one for one in listing.objects})
            version = listing.version
            while True:
                watch = client.watch(self.kind, self.namespace, version=version, seconds=WATCH_SECONDS, name=self.name)
                began = asyncio.get_running_loop().time()
                async with aclosing(watch) as events:
                    async for event in events:
                        version = event["object"]["metadata"]["resourceVersion"]
                        if event["type"] != "BOOKMARK":
                            yield self._to_event(event)
                if asyncio.get_running_loop().time() - began < 1:
                    # Something in between ends every watch at once.
                    await self.sleep(1)
        finally:
            await client.close()

    def _to_event(self, event: Json) -> WatchEvent:
        resource = {"apiVersion": self.kind.api_version, "kind": self.kind.name, **event["object"]}
        return DeleteEvent(_key(resource)) if event["type"] == "DELETED" else ChangeEvent(_key(resource), resource)


def _key(resource: Json) -> Key:
    return Key(resource["metadata"]["namespace"], resource["metadata"]["name"])
