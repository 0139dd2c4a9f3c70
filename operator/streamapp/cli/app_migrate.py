"""The options and help of `kubectl streamapp migrate`; `app` adds the command. Imports what it needs when it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from streamapp.cli.options import (
    EXIT_CODES,
    name_argument,
    operator_namespace_option,
    output_option,
    target_options,
    yes_option,
)

if TYPE_CHECKING:
    from datetime import timedelta

    from streamapp.cli.cluster.target import Target


def _duration(_context: click.Context, _parameter: click.Parameter, text: str) -> timedelta:
    from streamapp.api.v1alpha1.durations import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a duration such as 30m, 2h or 1h30m") from error


@click.command(epilog=EXIT_CODES, short_help="Change the group protocol: classic to streams, or back.")
@name_argument()
@click.option("--env", metavar="NAME=VALUE", multiple=True, help="Set a variable, or remove it: NAME-. Repeatable.")
@click.option("--patch", metavar="FILE", type=click.File(), help="YAML with spec.template; - for standard input.")
@click.option("--back", is_flag=True, help="From the streams protocol to the classic one.")
@click.option("--abort", is_flag=True, help="Return from a migration under way to the former template and replicas.")
@click.option("--dry-run", is_flag=True, help="Only show what stands in the way, the stages and their price.")
@click.option("--timeout", metavar="DURATION", default="30m", show_default=True, callback=_duration, help="Per stage.")
@click.option("--despite-autoscaler", is_flag=True, help="Go on though autoscalers cannot be listed.")
@click.option("--despite-owner", is_flag=True, help="Go on though Helm or a GitOps tool manages the StreamApp.")
@yes_option
@operator_namespace_option
@target_options
@output_option
def migrate(*, target: Target, name: str, output: str, **options: Any) -> int:
    """Change the group protocol of NAME from classic to streams. All pods stop, and start with a new template.

    State stays on the volumes, and committed offsets in the group. An interrupted run is continued by the next one, or
    taken back with --abort.
    """
    from streamapp.cli.commands import migrate as command
    from streamapp.cli.migration.checks import Check
    from streamapp.cli.text.console import Output

    if options["abort"] and (options["env"] or options["patch"] or options["back"]):
        raise click.UsageError("--abort takes everything from the record: leave --env, --patch and --back out")
    despite = {"despite_owner": Check.ManagedElsewhere, "despite_autoscaler": Check.AutoscalersUnread}
    patch = options.pop("patch")
    request = command.Request(
        name=name,
        patch="" if patch is None else patch.read(),
        despite=frozenset(check for option, check in despite.items() if options.pop(option)),
        **options,
    )
    return command.migrate(target, request, Output(output))
