"""The options and arguments that several commands share."""

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any

import click

from streamapp.cli.cluster.target import Target
from streamapp.cli.completion import context_names, namespace_names, streamapp_names

EXIT_CODES = """
\b
Exit codes:
  0    success
  1    not found, not reachable, not allowed, refused
  2    usage error
  3    with --exit-code: a change is in progress, such as a held scale-down
       doctor --exit-code: warnings
  4    with --exit-code: stalled, not ready, unknown, or no operator runs
       doctor --exit-code: errors
  130  Ctrl-C
"""


def target_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that choose the cluster and the namespace; the command receives them as `target`."""

    @wraps(command)
    def with_target(**options: Any) -> int:
        chosen = {field.name: options.pop(field.name) for field in fields(Target) if field.name in options}
        return command(target=Target(**chosen), **options)

    decorated = with_target
    for option in (
        click.option("--as-uid", "act_as_uid", metavar="UID", default="", help="UID to act as."),
        click.option(
            "--as-group", "act_as_groups", metavar="NAME", multiple=True, help="Group to act as; can be repeated."
        ),
        click.option(
            "--as", "act_as", metavar="USER", default="", help="User to act as. Default: as the kubeconfig says."
        ),
        click.option(
            "--kubeconfig",
            metavar="FILE",
            type=click.Path(),
            help="Default: the files in KUBECONFIG, else ~/.kube/config.",
        ),
        click.option(
            "--context",
            metavar="NAME",
            shell_complete=context_names,
            help="Context of the kubeconfig. Default: its current context.",
        ),
        click.option(
            "-n",
            "--namespace",
            metavar="NAME",
            shell_complete=namespace_names,
            help="Default: the namespace of the context.",
        ),
    ):
        decorated = option(decorated)
    return decorated


def name_argument(*, required: bool = True) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Add the name of a StreamApp, which shells complete from the cluster."""
    return click.argument("name", required=required, shell_complete=streamapp_names)


output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="Output format.",
)
operator_namespace_option = click.option(
    "--operator-namespace",
    metavar="NAME",
    default="streamapp-system",
    envvar="STREAMAPP_OPERATOR_NAMESPACE",
    show_envvar=True,
    show_default=True,
    shell_complete=namespace_names,
    help="The namespace of the operator.",
)
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")


def require_one_namespace_choice(target: Target, name: str | None, *, all_namespaces: bool) -> None:
    """Refuse all namespaces together with one of them, or with one StreamApp."""
    if all_namespaces and (name is not None or target.namespace is not None):
        raise click.UsageError("--all-namespaces cannot be combined with NAME or --namespace")
