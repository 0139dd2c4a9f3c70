"""Kubernetes' nodes and the scheduler: a new pod is put on a node that takes pods, or waits until there is one.

A node with fewer pods is better. Where no node takes a pod for a minute, an autoscaler makes another node, so no story
waits for ever.
"""

import asyncio
import random
from collections import Counter
from typing import Any

from tests.kube.object_store import ObjectStore
from tests.prove.kubelet import Nodes

Json = dict[str, Any]
PLURAL = "nodes"
ROOM_AFTER = 60.0
"""Seconds that a pod waits for a node at most."""


def a_node(number: int) -> Json:
    """A node that takes pods."""
    return {"metadata": {"name": f"node-{number}"}, "spec": {}}


class Scheduler:
    """Of all pods of one StreamApp."""

    def __init__(
        self, store: ObjectStore, loop: asyncio.AbstractEventLoop, chance: random.Random, kubelets: Nodes
    ) -> None:
        self._store, self._loop, self._chance, self._kubelets = store, loop, chance, kubelets
        self._waiting: dict[str, float] = {}
        """When each pod without a node was made, by UID."""
        kubelets.place, kubelets.is_named = self._place, True
        store.changed.append(self._changed)

    def nodes(self) -> list[Json]:
        """All nodes."""
        return [one.body for (plural, _, _), one in sorted(self._store.objects.items()) if plural == PLURAL]

    def node(self, number: int) -> Json | None:
        """One of them."""
        return self._store.get(PLURAL, "", f"node-{number}")

    def pods_on(self, name: str) -> list[Json]:
        """The pods of the StreamApp on a node."""
        return [pod for pod in self._kubelets.pods() if pod["spec"].get("nodeName") == name]

    @property
    def drained_pods(self) -> int:
        """How many pods are on cordoned nodes."""
        return sum(len(self.pods_on(one["metadata"]["name"])) for one in self.nodes() if not _takes_pods(one))

    @property
    def has_drained_pod(self) -> bool:
        """Whether a pod is on a cordoned node."""
        return self.drained_pods > 0

    def set_unschedulable(self, number: int, *, is_cordoned: bool) -> None:
        """Cordon a node, or uncordon it."""
        node = self.node(number)
        if node is not None:
            self._store.put(PLURAL, {**node, "spec": {"unschedulable": True} if is_cordoned else {}})

    def _place(self, pod_uid: str) -> None:
        self._waiting[pod_uid] = self._loop.time()
        self._soon()

    def _changed(self, plural: str, _: Json, __: Json | None) -> None:
        if plural == PLURAL and self._waiting:
            self._soon()

    def _soon(self) -> None:
        self._loop.call_later(self._chance.uniform(0.02, 0.3), self._schedule)

    def _schedule(self) -> None:
        for uid, since in list(self._waiting.items()):
            pod = next((one for one in self._kubelets.pods() if one["metadata"]["uid"] == uid), None)
            if pod is None or "deletionTimestamp" in pod["metadata"]:
                del self._waiting[uid]
                continue
            name = self._node_for(int(pod["metadata"]["name"].rpartition("-")[2]))
            if name is not None:
                del self._waiting[uid]
                self._store.put("pods", {**pod, "spec": {**pod["spec"], "nodeName": name}})
                self._kubelets.run(uid)
            elif self._loop.time() - since >= ROOM_AFTER:
                self._store.put(PLURAL, a_node(len(self.nodes())))
            else:
                self._loop.call_at(since + ROOM_AFTER + 0.1, self._schedule)

    def _node_for(self, ordinal: int) -> str | None:
        """The node with the fewest pods; of these, the one of the same number, or the first."""
        pods = Counter(pod["spec"].get("nodeName") for pod in self._kubelets.pods())
        names = [one["metadata"]["name"] for one in self.nodes() if _takes_pods(one)]
        return min(names, key=lambda name: (pods[name], name != f"node-{ordinal}", name), default=None)


def _takes_pods(node: Json) -> bool:
    return not node["spec"].get("unschedulable")
