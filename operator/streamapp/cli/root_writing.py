"""The commands that write, and `history`: their options and help, as in `root`, which takes them in."""

from datetime import timedelta
from importlib import import_module
from typing import Any

import click

from streamapp.cli.cluster.target import Where
from streamapp.cli.model import amounts
from streamapp.cli.model.amounts import Amount
from streamapp.cli.options import (
    EXIT_CODES,
    name_argument,
    operator_namespace_option,
    output_option,
    where_options,
    yes_option,
)
from streamapp.cli.text.sanitize import plain

_LONGEST_REASON = 500


@click.command(epilog=EXIT_CODES)
@name_argument()
@click.argument("replicas", required=False)
@click.option("--to", metavar="80%|N", help="A percentage of the replicas that are wished for, rounded up.")
@click.option("--by", metavar="-20%|+2", help="More (+) or fewer (-), as a percentage or a number of pods.")
@click.option("--dry-run", is_flag=True, help="Only say what would come of it.")
@click.option("-w", "--wait", is_flag=True, help="Follow it until what is wished for is granted.")
@click.option("--despite-autoscaler", is_flag=True, help="Write it though an autoscaler overwrites it, or may.")
@where_options
@output_option
def scale(*, where: Where, name: str, output: str, **said: Any) -> int:
    """Change how many REPLICAS are wished for, and say before which pods go with which tasks.

    Percentages are of the wish (spec.replicas) and rounded up to a whole pod, so that never a pod more goes than was
    asked for: 80% of 41 are 33.
    """
    words, amount = _amount(said["replicas"], said["to"], said["by"])
    command = import_module("streamapp.cli.commands.scale")
    asked = command.Asked(
        words=words,
        amount=amount,
        dry_run=said["dry_run"],
        wait=said["wait"],
        despite_autoscaler=said["despite_autoscaler"],
    )
    return int(command.scale(where, name, asked, command.Output(output)))


def _amount(replicas: str | None, to: str | None, by: str | None) -> tuple[str, Amount]:
    said = [
        (words, read, text)
        for words, read, text in (
            (f"{replicas}", amounts.absolute, replicas),
            (f"--to {to}", amounts.to, to),
            (f"--by {by}", amounts.by, by),
        )
        if text is not None
    ]
    if len(said) != 1:
        raise click.UsageError("say how many replicas in one of three ways: REPLICAS, --to or --by")
    ((words, read, text),) = said
    try:
        return words, read(text)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _several(command: Any) -> Any:
    """Add what orders to one or to all of them have in common."""
    for option in (
        yes_option,
        click.option("-A", "--all-namespaces", is_flag=True, help="All StreamApps of all namespaces; asks before."),
        click.option("--all", "every", is_flag=True, help="All StreamApps of the namespace; asks before."),
        name_argument(required=False),
    ):
        command = option(command)
    return command


def _order(where: Where, name: str | None, output: str, order: Any, said: dict[str, Any]) -> int:
    everywhere = said["all_namespaces"]
    if (name is not None) + said["every"] + everywhere != 1:
        raise click.UsageError("say to which: NAME, --all or --all-namespaces")
    if everywhere and where.namespace is not None:
        raise click.UsageError("--all-namespaces goes without --namespace")
    commands = import_module("streamapp.cli.commands.hold_pause")
    targets = commands.Targets(name=name, everywhere=everywhere, yes=said["yes"])
    return int(commands.order_to(where, targets, order, commands.Output(output)))


def _reason(text: str) -> str:
    reason = plain(text).strip()
    if not reason or len(reason) > _LONGEST_REASON:
        raise click.UsageError(f"--reason must say why, in at most {_LONGEST_REASON} characters")
    return reason


@click.command(epilog=EXIT_CODES)
@_several
@click.option("--reason", metavar="TEXT", required=True, help="Why; shown to everybody who asks.")
@where_options
@output_option
def hold(*, where: Where, name: str | None, reason: str, output: str, **said: Any) -> int:
    """Let no pod of NAME go, whatever coverage says. Growth and rollouts go on; `release` ends it."""
    order = import_module("streamapp.cli.model.hold_pause").Hold(_reason(reason), keeps_others=name is None)
    return _order(where, name, output, order, said)


@click.command(epilog=EXIT_CODES)
@_several
@where_options
@output_option
def pause(*, where: Where, name: str | None, output: str, **said: Any) -> int:
    """Let all of NAME stand still: nothing is scaled, restarted or prepared. `resume` ends it."""
    return _order(where, name, output, import_module("streamapp.cli.model.hold_pause").Pause(paused=True), said)


@click.command(epilog=EXIT_CODES)
@_several
@where_options
@output_option
def resume(*, where: Where, name: str | None, output: str, **said: Any) -> int:
    """End the pause of NAME."""
    return _order(where, name, output, import_module("streamapp.cli.model.hold_pause").Pause(paused=False), said)


@click.command(epilog=EXIT_CODES)
@name_argument()
@click.option("--hold-id", metavar="ID", help="Release this hold of the operator and no other.")
@click.option("--reason", metavar="TEXT", help="Why; needed for a hold of the operator, and kept on record.")
@yes_option
@where_options
@output_option
def release(*, where: Where, name: str, hold_id: str | None, reason: str | None, yes: bool, output: str) -> int:
    """End what holds the scale-down of NAME: a person's `hold`, else the present hold of the operator.

    A hold of the operator waits for copies of tasks. What would be lost without them is named before it is asked.
    """
    command = import_module("streamapp.cli.commands.release")
    asked = command.Asked(hold_id=hold_id, reason=None if reason is None else _reason(reason), yes=yes)
    return int(command.release(where, name, asked, command.Output(output)))


def _span(_context: click.Context, _parameter: click.Parameter, text: str | None) -> timedelta | None:
    if text is None:
        return None
    try:
        span: timedelta = import_module("streamapp.api.v1alpha1.durations").parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is no duration such as 30m, 2h or 1h30m") from error
    return span


@click.command(epilog=EXIT_CODES)
@name_argument()
@click.option("--since", metavar="DURATION", callback=_span, help="Only what is not older, such as 2h.")
@click.option("--all", "everything", is_flag=True, help="Every decision and Event too, not only what they add up to.")
@operator_namespace_option
@where_options
@output_option
def history(
    *, where: Where, operator_namespace: str, name: str, since: timedelta | None, everything: bool, output: str
) -> int:
    """Tell what happened with NAME, the newest last: changes of the wish and by whom, holds, steps, and what failed.

    The operator's flight record tells most of it; without that, the last ten steps and what Events are left.
    """
    command = import_module("streamapp.cli.commands.history")
    asked = command.Asked(name, operator_namespace, since, everything, command.Output(output))
    return int(command.history(where, asked))


COMMANDS: tuple[click.Command, ...] = (scale, hold, release, pause, resume, history)
