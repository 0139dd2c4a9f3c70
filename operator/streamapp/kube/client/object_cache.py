"""Objects as the shared watches last told them: each as compact text, by kind, namespace and name.

Filled by `controller.reconcile.shared_watch`, and by live reads and writes, which can be ahead of a watch. It never
goes back: an older version of an object does not replace a newer one. It knows how long it has heard nothing, and then
is not current: whoever asks reads live. Versions are compared as numbers, as Kubernetes guarantees since 1.35 and every
API server on etcd has always made them.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from streamapp.api.names import APP_LABEL
from streamapp.kube.client.client import Json
from streamapp.kube.client.kinds import STREAM_APPS, Key, Kind

CURRENT_SECONDS = 75.0
"""So long after the last word of a watch its objects count as current: more than the 70 s of a silent connection."""

Trim = Callable[[Json], Json]
"""Leaves out what nobody reads."""


@dataclass(frozen=True, slots=True)
class _Entry:
    uid: str
    version: int
    app: str
    """The StreamApp in its label, or that it is."""
    text: str
    """As ASCII, which takes a byte for each character."""


@dataclass(slots=True)
class _Scope:
    """What one watch covers."""

    heard_at: float = float("-inf")
    version: int = 0
    """The newest version that the watch has told: whatever is older and not here is gone."""
    gone: int = 0
    """The newest version of an object that was told to be gone; it can be ahead of a list that is under way."""


@dataclass(slots=True)
class ObjectCache:
    """Objects of several kinds."""

    monotonic: Callable[[], float]
    namespaces: tuple[str | None, ...] = (None,)
    """Scopes of the watches; None alone: one scope of all namespaces."""
    trims: dict[Kind, Trim] = field(default_factory=dict)
    _entries: dict[tuple[Kind, Key], _Entry] = field(default_factory=dict)
    _by_app: dict[tuple[Kind, Key], set[Key]] = field(default_factory=lambda: defaultdict(set))
    _scopes: dict[tuple[Kind, str | None], _Scope] = field(default_factory=lambda: defaultdict(_Scope))

    def is_current(self, kinds: Iterable[Kind], namespace: str) -> bool:
        """Whether the watches of these kinds have spoken lately in this namespace."""
        now = self.monotonic()
        return all(now - self._scope(kind, namespace).heard_at <= CURRENT_SECONDS for kind in kinds)

    def find(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Give one object, or None if there is none."""
        entry = self._entries.get((kind, Key(namespace, name)))
        return None if entry is None else _parsed(entry)

    def can_control(self, kind: Kind, key: Key, uid: str) -> bool:
        """Whether the owner with this UID controls such an object by the watches, or they cannot say that none does."""
        found = self.find(kind, key.namespace, key.name)
        if found is None:
            return not self.is_current((kind,), key.namespace)
        owners = found["metadata"].get("ownerReferences", ())
        return any(owner.get("controller") is True and owner["uid"] == uid for owner in owners)

    def of_app(self, kind: Kind, key: Key) -> list[Json]:
        """Give the objects with the label of a StreamApp, by name."""
        return [_parsed(self._entries[kind, one]) for one in sorted(self._by_app.get((kind, key), ()))]

    def of_kind(self, kind: Kind) -> list[Json]:
        """Give all objects of a kind, in no order."""
        return [_parsed(entry) for (other, _), entry in self._entries.items() if other == kind]

    def heard(self, kind: Kind, scope: str | None, version: str) -> None:
        """A watch has told everything up to this version. Nothing is current where versions are no numbers."""
        if not version.isdecimal():
            return
        found = self._scopes[kind, scope]
        found.heard_at = self.monotonic()
        found.version = max(found.version, _number(version))

    def begin_list(self, kind: Kind, scope: str | None, version: str) -> bool:
        """Drop everything where a list is older than what was told before: the API server's storage was restored.

        Whether that is so. A list is what the storage has at that moment, so it never goes back otherwise.
        """
        found = self._scopes[kind, scope]
        if not version.isdecimal() or _number(version) >= found.version:
            return False
        for other, key in [*self._entries]:
            if other == kind and scope in {None, key.namespace}:
                self._drop(kind, key)
        self._scopes[kind, scope] = _Scope()
        return True

    def replace(self, kind: Kind, scope: str | None, objects: Iterable[Json], version: str) -> list[Key]:
        """Take a whole list; give the keys of the StreamApps for which something is other than before."""
        self.begin_list(kind, scope, version)
        listed: set[Key] = set()
        changed = self.put_page(kind, objects, listed)
        return list(dict.fromkeys((*changed, *self.end_list(kind, scope, listed, version))))

    def put_page(self, kind: Kind, objects: Iterable[Json], listed: set[Key]) -> list[Key]:
        """Take a part of a list and add its keys to `listed`; give the keys of StreamApps with news."""
        changed: list[Key] = []
        for one in objects:
            key = _key(one)
            listed.add(key)
            if self._put(kind, key, one):
                changed.append(self.owner(kind, key))
        return changed

    def end_list(self, kind: Kind, scope: str | None, listed: Collection[Key], version: str) -> list[Key]:
        """Drop what a list that is whole now did not name; give the keys of the StreamApps that it belonged to."""
        changed: list[Key] = []
        newest = _number(version)
        for (other, key), entry in list(self._entries.items()):
            is_covered = other == kind and scope in {None, key.namespace}
            if is_covered and key not in listed and entry.version <= newest:
                changed.append(self.owner(kind, key))
                self._drop(kind, key)
        self.heard(kind, scope, version)
        return changed

    def put(self, kind: Kind, one: Json) -> bool:
        """Take an object that a watch told; whether it is news."""
        return self._put(kind, _key(one), one)

    def learn(self, kind: Kind, one: Json) -> bool:
        """Take an object that was read or written live, unless the watch has told since that it is gone; as `put`."""
        key = _key(one)
        scope = self._scope(kind, key.namespace)
        is_gone = (kind, key) not in self._entries and version_of(one) <= max(scope.version, scope.gone)
        return not is_gone and self._put(kind, key, one)

    def remove(self, kind: Kind, one: Json) -> None:
        """Drop an object that is gone, unless a newer one of its name is there."""
        key = _key(one)
        scope = self._scope(kind, key.namespace)
        scope.gone = max(scope.gone, version_of(one))
        entry = self._entries.get((kind, key))
        if entry is not None and entry.version <= version_of(one):
            self._drop(kind, key)

    def owner(self, kind: Kind, key: Key) -> Key:
        """Give the StreamApp that a cached object names in its label."""
        return Key(key.namespace, self._entries[kind, key].app)

    def doubt(self, kind: Kind, scope: str | None) -> None:
        """Have nothing count as current until something is heard again."""
        self._scopes[kind, scope].heard_at = float("-inf")

    def _scope(self, kind: Kind, namespace: str) -> _Scope:
        return self._scopes[kind, None if None in self.namespaces else namespace]

    def _put(self, kind: Kind, key: Key, one: Json) -> bool:
        before, version = self._entries.get((kind, key)), version_of(one)
        if before is not None and 0 < version <= before.version:
            return False
        app = key.name if kind == STREAM_APPS else str(one["metadata"].get("labels", {}).get(APP_LABEL, ""))
        if before is not None and before.app != app:
            self._drop(kind, key)
        trimmed = self.trims.get(kind, _as_is)(one)
        text = json.dumps(trimmed, separators=(",", ":"))
        self._entries[kind, key] = _Entry(one["metadata"]["uid"], version, app, text)
        if app:
            self._by_app[kind, Key(key.namespace, app)].add(key)
        return True

    def _drop(self, kind: Kind, key: Key) -> None:
        entry = self._entries.pop((kind, key), None)
        if entry is not None and entry.app:
            place = (kind, Key(key.namespace, entry.app))
            self._by_app[place].discard(key)
            if not self._by_app[place]:
                del self._by_app[place]


def _as_is(one: Json) -> Json:
    return one


def _parsed(entry: _Entry) -> Json:
    found: Json = json.loads(entry.text)
    return found


def _key(one: Json) -> Key:
    """An object of the cluster is in no namespace."""
    return Key(one["metadata"].get("namespace", ""), one["metadata"]["name"])


def version_of(one: Json) -> int:
    """The version of an object as a number; 0 where it has none."""
    return _number(one.get("metadata", {}).get("resourceVersion", ""))


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else 0
