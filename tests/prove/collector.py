"""What Kubernetes deletes by itself: claims by the StatefulSet's retention policy, and whatever lost its owner.

The controller writes on each claim who must be there for it to stay: the pod that is being removed, where the live
policy says so, or the StatefulSet. The collector deletes what has owners of which none is there, a claim not before its
pod; with a claim goes what lay on the volume.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from streamapp.kube.client.kinds import Key
from tests.kube.object_store import ObjectStore, marked
from tests.prove.nodes_truth import ordinals_of, wall

Json = dict[str, Any]
POLICY = "persistentVolumeClaimRetentionPolicy"
CLAIMS = "persistentvolumeclaims"


class Collector:
    """The garbage collector, and the part of the StatefulSet's controller that tells it about claims."""

    def __init__(
        self,
        store: ObjectStore,
        loop: asyncio.AbstractEventLoop,
        chance: random.Random,
    ) -> None:
        self._store, self._loop = store, loop
        self._chance = chance
        self.forgets: dict[Key, Callable[[int], None]] = {}
        """Of each StreamApp: forgets what lay on the volume of an ordinal."""
        self._is_due = False
        store.changed.append(self._changed)

    def own_claims(self, statefulset: Json, pods: Mapping[int, Json]) -> None:
        """Write on the claims of all pods who must be there for them to stay."""
        policy = statefulset["spec"].get(POLICY, {})
        for ordinal, pod in pods.items():
            claim = self._claim(statefulset["metadata"], ordinal)
            if claim is None:
                continue
            owners: list[Json] = []
            if ordinal not in ordinals_of(statefulset) and policy.get("whenScaled") == "Delete":
                owners = [{"kind": "Pod", "uid": pod["metadata"]["uid"]}]
            elif policy.get("whenDeleted") == "Delete":
                owners = [{"kind": "StatefulSet", "uid": statefulset["metadata"]["uid"]}]
            if claim["metadata"].get("ownerReferences", []) != owners:
                self._store.put(CLAIMS, {**claim, "metadata": {**claim["metadata"], "ownerReferences": owners}})

    def is_stale(self, statefulset: Json, ordinal: int) -> bool:
        """Whether the claim of a pod that must be made still goes with a former pod."""
        claim = self._claim(statefulset["metadata"], ordinal)
        if claim is None:
            return False
        metadata = claim["metadata"]
        return "deletionTimestamp" in metadata or any(
            one["kind"] == "Pod" for one in metadata.get("ownerReferences", ())
        )

    def give_up(self, statefulset: Json, ordinal: int) -> None:
        """Delete a claim as its user does: it stays until its pod is gone."""
        claim = self._claim(statefulset["metadata"], ordinal)
        if claim is not None and "deletionTimestamp" not in claim["metadata"]:
            self._store.put(CLAIMS, marked(claim, wall(self._loop)))
            self._soon()

    def delete_app(self, app: Json, *, in_foreground: bool) -> None:
        """Delete the StreamApp as its user does; in the foreground, it stays until all that it owns is gone."""
        if not in_foreground:
            self._store.remove("streamapps", app["metadata"]["namespace"], app["metadata"]["name"])
        elif "deletionTimestamp" not in app["metadata"]:
            self._store.put("streamapps", marked(app, wall(self._loop)))
            self._soon()

    def _changed(self, _: str, body: Json, before: Json | None) -> None:
        if (not body and before is not None) or (before is None and self._is_orphan(body)):
            self._soon()

    def _is_orphan(self, body: Json) -> bool:
        """Whether an object is made late, when all of its owners are gone."""
        owners = set(_owners(body))
        return bool(owners) and not any(one.body["metadata"]["uid"] in owners for one in self._store.objects.values())

    def _soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.call_later(self._chance.uniform(0.05, 1.0), self._collect)

    def _collect(self) -> None:
        self._is_due = False
        present = {stored.body["metadata"]["uid"]: stored.body for stored in self._store.objects.values()}
        orphans = list(self._orphans(present))
        for plural, body in orphans:
            self._delete(plural, body)
        given_up = [one.body for (plural, _, _), one in sorted(self._store.objects.items()) if plural == CLAIMS]
        for claim in given_up:
            if "deletionTimestamp" in claim["metadata"]:
                self._delete(CLAIMS, claim)
        marked_apps = (body for body in present.values() if body.get("kind") == "StreamApp")
        for app in marked_apps:
            is_owner = any(app["metadata"]["uid"] in _owners(body) for body in present.values())
            is_kept = is_owner or app["metadata"].get("finalizers")
            if "deletionTimestamp" in app["metadata"] and not is_kept:
                self._store.remove("streamapps", app["metadata"]["namespace"], app["metadata"]["name"])

    def _orphans(self, present: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
        for (plural, _, _), stored in sorted(self._store.objects.items()):
            owners = _owners(stored.body)
            if owners and not any(self._counts(present.get(uid)) for uid in owners):
                yield plural, stored.body

    def _counts(self, owner: Json | None) -> bool:
        return owner is not None and "deletionTimestamp" not in owner["metadata"]

    def _delete(self, plural: str, body: Json) -> None:
        """Whatever is still needed is tried again when the next object is gone."""
        metadata = body["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        if plural == "pods":
            if "deletionTimestamp" not in metadata:
                self._store.put("pods", marked(body, wall(self._loop)))
            return
        if plural == CLAIMS:
            if self._store.get("pods", namespace, name.removeprefix("state-")) is not None:
                return
            app, _, ordinal = name.removeprefix("state-").rpartition("-")
            self.forgets[Key(namespace, app)](int(ordinal))
        self._store.remove(plural, namespace, name)

    def _claim(self, metadata: Json, ordinal: int) -> Json | None:
        return self._store.get(CLAIMS, metadata["namespace"], f"state-{metadata['name']}-{ordinal}")


def _owners(body: Json) -> list[str]:
    return [owner["uid"] for owner in body["metadata"].get("ownerReferences", ())]
