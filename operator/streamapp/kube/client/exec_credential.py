"""Credentials from an exec plugin of a kubeconfig, as kubectl gets them (client.authentication.k8s.io).

Used by `kubeconfig`. What the plugin writes on standard error goes straight to the terminal: that is where it asks a
person to open a page or to touch a key. A plugin that fails ends the command; it never goes on without credentials.
"""

import asyncio
import base64
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from streamapp.kube.client.errors import NoAccessError

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
EXTENSION = "client.authentication.k8s.io/exec"
"""Extension of a cluster's entry that is meant for its plugin."""
DEADLINE_SECONDS = 300.0
"""A person may have to log in meanwhile."""
_PROVIDED = {
    "server": "server",
    "tls-server-name": "tlsServerName",
    "insecure-skip-tls-verify": "insecureSkipTLSVerify",
    "certificate-authority-data": "certificateAuthorityData",
    "proxy-url": "proxyURL",
    "disable-compression": "disableCompression",
}


class PluginError(NoAccessError):
    """An exec plugin gave no credentials."""


@dataclass(frozen=True, slots=True)
class Credential:
    """What a plugin gave: a token, or a certificate with its key, or both."""

    token: str | None = field(default=None, repr=False)
    certificate: str | None = None
    key: str | None = field(default=None, repr=False)
    ends_at: datetime | None = None

    def is_usable(self, now: datetime) -> bool:
        """Whether it may be used again; one that names no end may."""
        return self.ends_at is None or now < self.ends_at


_known: dict[str, Credential] = {}
"""Of this process, by the plugin's settings: a watch that connects anew must not ask a person again."""


async def credential(
    plugin: Mapping[str, Any],
    cluster: Mapping[str, Any],
    environment: Mapping[str, str],
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Credential:
    """Run the plugin, unless what it gave before is usable; PluginError.

    Args:
        plugin: `exec` of the user in the kubeconfig.
        cluster: The cluster's entry, for a plugin that wants it (`provideClusterInfo`).
        environment: Variables of the process, for the plugin.
        now: The clock.
    """
    known = _known.get(_name_of(plugin, cluster))
    if known is not None and known.is_usable(now()):
        return known
    what = f"exec plugin {plugin.get('command')}"
    version = plugin.get("apiVersion")
    if version not in VERSIONS:
        raise PluginError(what, f"its apiVersion is {version}", f"update the plugin: {VERSIONS[0]}")
    is_interactive = plugin.get("interactiveMode", "IfAvailable") != "Never" and sys.stdin.isatty()
    if plugin.get("interactiveMode") == "Always" and not is_interactive:
        raise PluginError(what, "it must ask a person, and standard input is no terminal", "run this in a terminal")
    output = await _output(what, plugin, _environment(plugin, cluster, environment, is_interactive), is_interactive)
    found = _read(what, str(version), output)
    _known[_name_of(plugin, cluster)] = found
    return found


def _name_of(plugin: Mapping[str, Any], cluster: Mapping[str, Any]) -> str:
    return json.dumps([plugin, cluster], sort_keys=True, default=str)


def _environment(
    plugin: Mapping[str, Any], cluster: Mapping[str, Any], environment: Mapping[str, str], is_interactive: bool
) -> dict[str, str]:
    spec: dict[str, Any] = {"interactive": is_interactive}
    if plugin.get("provideClusterInfo"):
        spec["cluster"] = {name: cluster[key] for key, name in _PROVIDED.items() if key in cluster}
        authority = cluster.get("certificate-authority")
        if authority and "certificateAuthorityData" not in spec["cluster"]:
            spec["cluster"]["certificateAuthorityData"] = _base64_of(Path(str(authority)))
        for extension in cluster.get("extensions") or ():
            if extension.get("name") == EXTENSION:
                spec["cluster"]["config"] = extension.get("extension")
    info = {"apiVersion": plugin["apiVersion"], "kind": "ExecCredential", "spec": spec}
    own = {one["name"]: str(one["value"]) for one in plugin.get("env") or ()}
    return {**environment, **own, "KUBERNETES_EXEC_INFO": json.dumps(info)}


def _base64_of(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


async def _output(what: str, plugin: Mapping[str, Any], environment: dict[str, str], is_interactive: bool) -> bytes:
    command = [str(plugin.get("command")), *(str(argument) for argument in plugin.get("args") or ())]
    try:
        running = await asyncio.create_subprocess_exec(
            *command,
            env=environment,
            stdin=None if is_interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=None,
        )
    except OSError as error:
        hint = str(plugin.get("installHint") or "install it, or log in with another context")
        raise PluginError(what, error.strerror or str(error), " ".join(hint.split())) from error
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            output, _ = await running.communicate()
    except TimeoutError as error:
        raise PluginError(what, f"it has not ended within {DEADLINE_SECONDS:g} s", "log in with it by hand") from error
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()
    if running.returncode != 0:
        raise PluginError(what, f"it ended with exit code {running.returncode}", "see what it wrote above, and log in")
    return output


def _read(what: str, version: str, output: bytes) -> Credential:
    next_step = "run it by hand and compare its output with an ExecCredential"
    try:
        answer = json.loads(output)
        status = answer["status"]
        if answer["kind"] != "ExecCredential" or answer["apiVersion"] != version:
            raise PluginError(what, f"it gave {answer['kind']} of {answer['apiVersion']}, not of {version}", next_step)
        end = status.get("expirationTimestamp")
        found = Credential(
            token=status.get("token"),
            certificate=status.get("clientCertificateData"),
            key=status.get("clientKeyData"),
            ends_at=None if end is None else datetime.fromisoformat(end),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PluginError(what, "its output is no ExecCredential", next_step) from error
    if (found.certificate is None) != (found.key is None) or (found.token is None and found.certificate is None):
        raise PluginError(what, "it gave neither a token nor a certificate with its key", next_step)
    return found
