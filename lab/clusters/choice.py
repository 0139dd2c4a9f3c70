"""Chooses the cluster that `CLUSTER` names."""

from collections.abc import Callable

from lab.clusters.cluster import Cluster
from lab.clusters.context import ContextCluster
from lab.clusters.embedded import EmbeddedCluster
from lab.clusters.kind import KindCluster
from lab.errors import LabError
from lab.settings import Settings

_CLUSTERS: dict[str, Callable[[Settings], Cluster]] = {
    EmbeddedCluster.name: EmbeddedCluster,
    KindCluster.name: KindCluster,
    # Nothing of the lab's settings concerns a cluster that the lab neither builds for nor starts.
    ContextCluster.name: lambda _: ContextCluster(),
}


def chosen(settings: Settings) -> Cluster:
    """Give the cluster of `settings.cluster`; LabError names the words that are known."""
    cluster = _CLUSTERS.get(settings.cluster)
    if cluster is None:
        raise LabError(
            f"CLUSTER={settings.cluster}: unknown",
            f"known are {', '.join(_CLUSTERS)}",
            "leave CLUSTER unset for the embedded lab",
        )
    return cluster(settings)


def embedded(settings: Settings) -> EmbeddedCluster:
    """Give the embedded lab, for what only it has: parts and their logs."""
    if settings.cluster != EmbeddedCluster.name:
        raise LabError(
            f"CLUSTER={settings.cluster}: has no parts to show",
            "status and logs of single parts exist only where the lab runs the node itself",
            "use kubectl: `python -m lab exec -- kubectl get pods -A`",
        )
    return EmbeddedCluster(settings)
