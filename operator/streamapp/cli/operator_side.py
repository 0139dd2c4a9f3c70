"""Finds the operator's leader and asks it, through the API server: no network path to its pod is needed.

Used by `tasks` and `doctor`. It takes three rights in the operator's namespace: get `leases`, list `pods`, and get
`pods/proxy`. Whatever keeps an answer away is a CliError with the object, the cause and the next step.
"""

from dataclasses import dataclass
from typing import Any, TypeVar

from streamapp.api.answers import PORT, Answered, NotAnswerableError, read
from streamapp.cli.failures import CliError
from streamapp.cli.plain import plain
from streamapp.kube.client import KubeClient
from streamapp.kube.errors import KubeError, NotFoundError, RefusedError, UnavailableError
from streamapp.kube.places import LEASES, PODS

OPERATOR_SELECTOR = "app.kubernetes.io/name=streamapp-operator"
LEASE = "streamapp-operator"

Json = dict[str, Any]
Told = TypeVar("Told", bound=Answered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """Which pod leads, as far as it can be told."""

    namespace: str
    pod: str
    by_lease: bool
    """False: there is no Lease, and it is the only pod."""


async def leader(client: KubeClient, namespace: str) -> Leader:
    """Find the pod that leads; CliError where none can be named."""
    holder = await lease_holder(client, namespace)
    if holder:
        return Leader(namespace=namespace, pod=pod_of(holder), by_lease=True)
    what = f"operator in namespace {namespace}"
    try:
        pods = await client.list(PODS, namespace, OPERATOR_SELECTOR)
    except RefusedError as error:
        raise _not_allowed(what, error, "list pods", namespace) from error
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
        why = f"{len(running)} pods run and none holds the Lease {LEASE}"
        raise CliError(what, why, "ask again in some seconds; if it lasts, look at the pods' logs")
    return Leader(namespace=namespace, pod=running[0], by_lease=False)


async def lease_holder(client: KubeClient, namespace: str) -> str | None:
    """Who holds the Lease: empty where nobody does, None where there is none; CliError where it may not be read."""
    try:
        lease = await client.find(LEASES, namespace, LEASE)
    except RefusedError as error:
        raise _not_allowed(f"Lease {namespace}/{LEASE}", error, "get leases", namespace) from error
    except KubeError as error:
        raise CliError(f"Lease {namespace}/{LEASE}", error.why, "run the command again") from error
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
    if "watch other namespaces" in error.why:
        return "see STREAMAPP_NAMESPACES of the operator, or name another one with --operator-namespace"
    return "it may just have gone, or be of an older version: ask again in some seconds, or upgrade the operator"


def _not_allowed(what: str, error: KubeError, right: str, namespace: str) -> CliError:
    return CliError(what, plain(error.why), f"ask for a Role in namespace {namespace} with {right}")
