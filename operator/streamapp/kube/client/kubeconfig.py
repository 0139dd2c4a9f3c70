"""A person's access to a cluster: kubeconfig, context and namespace, as kubectl chooses them.

Used by the command line. The operator has its own way in (`own_access`). Within a pod that has no
kubeconfig it is the pod's service account.
"""

import base64
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config_from_dict

from streamapp.kube.client.errors import NoAccessError
from streamapp.kube.client.exec_credential import credential
from streamapp.kube.client.impersonation import Impersonation, impersonation_of

_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_DEFAULT_NAMESPACE = "default"
SERVICE_ACCOUNT = "service account"
"""The name of the context where there is no kubeconfig."""
_PATHS: Sequence[str] = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConnection:
    """How the API server is reached, and where to look."""

    configuration: Configuration
    context: str
    """Its name, or `service account`."""
    namespace: str
    """That of the context."""
    impersonation: Impersonation | None = None
    """Whom to act as, if not as the user of the context."""

    @property
    def server(self) -> str:
        """The API server's address."""
        return str(self.configuration.host)


async def access(
    kubeconfig: str | None,
    context: str | None,
    environment: Mapping[str, str],
    act_as: Impersonation | None = None,
) -> ClusterConnection:
    """Find out how to reach the cluster; NoAccessError or PluginError if that is impossible.

    Args:
        kubeconfig: A file; None: those that `KUBECONFIG` names, else `~/.kube/config`.
        context: Of the kubeconfig; None: its current one.
        environment: Variables of the process.
        act_as: Whom to act as; None: as the kubeconfig says.
    """
    places = [kubeconfig] if kubeconfig else _usual_places(environment)
    files = _present(places)
    if files:
        return await _of_files(files, context, environment, act_as)
    if kubeconfig is None and context is None and environment.get("KUBERNETES_SERVICE_HOST"):
        return _of_service_account(act_as)
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


async def _of_files(
    files: list[str], context: str | None, environment: Mapping[str, str], act_as: Impersonation | None
) -> ClusterConnection:
    what = f"kubeconfig {' and '.join(files)}"
    configuration = Configuration()
    try:
        _check_context(what, files, context)
        merged = _merged(files)
        chosen = context or merged["current-context"]
        entry = _named(what, merged, "contexts", chosen)["context"]
        cluster = _named(what, merged, "clusters", entry["cluster"])["cluster"]
        user = _named(what, merged, "users", entry["user"]).get("user") or {}
        found = act_as or impersonation_of(what, user)
        await _authenticate(user, cluster, environment)
        await load_kube_config_from_dict(merged, chosen, configuration)
        namespace = entry.get("namespace") or _DEFAULT_NAMESPACE
        return ClusterConnection(
            configuration=configuration, context=str(chosen), namespace=namespace, impersonation=found
        )
    except (ConfigException, yaml.YAMLError, OSError, AttributeError, KeyError, TypeError, ValueError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise NoAccessError(what, why, "compare it with what `kubectl config view` shows") from error


async def _authenticate(user: dict[str, Any], cluster: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    """Put what an exec plugin gives in the place of the plugin: the library would go on without, if it failed."""
    plugin = user.pop("exec", None)
    if plugin is None:
        return
    found = await credential(plugin, cluster, environment)
    if found.token is not None:
        user["token"] = found.token
    if found.certificate is not None and found.key is not None:
        user["client-certificate-data"] = base64.b64encode(found.certificate.encode()).decode()
        user["client-key-data"] = base64.b64encode(found.key.encode()).decode()


def _named(what: str, merged: Mapping[str, Any], kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] | None = next((one for one in merged[kind] if one["name"] == name), None)
    if found is None:
        raise NoAccessError(what, f"{kind} has no {name}", "compare it with what `kubectl config view` shows")
    return found


def _merged(files: list[str]) -> dict[str, Any]:
    """Put the files together as kubectl does: the first one that has a name wins, and paths are relative to it."""
    merged: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
    for file, content in zip(files, _contents(files), strict=True):
        if content.get("current-context"):
            merged.setdefault("current-context", content["current-context"])
        folder = Path(file).absolute().parent
        for kind, field in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
            known = {one["name"] for one in merged[kind]}
            found = [one for one in content.get(kind) or () if one["name"] not in known]
            merged[kind] += [{**one, field: _absolute(one.get(field) or {}, folder)} for one in found]
    merged.setdefault("current-context", "")
    return merged


def _absolute(entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {key: str(folder / entry[key]) for key in _PATHS if entry.get(key)}
    plugin = entry.get("exec")
    if isinstance(plugin, dict) and os.sep in str(plugin.get("command")):
        found["exec"] = {**plugin, "command": str(folder / plugin["command"])}
    return {**entry, **found}


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


def _of_service_account(act_as: Impersonation | None) -> ClusterConnection:
    configuration = Configuration()
    try:
        load_incluster_config(configuration)
        namespace = _OWN_NAMESPACE.read_text(encoding="utf-8").strip() if _OWN_NAMESPACE.is_file() else ""
    except (ConfigException, OSError) as error:
        raise NoAccessError(
            "the pod's service account", str(error), "mount its token, or name a kubeconfig with --kubeconfig"
        ) from error
    return ClusterConnection(
        configuration=configuration,
        context=SERVICE_ACCOUNT,
        namespace=namespace or _DEFAULT_NAMESPACE,
        impersonation=act_as,
    )
