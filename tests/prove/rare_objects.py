"""Objects of Kubernetes in shapes that they seldom have: a claim that lost its volume, a StatefulSet that cannot go.

Or a StatefulSet that counts its pods from elsewhere than 0.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from streamapp.kube.client.kinds import Key
from tests.kube.object_store import ObjectStore, marked
from tests.prove.nodes_truth import wall

Json = dict[str, Any]
FINALIZER = "example.com/kept"
"""Of somebody else."""


class RareObjects:
    """Those of one StreamApp."""

    def __init__(self, key: Key, store: ObjectStore, loop: asyncio.AbstractEventLoop) -> None:
        self._key, self._store, self._loop = key, store, loop

    def deeds(self) -> Mapping[str, Callable[[int], object]]:
        """What can happen, by the name that a story has for it: to or from an ordinal, or for so many seconds."""
        return {
            "claim-lost": lambda ordinal: self._tell_phase(ordinal, "Lost"),
            "claim-found": lambda ordinal: self._tell_phase(ordinal, "Bound"),
            "statefulset-deleting": self._delete_statefulset,
            "shift-ordinals": self._shift_ordinals,
        }

    def _tell_phase(self, ordinal: int, phase: str) -> None:
        """The volume behind a claim is gone, so that no further pod can begin with it; or an administrator found it."""
        name = f"state-{self._key.name}-{ordinal}"
        claim = self._store.get("persistentvolumeclaims", self._key.namespace, name)
        if claim is not None:
            self._store.put("persistentvolumeclaims", {**claim, "status": {**claim.get("status", {}), "phase": phase}})

    def _delete_statefulset(self, seconds: int) -> None:
        """Somebody deletes it, and a finalizer keeps it for so long; its pods are there until it is gone."""
        live = self._statefulset()
        if live is None or "deletionTimestamp" in live["metadata"]:
            return
        kept = marked(live, wall(self._loop))
        kept["metadata"] = {**kept["metadata"], "finalizers": [FINALIZER]}
        self._store.put("statefulsets", kept)
        self._loop.call_later(seconds, self._let_go, live["metadata"]["uid"])

    def _shift_ordinals(self, start: int) -> None:
        """Have the StatefulSet count its pods from there on."""
        live = self._statefulset()
        if live is not None:
            self._store.put("statefulsets", {**live, "spec": {**live["spec"], "ordinals": {"start": start}}})

    def _let_go(self, uid: str) -> None:
        live = self._statefulset()
        if live is not None and live["metadata"]["uid"] == uid:
            self._store.remove("statefulsets", self._key.namespace, self._key.name)

    def _statefulset(self) -> Json | None:
        return self._store.get("statefulsets", self._key.namespace, self._key.name)
