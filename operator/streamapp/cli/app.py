"""The command line: its commands, options and help. Imports nothing heavy, so that help and mistakes are told at once.

`kubectl` finds the script `kubectl-streamapp` on the PATH and runs it for `kubectl streamapp`.
"""

from importlib import import_module

import click

from streamapp.cli import root_asking, root_writing
from streamapp.cli.cluster.target import Where
from streamapp.cli.options import EXIT_CODES, name_argument, output_option, where_options


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_CODES)
@click.version_option(package_name="streamapp-operator", message="kubectl-streamapp %(version)s")
def streamapp() -> None:
    """See how Kafka Streams applications scale (what is wished for, granted, held, and why), and steer it."""


@streamapp.command(epilog=EXIT_CODES)
@name_argument(required=False)
@where_options
@click.option("-A", "--all-namespaces", is_flag=True, help="The StreamApps of all namespaces.")
@click.option("-w", "--watch", is_flag=True, help="Stay and follow every change. Ctrl-C ends it.")
@click.option("--exit-code", is_flag=True, help="Let the exit code say how it is: 3 and 4 below.")
@output_option
def status(*, where: Where, name: str | None, all_namespaces: bool, watch: bool, exit_code: bool, output: str) -> int:
    """Show the StreamApps, one line each, or everything about the one called NAME."""
    if all_namespaces and (name is not None or where.namespace is not None):
        raise click.UsageError("--all-namespaces goes with neither NAME nor --namespace")
    commands = import_module("streamapp.cli.commands.status")
    act = commands.watch if watch else commands.status
    return int(act(where, name, commands.Output(output), everywhere=all_namespaces, with_code=exit_code))


@streamapp.command(epilog=EXIT_CODES)
@name_argument()
@where_options
@output_option
def explain(*, where: Where, name: str, output: str) -> int:
    """Say in sentences why the StreamApp called NAME is as it is, for how long still, and what you can do."""
    commands = import_module("streamapp.cli.commands.status")
    return int(commands.explanation(where, name, commands.Output(output)))


for _command in (*root_asking.COMMANDS, *root_writing.COMMANDS):
    streamapp.add_command(_command)


@streamapp.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(*, shell: str) -> int:
    """Write the script by which a shell completes `kubectl-streamapp`; `kubectl streamapp` needs none of its own."""
    click.echo(import_module("streamapp.cli.completion").script_for(streamapp, shell))
    return 0
