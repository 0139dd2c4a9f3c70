"""The watches of one process, played: events come late, never, twice or after a gap; some watches are always behind.

What an event or a list does to the operator is its own code (`SharedWatch`, `on_streamapp_event`). Every 50 s each
kind is listed again, as the operator does; bookmarks come more often.
"""

from collections.abc import Callable, Iterable, Mapping
from contextvars import Context, copy_context
from typing import Any

from streamapp.controller.namespaces import Namespace
from streamapp.controller.process import Operator
from streamapp.controller.reconcile.shared_watch import SHARED
from streamapp.kube.client.kinds import NODES, STREAM_APPS, Key, Kind
from tests.kube.object_store import Identity, ObjectStore
from tests.prove.calls import Process, Switchboard
from tests.prove.fleet.requests import app_of_object
from tests.prove.virtual_time import VirtualLoop

Json = dict[str, Any]
RELIST, BOOKMARK = 50.0, 25.0
GAP = 2.0
BACK_OFF = 15.0
"""Seconds between two tries to list a scope that gives no list."""


class PlayedWatches:
    """All of one process."""

    def __init__(
        self,
        operator: Operator,
        process: Process,
        *,
        loop: VirtualLoop,
        store: ObjectStore,
        board: Switchboard,
        behind: float,
    ) -> None:
        """Begin; `behind` is by how many seconds the shared watches and their lists are behind, for ever."""
        self._operator, self._process = operator, process
        self._context = copy_context()  # whatever an event sets going is of this process
        self._loop, self._store, self._board, self._behind = loop, store, board, behind
        self._shared = {(watch.kind, watch.namespace): watch for watch in operator.shared_watches()}
        self._listed = (*SHARED, *dict.fromkeys(kind for kind, _ in self._shared if kind not in SHARED))
        self._kinds = {kind.plural: kind for kind in (STREAM_APPS, *self._listed)}
        self._scopes = operator.namespaces.names
        """Of the watches: namespaces, or None alone for all."""
        self._versions: list[tuple[float, int]] = [(float("-inf"), store.version)]
        """Of every change, when it was made."""
        self._gap_until = self._silent_until = -1.0
        self._is_over = False
        self._waiting: list[Callable[[], None]] = []
        self._due: set[Namespace] = set()
        """Scopes that could not be listed, and are listed as soon as they can be."""
        store.changed.append(self._happened)
        self._list()
        self._loop.call_later(RELIST, self._list_again)
        self._mark()

    def end(self) -> None:
        """The process is dead."""
        self._is_over = True
        self._store.changed.remove(self._happened)

    def go_on(self) -> None:
        """The process reads on: what lay in the sockets meanwhile is told now."""
        waiting, self._waiting = self._waiting, []
        for tell in waiting:
            tell()

    def be_silent(self, until: float) -> None:
        """Nothing comes through before that time; then all of it does."""
        self._silent_until = until

    def _happened(self, plural: str, body: Json, before: Json | None) -> None:
        self._versions.append((self._loop.time(), self._store.version))
        if plural not in self._kinds:
            return
        resource, is_gone = (body, False) if body else (before or {}, True)
        scope = self._scope_of(resource)
        if plural != NODES.plural and scope not in self._scopes:
            return
        if self._board.has_several:
            self._board.about = app_of_object(plural, resource["metadata"]["namespace"], resource["metadata"]["name"])
        fates = self._board.arrive("event")
        delay = self._board.chance.uniform(0.005, 0.1)
        if any(fate.what == "gap" for fate in fates):
            # The watch is told 410, lists again, and never hears what happened meanwhile.
            self._gap_until = self._loop.time() + GAP
            self._loop.call_later(GAP, self._list, context=self._context)
        if self._is_away(scope):
            self._wait_for(scope)
        if scope in self._due:
            return  # the list that ends this has it
        if self._loop.time() < self._gap_until or any(fate.what == "lost" for fate in fates):
            return
        delay += sum(fate.which for fate in fates if fate.what == "delayed")
        delay += 0.0 if plural == STREAM_APPS.plural else self._behind
        tell = self._told(self._kinds[plural], resource, is_gone=is_gone)
        self._loop.call_later(delay, tell, context=self._context)
        for fate in fates:
            if fate.what == "doubled":
                self._loop.call_later(delay + fate.which, tell, context=self._context)

    def _told(self, kind: Kind, resource: Json, *, is_gone: bool) -> Callable[[], None]:
        def take() -> None:
            if kind == STREAM_APPS:
                self._operator.on_streamapp_event(_key(resource), resource, is_gone=is_gone)
            else:
                scope = self._scope_of(resource) if kind.is_namespaced else None
                self._shared[kind, scope]._take("DELETED" if is_gone else "MODIFIED", resource)

        def tell() -> None:
            if self._is_silent():
                self._loop.call_at(self._silent_until, tell)
            elif self._process.is_open:
                self._tell(take, tell)
            elif not self._is_over:
                self._waiting.append(tell)

        return tell

    def _tell(self, take: Callable[[], None], again: Callable[[], None]) -> None:
        """Let happen what is planned for this moment, before and after the event is taken; `again` where it freezes."""
        fates = Context().run(self._board.arrive, "told")  # what happens in the world is of no process
        for fate in fates:
            if fate.what == "crash-before":
                self._process.die()
            if fate.what == "freeze":
                self._process.freeze("", fate.which)
        if self._is_over:
            return
        if not self._process.is_open:
            self._waiting.append(again)
            return
        take()
        if any(fate.what == "crash-after" for fate in fates):
            self._process.die()

    def _list_again(self) -> None:
        if not self._is_over:
            self._list(self._listed)
            self._loop.call_later(RELIST, self._list_again)

    def _list(self, kinds: Iterable[Kind] | None = None) -> None:
        """List these kinds: the shared ones as they were so long ago, of the StreamApps the events.

        Every 50 s that of StreamApps is the operator's own (`resync`); kopf lists them after a gap alone.
        """
        if self._is_over:
            return
        if self._is_silent():
            self._loop.call_at(self._silent_until, self._list, kinds)
            return
        if not self._process.is_open:
            self._waiting.append(lambda: self._list(kinds))
            return
        version = self._seen_version()
        present = self._store._objects_at(version)
        for scope in self._scopes:
            if self._is_away(scope):
                self._wait_for(scope)
                continue
            for kind in kinds or self._kinds.values():
                self._list_one(kind, scope, present, version)

    def _list_one(self, kind: Kind, scope: Namespace, present: Mapping[Identity, Json], version: int) -> None:
        objects = [
            body
            for (plural, namespace, _), body in sorted(present.items())
            if plural == kind.plural and (not kind.is_namespaced or scope in {None, namespace})
        ]
        if kind == STREAM_APPS:
            for body in objects:
                self._operator.on_streamapp_event(_key(body), body, is_gone=False)
            return
        watch = self._shared[kind, scope if kind.is_namespaced else None]
        for key in watch.cache.replace(kind, watch.namespace, objects, str(version)):
            watch.changed(kind, key, None)

    def _wait_for(self, scope: Namespace) -> None:
        """Its watches tell nothing until it is listed, some time after it can be; a refusal is known at once."""
        if self._board.namespaces_away.get(scope or ""):
            for kind in SHARED:
                self._operator.cache.doubt(kind, scope)
        if scope not in self._due:
            self._due.add(scope)
            self._loop.call_later(BACK_OFF, self._list_due, scope)

    def _list_due(self, scope: Namespace) -> None:
        self._due.discard(scope)
        if self._is_over:
            return
        if self._is_away(scope) or not self._process.is_open or self._is_silent():
            self._wait_for(scope)
            return
        version = self._seen_version()
        present = self._store._objects_at(version)
        for kind in self._kinds.values():
            self._list_one(kind, scope, present, version)

    def _is_away(self, scope: Namespace) -> bool:
        return bool(self._board.namespaces_away) and scope in self._board.namespaces_away

    def _scope_of(self, resource: Json) -> Namespace:
        return None if None in self._scopes else resource["metadata"].get("namespace")

    def _mark(self) -> None:
        """Bookmarks: each shared watch says how far it is."""
        if self._is_over:
            return
        if self._process.is_open and not self._is_silent():
            for scope in filter(self._is_away, self._scopes):
                self._wait_for(scope)
            for (kind, scope), watch in self._shared.items():
                if scope not in self._due:
                    watch.cache.heard(kind, scope, str(self._seen_version()))
        self._loop.call_later(BOOKMARK, self._mark)

    def _is_silent(self) -> bool:
        return self._loop.time() < self._silent_until

    def _seen_version(self) -> int:
        """The newest version that the shared watches have come to."""
        return max(version for at, version in self._versions if at <= self._loop.time() - self._behind)


def _key(resource: Json) -> Key:
    return Key(resource["metadata"]["namespace"], resource["metadata"]["name"])
