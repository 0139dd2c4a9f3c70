"""The command line: its commands, options and help. Imports nothing heavy, so that help and mistakes are told at once.

`kubectl` finds the script `kubectl-streamapp` on the PATH and runs it for `kubectl streamapp`.
"""

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

import click

from streamapp.cli.where import Where

_EXIT_CODES = """
\b
Exit codes:
  0    fine
  1    not found, not reachable, not allowed
  2    the command line is wrong
  3    with --exit-code: something goes on, such as a held scale-down
  4    with --exit-code: it is stalled, not ready or not known, or no operator runs
"""


def _where(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that say which cluster and which namespace, and hand them on as `where`."""

    @wraps(command)
    def with_where(*, namespace: str | None, context: str | None, kubeconfig: str | None, **others: Any) -> int:
        return command(where=Where(kubeconfig=kubeconfig, context=context, namespace=namespace), **others)

    found = with_where
    for option in (
        click.option("--kubeconfig", metavar="FILE", help="Default: those in KUBECONFIG, else ~/.kube/config."),
        click.option("--context", metavar="NAME", help="Context of the kubeconfig. Default: its current one."),
        click.option("-n", "--namespace", metavar="NAME", help="Default: that of the context."),
    ):
        found = option(found)
    return found


_output = click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="How the answer is written.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EXIT_CODES)
@click.version_option(package_name="streamapp-operator", message="kubectl-streamapp %(version)s")
def streamapp() -> None:
    """See how Kafka Streams applications scale: what is wished for, granted, held, and why."""


@streamapp.command(epilog=_EXIT_CODES)
@click.argument("name", required=False)
@_where
@click.option("-A", "--all-namespaces", is_flag=True, help="The StreamApps of all namespaces.")
@click.option("-w", "--watch", is_flag=True, help="Stay and follow every change. Ctrl-C ends it.")
@click.option("--exit-code", is_flag=True, help="Let the exit code say how it is: 3 and 4 below.")
@_output
def status(*, where: Where, name: str | None, all_namespaces: bool, watch: bool, exit_code: bool, output: str) -> int:
    """Show the StreamApps, one line each, or everything about the one called NAME."""
    if all_namespaces and (name is not None or where.namespace is not None):
        raise click.UsageError("--all-namespaces goes with neither NAME nor --namespace")
    commands = import_module("streamapp.cli.commands")
    act = commands.watch if watch else commands.status
    return int(act(where, name, commands.Output(output), everywhere=all_namespaces, with_code=exit_code))


@streamapp.command(epilog=_EXIT_CODES)
@click.argument("name")
@_where
@_output
def explain(*, where: Where, name: str, output: str) -> int:
    """Say in sentences why the StreamApp called NAME is as it is, for how long still, and what you can do."""
    commands = import_module("streamapp.cli.commands")
    return int(commands.explanation(where, name, commands.Output(output)))
