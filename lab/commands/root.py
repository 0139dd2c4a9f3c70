"""The group of all commands, and the one place where a `LabError` becomes an exit code."""

import sys

import click

from lab.commands import (
    bench,
    chaos,
    cluster,
    demo,
    departures,
    holds,
    matrix,
    measure,
    moves,
    plain_scale_in,
    second_node,
    tests,
)
from lab.errors import LabError
from lab.terminal import show_error


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def lab() -> None:
    """A real Kubernetes and a real Kafka on this machine."""


for command in (
    cluster.build,
    cluster.up,
    cluster.down,
    cluster.status,
    cluster.logs,
    cluster.execute,
    second_node.second,
    tests.test,
    demo.demo,
    bench.bench,
    moves.bench_moves,
    departures.bench_departures,
    holds.bench_holds,
    chaos.chaos,
    matrix.matrix,
    plain_scale_in.plain_scale_in,
    measure.gaps,
    measure.counts,
):
    lab.add_command(command)


def main() -> int:
    """Run the command line and give its exit code."""
    try:
        # Without its own error handling click gives the code of an `Exit` back and raises everything else.
        return int(lab(standalone_mode=False) or 0)
    except LabError as error:
        show_error(error)
        return 1
    except OSError as error:
        where = error.filename or "the lab"
        show_error(LabError(f"{where}: not usable", error.strerror or str(error), "look at its rights and its disk"))
        return 1
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        print("stopped", file=sys.stderr)  # noqa: T201
        return 130
