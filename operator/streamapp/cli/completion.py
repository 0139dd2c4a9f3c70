"""Shell completion: names from the cluster, and answers in kubectl's own protocol.

`kubectl` runs `kubectl_complete-streamapp` for `kubectl streamapp <TAB>`, with the words of the line. It reads one
proposal a line, then `:` and a number. If anything fails, there are no proposals: an error would break the user's line.
"""

import os
import sys

import click

from streamapp.cli.cluster.target import Target
from streamapp.cli.errors import CliError

TIMEOUT_SECONDS = 2.0
COMPLETE_VARIABLE = "_KUBECTL_STREAMAPP_COMPLETE"
"""The environment variable by which click recognizes a request for proposals or for a shell's script."""
_FILES, _NO_FILES = ":0", ":4"
"""Whether kubectl's shell proposes files too."""


def streamapp_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The StreamApps of the namespace that the line names."""
    return [name for _, name in _namespaced_names(context, everywhere=False) if name.startswith(incomplete)]


def namespace_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The namespaces that have a StreamApp."""
    namespaces = {namespace for namespace, _ in _namespaced_names(context, everywhere=True)}
    return sorted(namespace for namespace in namespaces if namespace.startswith(incomplete))


def context_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The contexts of the kubeconfig."""
    from streamapp.kube.client import kubeconfig

    names = kubeconfig.contexts(context.params.get("kubeconfig"), os.environ)
    return [name for name in names if name.startswith(incomplete)]


def _namespaced_names(context: click.Context, *, everywhere: bool) -> list[tuple[str, str]]:
    import asyncio

    from streamapp.cli.cluster import streamapps

    options = context.params
    target = Target(
        kubeconfig=options.get("kubeconfig"), context=options.get("context"), namespace=options.get("namespace")
    )

    async def within_time() -> list[streamapps.Json]:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return await streamapps.list_all(target, everywhere=everywhere)

    try:
        resources = asyncio.run(within_time())
    except (CliError, TimeoutError):
        return []
    return sorted((resource["metadata"]["namespace"], resource["metadata"]["name"]) for resource in resources)


def script_for(cli: click.Command, shell: str) -> str:
    """The script that a shell sources to complete `kubectl-streamapp`."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise CliError(f"shell {shell}", "there is no completion for it", "use bash, zsh or fish")
    return kind(cli, {}, "kubectl-streamapp", COMPLETE_VARIABLE).source()


def answer_kubectl(cli: click.Command) -> int:
    """Write the proposals for kubectl; `sys.argv` has the words of the line without the first two."""
    from click.shell_completion import ShellComplete

    shell = ShellComplete(cli, {}, "kubectl streamapp", COMPLETE_VARIABLE)
    *before, incomplete = sys.argv[1:] or [""]
    items = shell.get_completions(before, incomplete)
    for item in items:
        if item.type == "plain":
            sys.stdout.write(f"{item.value}\t{item.help}\n" if item.help else f"{item.value}\n")
    sys.stdout.write(f"{_FILES if any(item.type != 'plain' for item in items) else _NO_FILES}\n")
    return 0
