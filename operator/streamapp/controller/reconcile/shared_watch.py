"""One list-and-watch of one kind in one scope, shared by all applications: it fills the cache and marks keys dirty.

It never ends by itself. Whatever interrupts it (410 Gone, a broken or silent connection, a refusal), it lists again.
It also lists again every 50 s, so that an event which the API server never told costs less than a minute.
The watch of StreamApps is kopf's; `process.resync` lists them as often.
"""

import asyncio
import math
from collections.abc import Callable, Iterable
from contextlib import aclosing, suppress
from dataclasses import dataclass

import structlog

from streamapp.api.names import APP_LABEL
from streamapp.controller.namespaces import Namespace
from streamapp.controller.reconcile.workqueue import Pauses
from streamapp.kube.client.client import Json, KubeClient
from streamapp.kube.client.errors import ExpiredError, KubeError
from streamapp.kube.client.kinds import BUDGETS, CLAIMS, PODS, SERVICES, STATEFUL_SETS, Key, Kind
from streamapp.kube.client.object_cache import ObjectCache

log = structlog.get_logger()

SHARED: tuple[Kind, ...] = (STATEFUL_SETS, PODS, CLAIMS, BUDGETS, SERVICES)
"""Everything that a pass reads beside the StreamApp."""
SHORTEST_SECONDS = 1.0
"""Between two connections or lists: something in between may end every watch at once."""
OVERTIME_SECONDS = 5.0
"""After the time of a watch: then it is ended here."""

Changed = Callable[[Kind, Key, Json | None], None]
"""Told the kind, the StreamApp in the label, and the object; of a deletion the last one there was, if it is known."""


@dataclass(frozen=True, slots=True)
class SharedWatch:
    """What is watched, and who is told."""

    client: KubeClient
    cache: ObjectCache
    kind: Kind
    namespace: Namespace
    changed: Changed
    relist_seconds: float
    pauses: Pauses

    async def run(self) -> None:
        """List and watch until cancelled."""
        failures = 0
        while True:
            try:
                await self._list_and_watch()
            except ExpiredError:
                await asyncio.sleep(SHORTEST_SECONDS)
            except KubeError as error:
                failures += 1
                self.cache.doubt(self.kind, self.namespace)
                if failures == 1:
                    log.warning("watch failed", kind=self.kind.plural, scope=self.namespace or "all", error=str(error))
                await asyncio.sleep(max(self.pauses.after_failures(failures), error.retry_after_seconds))
            else:
                failures = 0

    @property
    def _selector(self) -> str:
        """Claims are used by name, whatever their labels say; objects of the cluster belong to no application."""
        return "" if self.kind == CLAIMS or not self.kind.is_namespaced else APP_LABEL

    async def _list_and_watch(self) -> None:
        loop = asyncio.get_running_loop()
        version = await self._list()
        again_at = loop.time() + max(self.relist_seconds, SHORTEST_SECONDS)
        while (left := again_at - loop.time()) > SHORTEST_SECONDS:
            version = await self._watch(version, math.ceil(left))
            # An honest end comes when the time has passed; whoever ends at once is not asked again at once.
            await asyncio.sleep(min(SHORTEST_SECONDS, max(0.0, again_at - loop.time())))
        await asyncio.sleep(max(0.0, again_at - loop.time()))

    async def _list(self) -> str:
        """List page by page, so that no more than a page is held whole; give the version to go on from."""
        version, listed = "", set[Key]()
        async for page in self.client.pages(self.kind, self.namespace, selector=self._selector):
            if not listed and self.cache.begin_list(self.kind, self.namespace, page.version):
                log.warning("versions went back", kind=self.kind.plural, scope=self.namespace or "all")
            self._tell(self.cache.put_page(self.kind, page.objects, listed))
            version = page.version
        self._tell(self.cache.end_list(self.kind, self.namespace, listed, version))
        return version

    def _tell(self, keys: Iterable[Key]) -> None:
        for key in dict.fromkeys(keys):
            self.changed(self.kind, key, None)

    async def _watch(self, version: str, seconds: int) -> str:
        """Take events until the time has passed, even where the API server goes on; give the version to go on from.

        That a connection has ended is no word of the API server: what it has not told by then may have happened.
        """
        watch = self.client.watch(self.kind, self.namespace, version=version, seconds=seconds, selector=self._selector)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds + OVERTIME_SECONDS), aclosing(watch) as events:
                async for event in events:
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._take(event["type"], event["object"])
                    self.cache.heard(self.kind, self.namespace, version)
        return version

    def _take(self, kind_of_event: str, told: Json) -> None:
        """Take an event. Whoever has read the object live already is told, too: that read may have decided nothing."""
        one = {"apiVersion": self.kind.api_version, "kind": self.kind.name, **told}
        metadata = one["metadata"]
        if kind_of_event == "DELETED":
            self.cache.remove(self.kind, one)
        else:
            self.cache.put(self.kind, one)
        app = metadata.get("labels", {}).get(APP_LABEL, "")
        if app or not self.kind.is_namespaced:
            self.changed(self.kind, Key(metadata.get("namespace", ""), app), one)
