"""A person's access to a cluster: kubeconfig, context and namespace, as kubectl chooses them.

Used by the command line. The operator has its own way in (`client.own_configuration`). Within a pod that has no
kubeconfig it is the pod's service account.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from streamapp.kube.client.errors import KubeError

_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_DEFAULT_NAMESPACE = "default"


class NoAccessError(KubeError):
    """It is not known how to reach a cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConnection:
    """How the API server is reached, and where to look."""

    configuration: Configuration
    context: str
    """Its name, or `service account`."""
    namespace: str
    """That of the context."""

    @property
    def server(self) -> str:
        """The API server's address."""
        return str(self.configuration.host)


async def access(kubeconfig: str | None, context: str | None, environment: Mapping[str, str]) -> ClusterConnection:
    """Find out how to reach the cluster; NoAccessError if that is impossible.

    Args:
        kubeconfig: A file; None: those that `KUBECONFIG` names, else `~/.kube/config`.
        context: Of the kubeconfig; None: its current one.
        environment: Variables of the process.
    """
    places = [kubeconfig] if kubeconfig else _usual_places(environment)
    files = _present(places)
    if files:
        return await _of_files(files, context)
    if kubeconfig is None and context is None and environment.get("KUBERNETES_SERVICE_HOST"):
        return _of_service_account()
    raise NoAccessError(
        f"kubeconfig {' and '.join(places)}",
        "there is no such file",
        "name one with --kubeconfig or KUBECONFIG",
    )


def contexts(kubeconfig: str | None, environment: Mapping[str, str]) -> list[str]:
    """The names of all contexts; none where a kubeconfig is missing or cannot be read."""
    places = [kubeconfig] if kubeconfig else _usual_places(environment)
    try:
        return [one["name"] for content in _contents(_present(places)) for one in content.get("contexts") or ()]
    except (yaml.YAMLError, OSError, AttributeError, KeyError, TypeError, ValueError):
        return []


def _present(places: list[str]) -> list[str]:
    return [place for place in places if Path(place).is_file()]


def _usual_places(environment: Mapping[str, str]) -> list[str]:
    named = [part for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    return [str(Path(part).expanduser()) for part in named or ["~/.kube/config"]]


async def _of_files(files: list[str], context: str | None) -> ClusterConnection:
    what = f"kubeconfig {' and '.join(files)}"
    configuration = Configuration()
    try:
        _check_context(what, files, context)
        loader = await load_kube_config(os.pathsep.join(files), context, configuration)
        chosen: dict[str, Any] = loader.current_context
        namespace = chosen["context"].get("namespace") or _DEFAULT_NAMESPACE
        return ClusterConnection(configuration=configuration, context=str(chosen["name"]), namespace=namespace)
    except (ConfigException, yaml.YAMLError, OSError, AttributeError, KeyError, TypeError, ValueError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise NoAccessError(what, why, "compare it with what `kubectl config view` shows") from error


def _check_context(what: str, files: list[str], context: str | None) -> None:
    """Name the available contexts if the context is missing; the library's message does not."""
    contents = _contents(files)
    names = [one["name"] for content in contents for one in content.get("contexts") or ()]
    current = next((name for content in contents if (name := content.get("current-context"))), None)
    chosen = context or current
    if chosen is None:
        raise NoAccessError(what, "it has no current context", _choose(names))
    if chosen not in names:
        raise NoAccessError(what, f"it has no context {chosen}", _choose(get_close_matches(chosen, names) or names))


def _contents(files: list[str]) -> list[Any]:
    return [yaml.safe_load(Path(file).read_text(encoding="utf-8")) or {} for file in files]


def _choose(contexts: list[str]) -> str:
    if not contexts:
        return "name a kubeconfig that has contexts with --kubeconfig or KUBECONFIG"
    return f"choose one with --context: {', '.join(contexts[:10])}"


def _of_service_account() -> ClusterConnection:
    configuration = Configuration()
    try:
        load_incluster_config(configuration)
        namespace = _OWN_NAMESPACE.read_text(encoding="utf-8").strip() if _OWN_NAMESPACE.is_file() else ""
    except (ConfigException, OSError) as error:
        raise NoAccessError(
            "the pod's service account", str(error), "mount its token, or name a kubeconfig with --kubeconfig"
        ) from error
    return ClusterConnection(
        configuration=configuration, context="service account", namespace=namespace or _DEFAULT_NAMESPACE
    )
