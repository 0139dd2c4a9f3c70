"""Finds the operator's leader and asks it, through the API server: no network path to its pod is needed.

Used by `tasks`, `doctor` and `history`. It takes three rights in the operator's namespace: get `leases`, list `pods`,
and get `pods/proxy`. Whatever keeps an answer away is a CliError with the object, the cause and the next step.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from streamapp.api.http.messages import NO_RECORD, PORT, Answered, NotAnswerableError, read
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
"""Its name where no pod of the operator says another: the chart names it after its release."""
_LEASE_NAME = "STREAMAPP_LEASE_NAME"

Json = dict[str, Any]
Told = TypeVar("Told", bound=Answered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """Which pod leads, as far as it can be told."""

    namespace: str
    pod: str
    lease: str | None
    """The name of the Lease that says so; None: there is none, and it is the only pod."""

    @property
    def by_lease(self) -> bool:
        """Whether a Lease says so."""
        return self.lease is not None


async def leader(client: KubeClient, namespace: str) -> Leader:
    """Find the pod that leads; CliError where none can be named."""
    pods = await _pods(client, namespace)
    lease = LEASE if isinstance(pods, RefusedError) else lease_of(pods)
    holder = await lease_holder(client, namespace, lease)
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
            "install the operator, or say where it is with --operator-namespace or STREAMAPP_OPERATOR_NAMESPACE",
        )
    if not running:
        raise CliError(what, "none of its pods runs", f"look at them: kubectl describe pods -n {namespace}")
    if len(running) > 1:
        why = f"{len(running)} pods run and none holds the Lease {lease}"
        raise CliError(what, why, "ask again in some seconds; if it lasts, look at the pods' logs")
    return Leader(namespace=namespace, pod=running[0], lease=None)


async def _pods(client: KubeClient, namespace: str) -> list[Json] | RefusedError:
    """The operator's pods; the refusal where they may not be listed, since the Lease alone may do."""
    try:
        return await client.list(PODS, namespace, OPERATOR_SELECTOR)
    except UnauthenticatedError:
        raise
    except RefusedError as error:
        return error


def lease_of(pods: Iterable[Json]) -> str:
    """The name of the Lease for which these pods stand: as the first that runs says, else the usual one."""
    for pod in sorted(pods, key=is_running, reverse=True):
        for container in pod.get("spec", {}).get("containers") or ():
            for variable in container.get("env") or ():
                if variable.get("name") == _LEASE_NAME and variable.get("value"):
                    return str(variable["value"])
    return LEASE


async def lease_holder(client: KubeClient, namespace: str, name: str) -> str | None:
    """Who holds the Lease: empty where nobody does, None where there is none; CliError where it may not be read."""
    try:
        lease = await client.find(LEASES, namespace, name)
    except RefusedError as error:
        raise _not_allowed(f"Lease {namespace}/{name}", error, "get leases", namespace) from error
    except KubeError as error:
        raise CliError(f"Lease {namespace}/{name}", error.why, "run the command again") from error
    return None if lease is None else str((lease.get("spec") or {}).get("holderIdentity") or "")


def pod_of(holder: str) -> str:
    """The pod's name in a holder, which ends in what every start makes up."""
    return holder.rpartition("_")[0] or holder


def is_running(pod: Json) -> bool:
    """Tell whether a pod runs and nobody asked it to stop."""
    return pod.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


def is_ready(pod: Json) -> bool:
    """Tell whether a pod is ready."""
    conditions: list[Json] = pod.get("status", {}).get("conditions", ())
    return is_running(pod) and any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


async def ask(client: KubeClient, asked: Leader, path: str, model: type[Told]) -> Told:
    """Ask the leader; CliError where it gives no answer."""
    what = f"operator pod {asked.namespace}/{asked.pod}"
    try:
        return read(model, await client.proxied(asked.namespace, asked.pod, PORT, path))
    except NotAnswerableError as error:
        why = f"its answer to {path} cannot be understood: {plain(str(error))}"
        raise CliError(what, why, "bring operator and command line to one version") from error
    except RefusedError as error:
        raise _not_allowed(what, error, "get pods/proxy", asked.namespace) from error
    except NotFoundError as error:
        raise CliError(what, plain(error.why), _not_known(error)) from error
    except UnavailableError as error:
        step = "ask again in some seconds; if it lasts, look at the pod, and at network policies for the API server"
        raise CliError(what, plain(error.why), step) from error
    except KubeError as error:
        raise CliError(what, plain(error.why), "run the command again") from error


def _not_known(error: NotFoundError) -> str:
    if NO_RECORD in error.why:
        return "the chart's value record.enabled has one kept"
    if "watch other namespaces" in error.why:
        return "see STREAMAPP_NAMESPACES of the operator, or name another one with --operator-namespace"
    return "it may just have gone, or be of an older version: ask again in some seconds, or upgrade the operator"


def _not_allowed(what: str, error: KubeError, right: str, namespace: str) -> CliError:
    return CliError(what, plain(error.why), f"ask for a Role in namespace {namespace} with {right}")
