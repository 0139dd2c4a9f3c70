"""The command line: its commands, options and help.

`kubectl` finds the script `kubectl-streamapp` on the PATH and runs it for `kubectl streamapp`. Each command imports
its code when it runs, so that help, completion and usage errors do not load the Kubernetes client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from streamapp.cli import completion as shell_completion
from streamapp.cli.app_advise import advise
from streamapp.cli.app_conformance import conformance
from streamapp.cli.app_migrate import migrate
from streamapp.cli.app_report import report
from streamapp.cli.model import amounts
from streamapp.cli.options import (
    EXIT_CODES,
    name_argument,
    operator_namespace_option,
    output_option,
    require_one_namespace_choice,
    target_options,
    yes_option,
)
from streamapp.cli.text.sanitize import plain

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from streamapp.cli.adoption.findings import Check
    from streamapp.cli.cluster.target import Target
    from streamapp.cli.model.amounts import Amount
    from streamapp.cli.model.user_action import UserAction

_LONGEST_REASON = 500


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_CODES)
@click.version_option(package_name="streamapp-operator", message="kubectl-streamapp %(version)s")
def streamapp() -> None:
    """Show how Kafka Streams applications scale, why they wait, and control it."""


@streamapp.command(epilog=EXIT_CODES, short_help="Show the StreamApps, or the details of one.")
@name_argument(required=False)
@target_options
@click.option("-A", "--all-namespaces", is_flag=True, help="Show the StreamApps of all namespaces.")
@click.option("-w", "--watch", is_flag=True, help="Keep watching for changes. Ctrl-C ends it.")
@click.option("--exit-code", is_flag=True, help="Report the state in the exit code: 3 and 4 below.")
@output_option
def status(*, target: Target, name: str | None, all_namespaces: bool, watch: bool, exit_code: bool, output: str) -> int:
    """Show the StreamApps, one line each, or the details of the StreamApp NAME."""
    from streamapp.cli.commands import status as commands
    from streamapp.cli.text.console import Output

    require_one_namespace_choice(target, name, all_namespaces=all_namespaces)
    act = commands.watch if watch else commands.status
    return act(target, name, Output(output), everywhere=all_namespaces, with_code=exit_code)


@streamapp.command(epilog=EXIT_CODES, short_help="Explain the state: the reason, the time left, what ends it.")
@name_argument()
@target_options
@output_option
def explain(*, target: Target, name: str, output: str) -> int:
    """Explain the state of the StreamApp NAME: the reason, the time left, what ends it, and what you can do."""
    from streamapp.cli.commands.status import explanation
    from streamapp.cli.text.console import Output

    return explanation(target, name, Output(output))


@streamapp.command(epilog=EXIT_CODES, short_help="Show every task: its pod, its copies, who could take over.")
@name_argument()
@target_options
@operator_namespace_option
@click.option("--ordinal", metavar="N", type=click.IntRange(min=0), help="Only tasks with a copy on this pod.")
@click.option("--behind", is_flag=True, help="Only tasks that do not run, lag behind, or are not covered.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "wide", "json", "yaml"]),
    default="table",
    show_default=True,
    help="Output format.",
)
def tasks(*, target: Target, name: str, operator_namespace: str, ordinal: int | None, behind: bool, output: str) -> int:
    """Show every task of the StreamApp NAME: its pod, its copies, and the pods that could take over."""
    from streamapp.cli.commands import tasks as commands
    from streamapp.cli.text.console import Output

    return commands.tasks(target, operator_namespace, name, Output(output), ordinal=ordinal, behind=behind)


@streamapp.command(epilog=EXIT_CODES, short_help="Check the cluster, the operator and the StreamApps.")
@name_argument(required=False)
@target_options
@operator_namespace_option
@click.option("-A", "--all-namespaces", is_flag=True, help="Check the StreamApps of all namespaces.")
@click.option("--exit-code", is_flag=True, help="Report the result in the exit code: 3 and 4 below.")
@output_option
def doctor(
    *,
    target: Target,
    name: str | None,
    operator_namespace: str,
    all_namespaces: bool,
    exit_code: bool,
    output: str,
) -> int:
    """Check the cluster, the operator and the StreamApps, or only NAME, and show how to fix each problem."""
    from streamapp.cli.commands import doctor as commands
    from streamapp.cli.text.console import Output

    require_one_namespace_choice(target, name, all_namespaces=all_namespaces)
    return commands.doctor(
        target, operator_namespace, name, Output(output), everywhere=all_namespaces, with_code=exit_code
    )


@streamapp.command(epilog=EXIT_CODES, short_help="Set the desired replicas; show first which pods leave.")
@name_argument()
@click.argument("replicas", required=False)
@click.option("--to", metavar="80%|N", help="A percentage of the desired replicas, rounded up, or a number.")
@click.option("--by", metavar="-20%|+2", help="More (+) or fewer (-), as a percentage or a number of pods.")
@click.option("--dry-run", is_flag=True, help="Only show the effect.")
@click.option("-w", "--wait", is_flag=True, help="Watch until the current replicas are the desired replicas.")
@click.option("--despite-autoscaler", is_flag=True, help="Set the replicas even if an autoscaler may overwrite them.")
@target_options
@output_option
def scale(*, target: Target, name: str, output: str, **options: Any) -> int:
    """Set the desired REPLICAS, and show first which pods leave with which tasks.

    Percentages are of the desired replicas (spec.replicas), rounded up to a whole pod. 80% of 41 is 33.
    """
    from streamapp.cli.commands import scale as command
    from streamapp.cli.text.console import Output

    words, amount = _amount(options["replicas"], options["to"], options["by"])
    request = command.ScaleRequest(
        words=words,
        amount=amount,
        dry_run=options["dry_run"],
        wait=options["wait"],
        despite_autoscaler=options["despite_autoscaler"],
    )
    return command.scale(target, name, request, Output(output))


@streamapp.command(epilog=EXIT_CODES, short_help="Predict what new desired replicas would cause.")
@name_argument()
@click.option("--to", metavar="80%|N", required=True, help="A percentage of the desired replicas, or a number.")
@click.option(
    "--compare",
    is_flag=True,
    help="Show the other assignor (streams protocol: other standbys) and other numbers of replicas, too.",
)
@click.option("--assignor", type=click.Choice(["stock", "learner"]), help="Default: by the learner source.")
@click.option("--kafka-version", metavar="X.Y.Z", help="Of Kafka Streams. Default: what the agents report, else 4.2.1.")
@click.option("--standbys", metavar="N", type=click.IntRange(0, 10), help="Default: as many as most tasks have.")
@click.option("--warmups", metavar="N", type=click.IntRange(1, 1000), default=2, show_default=True)
@click.option("--probing", metavar="SECONDS", type=click.IntRange(60), default=600, show_default=True)
@click.option("--threads", metavar="N", type=click.IntRange(1, 1000), help="Of a pod that is added. Default: as now.")
@click.option("--restore-rate", metavar="N", type=click.IntRange(1), help="Records a second of one pod.")
@target_options
@operator_namespace_option
@output_option
def plan(*, target: Target, operator_namespace: str, name: str, to: str, output: str, **options: Any) -> int:
    """Predict what new desired replicas would cause: moves, learners, rebalances and time. Nothing is written."""
    from streamapp.cli.commands import plan as command
    from streamapp.cli.model.predictions.prediction import Asked
    from streamapp.cli.text.console import Output

    words, amount = _amount(None, to, None)
    try:
        given = command.given(options)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    asked = Asked(words=words, amount=amount, given=given, compares=options["compare"])
    return command.plan(target, operator_namespace, name, asked, Output(output))


def _amount(replicas: str | None, to: str | None, by: str | None) -> tuple[str, Amount]:
    given = [
        (words, parse, text)
        for words, parse, text in (
            (f"{replicas}", amounts.absolute, replicas),
            (f"--to {to}", amounts.to, to),
            (f"--by {by}", amounts.by, by),
        )
        if text is not None
    ]
    if len(given) != 1:
        raise click.UsageError("give the number of replicas in one of three ways: REPLICAS, --to or --by")
    ((words, parse, text),) = given
    try:
        return words, parse(text)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _selection_options(command: Any) -> Any:
    """Add the options by which an action applies to one StreamApp or to several."""
    for option in (
        yes_option,
        click.option("-A", "--all-namespaces", is_flag=True, help="All StreamApps of all namespaces; asks first."),
        click.option("--all", "every", is_flag=True, help="All StreamApps of the namespace; asks first."),
        name_argument(required=False),
    ):
        command = option(command)
    return command


def _apply(target: Target, name: str | None, output: str, action: UserAction, options: dict[str, Any]) -> int:
    from streamapp.cli.commands import user_action as commands
    from streamapp.cli.text.console import Output

    everywhere = options["all_namespaces"]
    if (name is not None) + options["every"] + everywhere != 1:
        raise click.UsageError("choose one of NAME, --all and --all-namespaces")
    if everywhere and target.namespace is not None:
        raise click.UsageError("--all-namespaces cannot be combined with --namespace")
    selection = commands.Selection(name=name, everywhere=everywhere, yes=options["yes"])
    return commands.apply(target, selection, action, Output(output))


def _reason(text: str) -> str:
    reason = plain(text).strip()
    if not reason or len(reason) > _LONGEST_REASON:
        raise click.UsageError(f"--reason needs a text of at most {_LONGEST_REASON} characters")
    return reason


@streamapp.command(epilog=EXIT_CODES)
@_selection_options
@click.option("--reason", metavar="TEXT", required=True, help="Why. `status` and `explain` show the reason.")
@target_options
@output_option
def hold(*, target: Target, name: str | None, reason: str, output: str, **options: Any) -> int:
    """Block every scale-down of NAME. Scale-ups and rollouts continue. `unhold` ends the hold."""
    from streamapp.cli.model.user_action import HoldAction

    return _apply(target, name, output, HoldAction(_reason(reason), keeps_others=name is None), options)


@streamapp.command(epilog=EXIT_CODES)
@name_argument()
@yes_option
@target_options
@output_option
def unhold(*, target: Target, name: str, yes: bool, output: str) -> int:
    """End the `hold` of a user on NAME. Pods leave again once their tasks are covered."""
    from streamapp.cli.commands import override as commands
    from streamapp.cli.text.console import Output

    return commands.unhold(target, name, Output(output), yes=yes)


@streamapp.command(epilog=EXIT_CODES, short_help="Let the present scale-down go without caught-up copies.")
@name_argument()
@click.option("--hold-id", metavar="ID", help="Override only the operator's hold with this ID.")
@click.option("--reason", metavar="TEXT", required=True, help="Why. The operator records the reason.")
@yes_option
@target_options
@output_option
def override(*, target: Target, name: str, hold_id: str | None, reason: str, yes: bool, output: str) -> int:
    """Let the present scale-down of NAME proceed without caught-up copies.

    The command first shows the tasks whose users wait, and then asks. The override counts for this scale-down alone.
    """
    from streamapp.cli.commands import override as commands
    from streamapp.cli.text.console import Output

    request = commands.OverrideRequest(hold_id=hold_id, reason=_reason(reason), yes=yes)
    return commands.override(target, name, request, Output(output))


@streamapp.command(epilog=EXIT_CODES)
@name_argument()
@click.option(
    "--ordinal", metavar="N", type=click.IntRange(min=0), help="The pod to restart. Required without --cancel."
)
@click.option("--new-volume", is_flag=True, help="Delete the pod's volume claim: its state is lost. Asks first.")
@click.option("--cancel", is_flag=True, help="Withdraw all restarts that were asked for.")
@click.option("--dry-run", is_flag=True, help="Only show the effect.")
@click.option("-w", "--wait", is_flag=True, help="Wait until the new pod is ready.")
@yes_option
@target_options
@output_option
def restart(*, target: Target, name: str, ordinal: int | None, output: str, **options: Any) -> int:
    """Restart one pod of NAME once its tasks are covered.

    Covered: they have caught-up copies on other pods. The operator waits for these copies. Use it for a pod that is
    sick, or with --new-volume for a volume that is.
    """
    from streamapp.cli.commands import restart as commands
    from streamapp.cli.text.console import Output

    if options.pop("cancel"):
        if ordinal is not None or any(options.values()):
            raise click.UsageError("--cancel stands alone")
        return commands.cancel(target, name, Output(output))
    if ordinal is None:
        raise click.UsageError("--ordinal is missing")
    return commands.restart(target, name, commands.RestartOptions(ordinal=ordinal, **options), Output(output))


@streamapp.command(epilog=EXIT_CODES, short_help="Stop all changes, scale-ups too.")
@_selection_options
@target_options
@output_option
def pause(*, target: Target, name: str | None, output: str, **options: Any) -> int:
    """Pause NAME: the operator scales, restarts and prepares nothing. `resume` ends the pause."""
    from streamapp.cli.model.user_action import PauseAction

    return _apply(target, name, output, PauseAction(paused=True), options)


@streamapp.command(epilog=EXIT_CODES)
@_selection_options
@target_options
@output_option
def resume(*, target: Target, name: str | None, output: str, **options: Any) -> int:
    """End the pause of NAME."""
    from streamapp.cli.model.user_action import PauseAction

    return _apply(target, name, output, PauseAction(paused=False), options)


def _duration(_context: click.Context, _parameter: click.Parameter, text: str | None) -> timedelta | None:
    from streamapp.api.v1alpha1.durations import parse_duration

    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a duration such as 30m, 2h or 1h30m") from error


@streamapp.command(epilog=EXIT_CODES, short_help="Show what happened, oldest first.")
@name_argument()
@click.option("--since", metavar="DURATION", callback=_duration, help="Only entries of this time, such as 2h.")
@click.option("--all", "everything", is_flag=True, help="Show every decision and Event, without summarizing.")
@operator_namespace_option
@target_options
@output_option
def history(
    *, target: Target, operator_namespace: str, name: str, since: timedelta | None, everything: bool, output: str
) -> int:
    """Show what happened to NAME, oldest first: changed replicas and by whom, holds, steps and failures.

    The source is the operator's flight record. If the operator does not answer with it, the source is Events.
    """
    from streamapp.cli.commands import history as commands
    from streamapp.cli.text.console import Output

    request = commands.HistoryRequest(
        name=name, operator_namespace=operator_namespace, span=since, all=everything, output=Output(output)
    )
    return commands.history(target, request)


@streamapp.command(epilog=EXIT_CODES, short_help="Write an archive for a bug report, without secrets.")
@name_argument()
@click.option("-f", "--file", "archive", metavar="FILE", help="The archive. Default: a name with the time.")
@click.option("--application-logs", is_flag=True, help="Add the logs of the application's containers.")
@click.option("--dry-run", is_flag=True, help="Only show every line; write nothing.")
@yes_option
@operator_namespace_option
@target_options
def bundle(*, target: Target, operator_namespace: str, name: str, archive: str | None, **options: Any) -> int:
    """Write an archive with all that explains the state of NAME, for a bug report: objects, Events, logs, decisions.

    What could be a secret is removed. The command shows the files first, and then asks.
    """
    from pathlib import Path

    from streamapp.cli.commands import bundle as commands

    request = commands.BundleRequest(
        name=name,
        operator_namespace=operator_namespace,
        archive=None if archive is None else Path(archive),
        application_logs=options["application_logs"],
        dry_run=options["dry_run"],
        yes=options["yes"],
    )
    return commands.bundle(target, request)


def _statefulset_name(_context: click.Context, _parameter: click.Parameter, text: str) -> str:
    kind, slash, name = text.partition("/")
    if not slash or kind.lower() not in {"statefulset", "statefulsets", "sts"} or not name:
        raise click.BadParameter(f"{text!r} is not statefulset/NAME")
    return name


def _despite_options(managed: str) -> Callable[[Any], Any]:
    """Add the options that override a check of `adopt` or `disown`; `_despite` takes them."""

    def decorate(command: Any) -> Any:
        for option in (
            click.option("--despite-autoscaler", is_flag=True, help="Go on though autoscalers cannot be listed."),
            click.option(
                "--despite-owner", is_flag=True, help=f"Go on though Helm or a GitOps tool manages the {managed}."
            ),
        ):
            command = option(command)
        return command

    return decorate


@streamapp.command(epilog=EXIT_CODES, short_help="Give a StatefulSet that runs to the operator.")
@click.argument("name", metavar="statefulset/NAME", callback=_statefulset_name)
@click.option("--application-id", metavar="ID", default="", help="Default: as the pod template says.")
@click.option("--bootstrap-servers", metavar="LIST", default="", help="Default: as the pod template says.")
@click.option(
    "--kafka-config-secret",
    "kafka_config_secrets",
    metavar="NAME",
    multiple=True,
    help="Secret with the operator's client properties; can be repeated.",
)
@click.option("--container", metavar="NAME", default="", help="Runs the application; needed if there are several.")
@click.option("--state-dir", metavar="FOLDER", default="", help="Default: as the pod template says.")
@click.option("--dry-run", is_flag=True, help="Only show what stands in the way, and the StreamApp's manifest.")
@_despite_options("object")
@yes_option
@target_options
@output_option
def adopt(*, target: Target, name: str, output: str, **options: Any) -> int:
    """Give a StatefulSet that runs a Kafka Streams application to the operator. No pod restarts.

    An interrupted run is continued by the next one. `disown` is the way back.
    """
    from streamapp.cli.adoption.manifest import Choices
    from streamapp.cli.commands import adoption
    from streamapp.cli.text.console import Output

    own = {"name": name, "dry_run": options.pop("dry_run"), "yes": options.pop("yes"), "despite": _despite(options)}
    return adoption.adopt(target, adoption.Request(choices=Choices(**options), **own), Output(output))


@streamapp.command(epilog=EXIT_CODES, short_help="Take the StatefulSet back from the operator.")
@name_argument()
@click.option("--dry-run", is_flag=True, help="Only show what stands in the way, and the StatefulSet's manifest.")
@_despite_options("StreamApp")
@click.option("--despite-operator", is_flag=True, help="Go on though no operator answers.")
@yes_option
@target_options
@output_option
def disown(*, target: Target, name: str, output: str, **options: Any) -> int:
    """Take the StatefulSet of NAME from the operator, and delete the StreamApp. No pod restarts."""
    from streamapp.cli.commands import adoption
    from streamapp.cli.text.console import Output

    request = adoption.Request(name=name, despite=_despite(options), **options)
    return adoption.disown(target, request, Output(output))


def _despite(options: dict[str, Any]) -> frozenset[Check]:
    """Take the options that override a check, and give the checks."""
    from streamapp.cli.adoption.findings import Check

    found = {"despite_owner": Check.ManagedElsewhere, "despite_autoscaler": Check.AutoscalersUnread}
    return frozenset(check for option, check in found.items() if options.pop(option))


streamapp.add_command(advise)
streamapp.add_command(migrate)
streamapp.add_command(conformance)
streamapp.add_command(report)


@streamapp.command(short_help="Write the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(*, shell: str) -> int:
    """Write the completion script of a shell for `kubectl-streamapp`. `kubectl streamapp` needs no script."""
    click.echo(shell_completion.script_for(streamapp, shell))
    return 0
