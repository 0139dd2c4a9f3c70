"""The commands that also ask the operator: their options and help, as in `root`, which takes them in."""

from importlib import import_module

import click

from streamapp.cli.cluster.target import Where
from streamapp.cli.options import (
    EXIT_CODES,
    name_argument,
    operator_namespace_option,
    output_option,
    where_options,
)


@click.command(epilog=EXIT_CODES)
@name_argument()
@where_options
@operator_namespace_option
@click.option("--ordinal", metavar="N", type=click.IntRange(min=0), help="Only tasks of which this pod has a copy.")
@click.option("--behind", is_flag=True, help="Only tasks that do not run, lag, or are not covered.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "wide", "json", "yaml"]),
    default="table",
    show_default=True,
    help="How the answer is written.",
)
def tasks(*, where: Where, name: str, operator_namespace: str, ordinal: int | None, behind: bool, output: str) -> int:
    """Show every task of the StreamApp called NAME: who has it, its copies, and who could take over."""
    commands = import_module("streamapp.cli.commands.status")
    chosen = commands.Output(output)
    return int(commands.tasks(where, operator_namespace, name, chosen, ordinal=ordinal, behind=behind))


@click.command(epilog=EXIT_CODES)
@name_argument(required=False)
@where_options
@operator_namespace_option
@click.option("-A", "--all-namespaces", is_flag=True, help="The StreamApps of all namespaces.")
@click.option("--exit-code", is_flag=True, help="Let the exit code say how it is: 3 and 4 below.")
@output_option
def doctor(
    *,
    where: Where,
    name: str | None,
    operator_namespace: str,
    all_namespaces: bool,
    exit_code: bool,
    output: str,
) -> int:
    """Say what is wrong with cluster, operator and StreamApps, or the one called NAME, and how it is mended."""
    if all_namespaces and (name is not None or where.namespace is not None):
        raise click.UsageError("--all-namespaces goes with neither NAME nor --namespace")
    commands = import_module("streamapp.cli.commands.status")
    chosen = commands.Output(output)
    return int(commands.doctor(where, operator_namespace, name, chosen, everywhere=all_namespaces, with_code=exit_code))


COMMANDS = (tasks, doctor)
