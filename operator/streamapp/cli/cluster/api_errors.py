"""The errors of `streamapp.kube`, which speak to whoever runs the operator, in the words of the command line."""

from collections.abc import Sequence

from streamapp.api.names import API_VERSION, GROUP, PLURAL
from streamapp.cli.errors import CliError
from streamapp.kube.client.errors import (
    ConflictError,
    InvalidError,
    KubeError,
    NotFoundError,
    RefusedError,
    UnauthenticatedError,
    UnavailableError,
)
from streamapp.kube.client.kubeconfig import ClusterConnection, NoAccessError

_LIST_ALL = "list them all with `kubectl streamapp status --all-namespaces`"


def of_kube(error: KubeError, access: ClusterConnection | None, what: str) -> CliError:
    """Tell an error of the API server or on the way to it; `what` is the object that was asked for."""
    if access is None or isinstance(error, NoAccessError):
        return CliError(error.what, error.why, error.next_step)
    where = f"API server {access.server} (context {access.context})"
    match error:
        case UnauthenticatedError():
            step = "log in to the cluster again, and see that `kubectl get streamapps` works with the same context"
            return CliError(where, f"it does not accept the credentials: {error.why}", step)
        case RefusedError():
            step = f"ask for a Role with get, list and watch on {PLURAL}.{GROUP}"
            return CliError(what, error.why, step)
        case UnavailableError():
            step = "see that the address is right and the network reaches it, or choose another with --context"
            return CliError(where, error.why, step)
        case NotFoundError():
            # A list is never missing; whoever asks for one object tells a missing one apart himself.
            return no_definition(access)
        case _:
            return CliError(what, error.why, "run the command again")


def of_write(error: KubeError, access: ClusterConnection, what: str, resource: str) -> CliError:
    """Tell why a write was not made, or may not have been.

    Args:
        error: What the API server said.
        access: Where it is.
        what: The object that was to be written.
        resource: What a Role calls it: `streamapps`, `streamapps/scale`.
    """
    match error:
        case RefusedError() if not isinstance(error, UnauthenticatedError) and " cannot " in error.why:
            return CliError(what, error.why, f"ask for a Role with get and patch on {resource} of {GROUP}")
        case InvalidError() | RefusedError() if not isinstance(error, UnauthenticatedError):
            return CliError(
                what, f"the API server refuses it: {error.why}", "change what it names; nothing was written"
            )
        case NotFoundError():
            return CliError(what, "it was deleted meanwhile", _LIST_ALL)
        case UnavailableError():
            step = "look whether it was written before running the command again: `kubectl streamapp status`"
            return CliError(what, f"no answer to the write, which may have been made: {error.why}", step)
        case ConflictError():
            return CliError(
                what, "others wrote it each time that this was about to be written", "run the command again"
            )
        case _:
            return of_kube(error, access, what)


def no_definition(access: ClusterConnection) -> CliError:
    """The API server does not know StreamApps."""
    return CliError(
        f"API server {access.server} (context {access.context})",
        f"it does not know {PLURAL} of {API_VERSION}: the CustomResourceDefinition is not installed",
        f"install it with `kubectl apply -f crds/{PLURAL}.{GROUP}.yaml`, or choose another cluster with --context",
    )


def no_such_app(namespace: str, name: str, near: Sequence[str] = (), elsewhere: Sequence[str] = ()) -> CliError:
    """There is no StreamApp of this name.

    Args:
        namespace: Where it was looked for.
        name: What was looked for.
        near: Names in this namespace that may be meant.
        elsewhere: Namespaces that have one of this name.
    """
    step = _LIST_ALL
    if elsewhere:
        step = f"there is one elsewhere: add {' or '.join(f'--namespace {other}' for other in elsewhere)}"
    if near:
        step = f"did you mean {' or '.join(near)}?"
    return CliError(f"StreamApp {namespace}/{name}", "there is none of this name", step)
