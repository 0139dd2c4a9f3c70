"""The errors of `streamapp.kube`, in the words of the command line."""

from collections.abc import Sequence

from streamapp.api.names import API_VERSION, GROUP, PLURAL
from streamapp.cli.errors import CliError
from streamapp.kube.client.errors import (
    ConflictError,
    InvalidError,
    KubeError,
    NoAccessError,
    NotFoundError,
    RefusedError,
    UnauthenticatedError,
    UnavailableError,
)
from streamapp.kube.client.kubeconfig import ClusterConnection

_LIST_ALL = "list them all with `kubectl streamapp status --all-namespaces`"


def of_kube(error: KubeError, connection: ClusterConnection | None, what: str) -> CliError:
    """The error of a read; `what` is the object of the request."""
    if connection is None or isinstance(error, NoAccessError):
        return CliError(error.what, error.why, error.next_step)
    server = f"API server {connection.server} (context {connection.context})"
    match error:
        case UnauthenticatedError():
            step = "log in to the cluster again, and check that `kubectl get streamapps` works with this context"
            return CliError(server, f"it rejects the credentials: {error.why}", step)
        case RefusedError():
            step = f"ask for a Role with get, list and watch on {PLURAL}.{GROUP}"
            return CliError(what, error.why, step)
        case UnavailableError():
            step = "check the address and the network, or choose another cluster with --context"
            return CliError(server, error.why, step)
        case NotFoundError():
            # A list is never missing, and the caller handles a missing object itself.
            return no_definition(connection)
        case _:
            return CliError(what, error.why, "run the command again")


def of_write(error: KubeError, connection: ClusterConnection, what: str, resource: str, group: str = GROUP) -> CliError:
    """The error of a write, which may have been made all the same.

    Args:
        error: The error of the client.
        connection: The way to the API server.
        what: The object of the write.
        resource: Its name in a Role: `streamapps`, `streamapps/scale`.
        group: Its API group; empty for the core group.
    """
    match error:
        case RefusedError() if not isinstance(error, UnauthenticatedError) and " cannot " in error.why:
            return CliError(what, error.why, f"ask for a Role with get and patch on {resource} of {group or 'core'}")
        case InvalidError() | RefusedError() if not isinstance(error, UnauthenticatedError):
            return CliError(what, f"the API server refuses it: {error.why}", "correct that; nothing was written")
        case NotFoundError():
            return CliError(what, "it was deleted meanwhile", _LIST_ALL)
        case UnavailableError():
            step = "check with `kubectl streamapp status` before you run the command again"
            return CliError(what, f"the write was not answered, and may have been made: {error.why}", step)
        case ConflictError():
            return CliError(what, "other writers changed it before each attempt", "run the command again")
        case _:
            return of_kube(error, connection, what)


def no_definition(connection: ClusterConnection) -> CliError:
    """The error if the API server has no StreamApp API."""
    return CliError(
        f"API server {connection.server} (context {connection.context})",
        f"it does not serve {PLURAL} of {API_VERSION}: the CustomResourceDefinition is not installed",
        f"install it with `kubectl apply -f crds/{PLURAL}.{GROUP}.yaml`, or choose another cluster with --context",
    )


def no_such_app(namespace: str, name: str, near: Sequence[str] = (), elsewhere: Sequence[str] = ()) -> CliError:
    """The error if there is no StreamApp of this name.

    Args:
        namespace: The namespace of the request.
        name: The name of the request.
        near: Similar names in this namespace.
        elsewhere: Other namespaces with this name.
    """
    step = _LIST_ALL
    if elsewhere:
        step = f"it exists elsewhere: add {' or '.join(f'--namespace {other}' for other in elsewhere)}"
    if near:
        step = f"did you mean {' or '.join(near)}?"
    return CliError(f"StreamApp {namespace}/{name}", "it does not exist", step)
