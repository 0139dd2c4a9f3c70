"""Every right on the API server that the operator needs, each with its reason: the one list of them.

The rules of the chart's roles are generated from it, `python -m streamapp check` asks for each, and a test compares it
with what the audit log saw. Nothing else is ever granted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from streamapp.api.names import GROUP, PLURAL
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.kinds import ACCESS_REVIEWS


class RightScope(Enum):
    """Where a right is needed."""

    WATCHED = "watched"
    """Those whose StreamApps the operator serves; all in cluster mode."""
    OWN = "own"
    """The operator's own, for its Lease."""
    CLUSTER = "cluster"
    """In no namespace: the object belongs to the cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """Verbs on one resource, or one of its subresources."""

    group: str
    """Empty for the core group."""
    resource: str
    subresource: str = ""
    verbs: tuple[str, ...]
    why: str
    """A sentence."""
    where: RightScope = RightScope.WATCHED
    optional: bool = False
    """Whether the operator does all its work without it, and only tells less."""
    named: bool = False
    """Whether it is needed for the one object of the operator's own name alone."""

    @property
    def path(self) -> str:
        """As in a Role: `streamapps/status`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def attributes(self, verb: str, namespace: str | None, name: str) -> dict[str, str]:
        """As reviews of access take them; `name` is that of the Lease, and used only where the right is for one object.

        Where the namespace is None, all are meant.
        """
        attributes_of_review = {
            "group": self.group,
            "resource": self.resource,
            "subresource": self.subresource,
            "verb": verb,
        }
        place = {"namespace": namespace or "", "name": name if self.named else ""}
        return {field: text for field, text in {**attributes_of_review, **place}.items() if text}

    def reviews(self) -> Iterator[tuple[str, str]]:
        """Each verb with the resource, as a person would ask `kubectl auth can-i`."""
        whole = f"{self.resource}.{self.group}" if self.group else self.resource
        for verb in self.verbs:
            yield verb, f"{whole}/{self.subresource}" if self.subresource else whole


RIGHTS: tuple[Right, ...] = (
    Right(
        group=GROUP,
        resource=PLURAL,
        verbs=("get", "list", "watch"),
        why="Reads the desired replicas; never writes them.",
    ),
    Right(
        group=GROUP,
        resource=PLURAL,
        subresource="status",
        verbs=("patch",),
        why="Says what is granted, what is waited for, and why.",
    ),
    Right(
        group=GROUP,
        resource=PLURAL,
        subresource="finalizers",
        verbs=("update",),
        why="Owns objects that block a StreamApp's deletion, where the cluster enforces that (OpenShift).",
    ),
    Right(
        group="apps",
        resource="statefulsets",
        verbs=("get", "list", "watch", "create", "patch"),
        why="Runs the application's pods and grants replicas; a server-side apply that makes one asks for create too.",
    ),
    Right(
        group="",
        resource="pods",
        verbs=("list", "watch", "delete"),
        why="Sees how pods are; deleting is restarting, since a rollout takes one pod at a time.",
    ),
    Right(
        group="",
        resource="persistentvolumeclaims",
        verbs=("list", "watch", "patch"),
        why="Records the process ID of each volume. It cannot delete one.",
    ),
    Right(
        group="",
        resource="services",
        verbs=("get", "list", "watch", "create", "patch"),
        why="Gives pods their names in DNS.",
    ),
    Right(
        group="policy",
        resource="poddisruptionbudgets",
        verbs=("get", "list", "watch", "create", "patch"),
        why="Keeps drains from taking a second pod while one goes.",
    ),
    Right(group="events.k8s.io", resource="events", verbs=("create",), why="Tells each decision as an Event."),
    Right(
        group="autoscaling",
        resource="horizontalpodautoscalers",
        verbs=("list",),
        why="Names an autoscaler that is aimed at the StatefulSet, or that would overwrite desired replicas.",
        optional=True,
    ),
    Right(
        group="",
        resource="resourcequotas",
        verbs=("list",),
        why="Names a quota that keeps missing pods from being made.",
        optional=True,
    ),
    Right(
        group="",
        resource="nodes",
        verbs=("list", "watch"),
        why="Sees which nodes must be drained, so that the pods there are drained before they are evicted.",
        where=RightScope.CLUSTER,
        optional=True,
    ),
    Right(
        group="coordination.k8s.io",
        resource="leases",
        verbs=("get", "patch"),
        why="One of the operator's replicas leads, by this Lease.",
        where=RightScope.OWN,
        named=True,
    ),
    Right(
        group="coordination.k8s.io",
        resource="leases",
        verbs=("create",),
        why="Makes that Lease; a name cannot be asked for here.",
        where=RightScope.OWN,
    ),
)


async def is_granted(client: KubeClient, right: Right, verb: str, namespace: str | None, name: str) -> bool:
    """Ask the API server whether whoever asks has one verb of a right; arguments as in `Right.attributes`.

    Everybody who is authenticated may ask that of himself.
    """
    body = {"metadata": {}, "spec": {"resourceAttributes": right.attributes(verb, namespace, name)}}
    return bool((await client.create(ACCESS_REVIEWS, body))["status"]["allowed"])
