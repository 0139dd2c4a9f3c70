"""Which nodes must be drained, and where each is: one watch of all nodes, if the operator has the right to it.

Nothing is removed by it. A pod on such a node is drained if its StreamApp says so, and may be evicted once covered.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from streamapp.controller.reconcile.shared_watch import SharedWatch
from streamapp.controller.reconcile.workqueue import Pauses
from streamapp.core.facts.workload import NodeDrain, Pod
from streamapp.kube.client.client import Json, KubeClient
from streamapp.kube.client.kinds import NODES, Key, Kind
from streamapp.kube.client.object_cache import ObjectCache
from streamapp.kube.objects.from_json import drain_of, zone_of
from streamapp.kube.objects.trimmed import TRIMS


class NodeDrains:
    """The nodes that must be drained."""

    def __init__(
        self, taints: Sequence[str], monotonic: Callable[[], float], changed: Callable[[frozenset[str]], None]
    ) -> None:
        """Know nothing yet.

        Args:
            taints: Keys of the taints of nodes that go.
            monotonic: Seconds of a clock that nobody sets.
            changed: Told the names of nodes that must be drained since, or need not be any more.
        """
        self._taints = frozenset(taints)
        self._changed = changed
        self._cache = ObjectCache(monotonic, trims={NODES: TRIMS[NODES]})
        self._drains: dict[str, NodeDrain] = {}

    @property
    def are_seen(self) -> bool:
        """Whether the watch has spoken lately."""
        return self._cache.is_current((NODES,), "")

    def watch(self, client: KubeClient, relist_seconds: float, pauses: Pauses) -> SharedWatch:
        """Give the watch that fills it."""
        return SharedWatch(client, self._cache, NODES, None, self._take, relist_seconds=relist_seconds, pauses=pauses)

    def on_pods(self, pods: Sequence[Pod]) -> tuple[Pod, ...]:
        """Give the pods with what is known of their nodes; nothing where the watch is silent."""
        if not self.are_seen:
            return tuple(pods)
        return tuple(
            replace(pod, drain=self._drains.get(pod.node), zone=pod.zone or self._zone(pod.node)) for pod in pods
        )

    def _zone(self, name: str) -> str:
        node = self._cache.find(NODES, "", name)
        return "" if node is None else zone_of(node)

    def _take(self, _kind: Kind, _key: Key, one: Json | None) -> None:
        """Take an event, or a list, where no node is given."""
        before = self._drains
        if one is None:
            found = [drain_of(node, self._taints) for node in self._cache.of_kind(NODES)]
            self._drains = {drain.node: drain for drain in found if drain is not None}
        else:
            name = str(one["metadata"]["name"])
            node = self._cache.find(NODES, "", name)
            drain = None if node is None else drain_of(node, self._taints)
            others = {other: known for other, known in before.items() if other != name}
            self._drains = others if drain is None else {**others, name: drain}
        names = frozenset(name for name in {*before, *self._drains} if before.get(name) != self._drains.get(name))
        if names:
            self._changed(names)
