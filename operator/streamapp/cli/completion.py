"""What shells complete: names from the cluster, and the answer to kubectl, which asks in a way of its own.

`kubectl` runs `kubectl_complete-streamapp` for `kubectl streamapp <TAB>`, with the words so far and the one that is
being written, and reads one proposal a line, then `:` and a number. Whatever goes wrong, nothing is proposed: nobody
wants an error in the middle of a line. Imports nothing heavy until a name is asked for.
"""

import os
import sys
from importlib import import_module
from typing import Any

import click

from streamapp.cli.cluster.target import Where
from streamapp.cli.errors import CliError

TIMEOUT_SECONDS = 2.0
COMPLETE_VARIABLE = "_KUBECTL_STREAMAPP_COMPLETE"
"""By which click is asked for proposals, and for the script of a shell."""
_FILES, _NO_FILES = ":0", ":4"
"""What kubectl's shell may propose beside these."""


def streamapp_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The StreamApps of the namespace that the line names."""
    return [name for _, name in _known(context, everywhere=False) if name.startswith(incomplete)]


def namespace_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The namespaces in which there is a StreamApp."""
    known = {namespace for namespace, _ in _known(context, everywhere=True)}
    return sorted(namespace for namespace in known if namespace.startswith(incomplete))


def context_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The contexts of the kubeconfig."""
    kubeconfig = import_module("streamapp.kube.client.kubeconfig")
    names = kubeconfig.contexts(context.params.get("kubeconfig"), os.environ)
    return [name for name in names if name.startswith(incomplete)]


def _known(context: click.Context, *, everywhere: bool) -> list[tuple[str, str]]:
    said = context.params
    where = Where(kubeconfig=said.get("kubeconfig"), context=said.get("context"), namespace=said.get("namespace"))
    asyncio, reading = import_module("asyncio"), import_module("streamapp.cli.cluster.streamapps")

    async def within_time() -> list[dict[str, Any]]:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            found: list[dict[str, Any]] = await reading.several(where, everywhere=everywhere)
            return found

    try:
        resources = asyncio.run(within_time())
    except (CliError, TimeoutError):
        return []
    return sorted((one["metadata"]["namespace"], one["metadata"]["name"]) for one in resources)


def script_for(cli: click.Command, shell: str) -> str:
    """The script that a shell reads once, so that it completes `kubectl-streamapp`."""
    kind = import_module("click.shell_completion").get_completion_class(shell)
    if kind is None:
        raise CliError(f"shell {shell}", "there is no completion for it", "bash, zsh and fish have one")
    return str(kind(cli, {}, "kubectl-streamapp", COMPLETE_VARIABLE).source())


def for_kubectl() -> int:
    """Answer kubectl: the words of the line without the first two are the arguments."""
    root = import_module("streamapp.cli.app").streamapp
    shell = import_module("click.shell_completion").ShellComplete(root, {}, "kubectl streamapp", COMPLETE_VARIABLE)
    *before, incomplete = sys.argv[1:] or [""]
    items = shell.get_completions(before, incomplete)
    for item in items:
        if item.type == "plain":
            sys.stdout.write(f"{item.value}\t{item.help}\n" if item.help else f"{item.value}\n")
    sys.stdout.write(f"{_FILES if any(item.type != 'plain' for item in items) else _NO_FILES}\n")
    return 0
