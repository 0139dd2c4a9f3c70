"""The options and arguments that several commands have. Imports nothing heavy."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from streamapp.cli.cluster.target import Where
from streamapp.cli.completion import context_names, namespace_names, streamapp_names

EXIT_CODES = """
\b
Exit codes:
  0    fine
  1    not found, not reachable, not allowed, refused
  2    the command line is wrong
  3    with --exit-code: something goes on, such as a held scale-down; doctor: warnings
  4    with --exit-code: it is stalled, not ready or not known, or no operator runs; doctor: errors
"""


def where_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that say which cluster and which namespace, and hand them on as `where`."""

    @wraps(command)
    def with_where(*, namespace: str | None, context: str | None, kubeconfig: str | None, **others: Any) -> int:
        return command(where=Where(kubeconfig=kubeconfig, context=context, namespace=namespace), **others)

    found = with_where
    for option in (
        click.option(
            "--kubeconfig",
            metavar="FILE",
            type=click.Path(),
            help="Default: those in KUBECONFIG, else ~/.kube/config.",
        ),
        click.option(
            "--context",
            metavar="NAME",
            shell_complete=context_names,
            help="Context of the kubeconfig. Default: its current one.",
        ),
        click.option(
            "-n",
            "--namespace",
            metavar="NAME",
            shell_complete=namespace_names,
            help="Default: that of the context.",
        ),
    ):
        found = option(found)
    return found


def name_argument(*, required: bool = True) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Add the name of a StreamApp, which shells complete from the cluster."""
    return click.argument("name", required=required, shell_complete=streamapp_names)


output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="How the answer is written.",
)
operator_namespace_option = click.option(
    "--operator-namespace",
    metavar="NAME",
    default="streamapp-system",
    envvar="STREAMAPP_OPERATOR_NAMESPACE",
    show_envvar=True,
    show_default=True,
    shell_complete=namespace_names,
    help="Where the operator runs.",
)
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
