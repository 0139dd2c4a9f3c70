"""The options and help of `kubectl streamapp conformance`; `app` adds the command. Imports what it needs late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from streamapp.cli.options import EXIT_CODES, operator_namespace_option, output_option, target_options, yes_option

if TYPE_CHECKING:
    from datetime import timedelta

    from streamapp.cli.cluster.target import Target


def _duration(_context: click.Context, _parameter: click.Parameter, text: str) -> timedelta:
    from streamapp.api.v1alpha1.durations import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a duration such as 10s, 5m or 1h") from error


@click.command(epilog=EXIT_CODES, short_help="Run the counter on this cluster and Kafka; show what holds there.")
@click.option("--image", metavar="IMAGE", default="", help="Image of examples/counter in your registry. Required.")
@click.option("--bootstrap-servers", metavar="HOST:PORT", required=True, help="Brokers, as the pods reach them.")
@click.option(
    "--client-properties-secret",
    metavar="NAME",
    default="",
    help="Secret of the namespace with one key for each client property. Default: no encryption, no authentication.",
)
@click.option("--storage-class", metavar="NAME", default="", help="Default: the default of the cluster.")
@click.option(
    "--replication-factor",
    metavar="N",
    type=click.IntRange(1, 15),
    help="Of the topics. Default: the default of the brokers.",
)
@click.option(
    "--most-gap",
    metavar="DURATION",
    default="15s",
    show_default=True,
    callback=_duration,
    help="The longest wait of users in a scale-down that passes.",
)
@click.option(
    "--timeout", metavar="DURATION", default="5m", show_default=True, callback=_duration, help="Of each wait."
)
@click.option("--keep", is_flag=True, help="Keep everything that the run made, to look at it.")
@yes_option
@operator_namespace_option
@target_options
@output_option
def conformance(*, target: Target, output: str, **options: Any) -> int:
    """Run the counter on this cluster and its Kafka, and show what holds there.

    The run makes a StreamApp with two pods, topics and load, all with a random name. It scales up and down, kills a
    pod, and takes the operator away. Then it removes what it made. Exit code 0: every check passed.
    """
    from streamapp.cli.commands import conformance as command
    from streamapp.cli.text.console import Output

    if not options["image"]:
        raise click.UsageError(
            "--image is missing: the project publishes no image. Build examples/counter (see its README), push it to a "
            "registry that the cluster reads, and give its name"
        )
    factor = options.pop("replication_factor")
    request = command.Request(replication_factor=-1 if factor is None else factor, **options)
    return command.conformance(target, request, Output(output))
