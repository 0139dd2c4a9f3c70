"""The options and help of `kubectl streamapp advise`; `app` adds the command. Imports what it needs when it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from streamapp.cli.options import (
    EXIT_CODES,
    name_argument,
    operator_namespace_option,
    output_option,
    require_one_namespace_choice,
    target_options,
)

if TYPE_CHECKING:
    from streamapp.cli.cluster.target import Target


@click.command(epilog=EXIT_CODES, short_help="Show what to change, and the figures it rests on.")
@name_argument(required=False)
@target_options
@operator_namespace_option
@click.option(
    "--config-map",
    metavar="NAME",
    default="streamapp-insight",
    show_default=True,
    help="ConfigMap with the insight, in the namespace of the operator.",
)
@click.option("-A", "--all-namespaces", is_flag=True, help="Show the StreamApps of all namespaces.")
@output_option
def advise(
    *,
    target: Target,
    name: str | None,
    operator_namespace: str,
    config_map: str,
    all_namespaces: bool,
    output: str,
) -> int:
    """Show what to change of the StreamApps, one line for each piece of advice, or all about NAME.

    `streamapp-analytics` learned it from the flight record. All about NAME: the figures, the effect, what to look at
    first, the patch, the budget, and how good estimated times were. The command changes nothing.
    """
    from streamapp.cli.advice import command
    from streamapp.cli.advice.learned import Source
    from streamapp.cli.text.console import Output

    require_one_namespace_choice(target, name, all_namespaces=all_namespaces)
    source = Source(namespace=operator_namespace, name=config_map)
    return command.advise(target, name, source, Output(output), everywhere=all_namespaces)
