"""Finds the operator's leader and asks it through the API server; a network path to its pod is not needed.

Used by `tasks`, `doctor` and `history`. The user needs these rights in the operator's namespace: get `leases`, list
`pods`, and get and create `pods/portforward`. Every failure is a CliError.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from streamapp.api.http.messages import API_PORT, NO_RECORD, Answered, NotAnswerableError, read
from streamapp.cli.errors import CliError
from streamapp.cli.text.sanitize import plain
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import (
    KubeError,
    NotFoundError,
    RefusedError,
    UnauthenticatedError,
    UnavailableError,
)
from streamapp.kube.client.kinds import LEASES, PODS

OPERATOR_SELECTOR = "app.kubernetes.io/name=streamapp-operator"
LEASE = "streamapp-operator"
"""The name if no pod of the operator names another; the chart names the Lease after its release."""
_LEASE_NAME = "STREAMAPP_LEASE_NAME"

Json = dict[str, Any]
Message = TypeVar("Message", bound=Answered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """The pod that leads."""

    namespace: str
    pod: str
    lease: str | None
    """The Lease that names the pod; None if there is no Lease, and this is the only pod."""

    @property
    def by_lease(self) -> bool:
        """Whether a Lease names the pod."""
        return self.lease is not None


async def find_leader(client: KubeClient, namespace: str) -> Leader:
    """Find the pod that leads; CliError if none is known."""
    pods = await _pods(client, namespace)
    lease = LEASE if isinstance(pods, RefusedError) else lease_of(pods)
    holder = await read_lease_holder(client, namespace, lease)
    if holder:
        return Leader(namespace=namespace, pod=pod_of(holder), lease=lease)
    what = f"operator in namespace {namespace}"
    if isinstance(pods, RefusedError):
        raise _not_allowed(what, pods, "list pods", namespace) from pods
    running = [pod["metadata"]["name"] for pod in pods if is_running(pod)]
    if not pods:
        raise CliError(
            what,
            f"there is no pod with the label {OPERATOR_SELECTOR}",
            "install the operator, or name its namespace with --operator-namespace or STREAMAPP_OPERATOR_NAMESPACE",
        )
    if not running:
        raise CliError(what, "none of its pods runs", f"inspect them: kubectl describe pods -n {namespace}")
    if len(running) > 1:
        why = f"{len(running)} pods run and none holds the Lease {lease}"
        raise CliError(what, why, "try again in a few seconds; if this persists, read the logs of the pods")
    return Leader(namespace=namespace, pod=running[0], lease=None)


async def _pods(client: KubeClient, namespace: str) -> list[Json] | RefusedError:
    """The operator's pods; the error if the user may not list them, since the Lease alone can be enough."""
    try:
        return await client.list(PODS, namespace, OPERATOR_SELECTOR)
    except UnauthenticatedError:
        raise
    except RefusedError as error:
        return error


def lease_of(pods: Iterable[Json]) -> str:
    """The name of the Lease of these pods: from the environment of a running pod, else the default."""
    for pod in sorted(pods, key=is_running, reverse=True):
        for container in pod.get("spec", {}).get("containers") or ():
            for variable in container.get("env") or ():
                if variable.get("name") == _LEASE_NAME and variable.get("value"):
                    return str(variable["value"])
    return LEASE


async def read_lease_holder(client: KubeClient, namespace: str, name: str) -> str | None:
    """The holder of the Lease: empty if it has none, None if there is no Lease; CliError if it is unreadable."""
    try:
        lease = await client.find(LEASES, namespace, name)
    except RefusedError as error:
        raise _not_allowed(f"Lease {namespace}/{name}", error, "get leases", namespace) from error
    except KubeError as error:
        raise CliError(f"Lease {namespace}/{name}", error.why, "run the command again") from error
    return None if lease is None else str((lease.get("spec") or {}).get("holderIdentity") or "")


def pod_of(holder: str) -> str:
    """The pod's name in a holder, without the random suffix of each start."""
    return holder.rpartition("_")[0] or holder


def is_running(pod: Json) -> bool:
    """Whether a pod runs and is not being deleted."""
    return pod.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


async def ask(client: KubeClient, leader: Leader, path: str, model: type[Message]) -> Message:
    """Ask the leader; CliError if it does not answer."""
    what = f"operator pod {leader.namespace}/{leader.pod}"
    try:
        return read(model, await client.forwarded(leader.namespace, leader.pod, API_PORT, path))
    except NotAnswerableError as error:
        why = f"its answer to {path} is not readable: {plain(str(error))}"
        raise CliError(what, why, "use the same version of the operator and the command line") from error
    except RefusedError as error:
        raise _not_allowed(what, error, "get and create pods/portforward", leader.namespace) from error
    except NotFoundError as error:
        raise CliError(what, plain(error.why), _not_known(error)) from error
    except UnavailableError as error:
        step = (
            "try again in a few seconds; if this persists, check the pod and its kubelet; an operator that is older "
            "than the command line can serve another port: upgrade the operator"
        )
        raise CliError(what, plain(error.why), step) from error
    except KubeError as error:
        raise CliError(what, plain(error.why), "run the command again") from error


def _not_known(error: NotFoundError) -> str:
    if NO_RECORD in error.why:
        return "to keep a flight record, set the chart's value record.enabled"
    if "watch other namespaces" in error.why:
        return "check STREAMAPP_NAMESPACES of the operator, or name another operator with --operator-namespace"
    return (
        "the pod may have just stopped, or have an older version: try again in a few seconds, or upgrade the operator"
    )


def _not_allowed(what: str, error: KubeError, right: str, namespace: str) -> CliError:
    return CliError(what, plain(error.why), f"ask for a Role in namespace {namespace} with {right}")
