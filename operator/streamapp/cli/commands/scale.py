"""`scale`: shows the effect, writes the desired replicas, and watches the scaling with `--wait`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import click
from rich.text import Text

from streamapp.api.managed_fields import authors_of
from streamapp.cli.cluster import streamapps
from streamapp.cli.cluster.target import Target
from streamapp.cli.commands.run import run
from streamapp.cli.errors import CliError, Exit
from streamapp.cli.model import autoscalers
from streamapp.cli.model.amounts import Amount
from streamapp.cli.model.app_view import view_of
from streamapp.cli.model.autoscalers import AutoscalersUnknown, TargetingAutoscaler
from streamapp.cli.model.scale_plan import ScalePlan, document_of, require_sound
from streamapp.cli.screens import watch
from streamapp.cli.screens.live import WatchState
from streamapp.cli.screens.scale import scale_screen
from streamapp.cli.text import console
from streamapp.cli.text.console import Output
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import NotFoundError, RefusedError, UnauthenticatedError
from streamapp.kube.client.kinds import AUTOSCALERS, Key
from streamapp.kube.client.kubeconfig import ClusterConnection

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleRequest:
    """The options of the command line."""

    words: str
    """The number as given: `--to 80%`."""
    amount: Amount
    dry_run: bool
    wait: bool
    despite_autoscaler: bool


def scale(target: Target, name: str, request: ScaleRequest, output: Output) -> int:
    """Write the desired replicas, and with `--wait` watch until they are current; give the exit code."""
    run(_scale(target, name, request, output))
    return run(_wait(target, name, output)) if request.wait and not request.dry_run else Exit.FINE


async def _scale(target: Target, name: str, request: ScaleRequest, output: Output) -> None:
    connection = await streamapps.resolve(target)
    key = Key(streamapps.namespace_of(target, connection), name)
    async with streamapps.open_client(connection, streamapps.title_of(key.namespace, key.name)) as client:
        resource = await streamapps.read(client, connection, key)
        found = await _autoscalers(client, key)
        view = view_of(resource, watch.now())
        plan = ScalePlan(view=view, asked=request.words, amount=request.amount, autoscalers=found)
        require_sound(plan)
        changes = plan.to != plan.desired
        if request.dry_run or not changes:
            _show(plan, request, output)
        if not changes:
            return
        _require_lasting(plan, request)
        if not request.dry_run:
            await _write(client, connection, key, plan, output, in_one_line=request.wait)


async def _write(
    client: KubeClient, connection: ClusterConnection, key: Key, plan: ScalePlan, output: Output, *, in_one_line: bool
) -> None:
    attempt = _Attempt(plan, lambda shown: console.show(scale_screen(shown)) if output is Output.TABLE else None)
    await streamapps.change(client, connection, key, attempt.patch_for, "scale")
    if output is Output.TABLE:
        result = f"Written: desired {attempt.plan.to}." if attempt.is_needed else "Nothing was written."
        console.show(Text(f"\n{result}"))
    else:
        document = document_of(attempt.plan, written=attempt.is_needed, dry_run=False)
        console.write(document, output, in_one_line=in_one_line)


@dataclass(slots=True)
class _Attempt:
    """The plan after the latest read; it is shown again if it changes."""

    plan: ScalePlan
    show: Callable[[ScalePlan], None]
    is_shown: bool = False
    is_needed: bool = True

    def patch_for(self, resource: Json) -> Json | None:
        """The Scale to write; None if the resource already has this number."""
        view = view_of(resource, self.plan.view.now)
        if view.streamapp.replicas != self.plan.desired:
            _report_other_writer(self.plan, resource, view.streamapp.replicas)
            self.is_shown = False
        self.plan = replace(self.plan, view=view)
        require_sound(self.plan)
        if not self.is_shown:
            self.show(self.plan)
            self.is_shown = True
        self.is_needed = self.plan.to != self.plan.desired
        return {"spec": {"replicas": self.plan.to}} if self.is_needed else None


def _report_other_writer(plan: ScalePlan, resource: Json, desired: int) -> None:
    """Report a number that another writer set meanwhile; CliError if the request is relative to the earlier one."""
    authors = authors_of(resource, "spec", "replicas")
    by = f" by {authors[0].manager}" if authors else ""
    changed = f"the desired replicas changed from {plan.desired} to {desired}{by} meanwhile"
    if plan.amount.is_relative:
        raise CliError(
            f"StreamApp {plan.view.name}",
            f"{changed}, and {plan.asked} was relative to {plan.desired}; nothing was written",
            "run the command again, or give the number of replicas",
        )
    click.echo(f"{changed[0].upper()}{changed[1:]}.", err=True)


async def _autoscalers(client: KubeClient, key: Key) -> tuple[TargetingAutoscaler, ...] | AutoscalersUnknown:
    try:
        return autoscalers.autoscalers_of(key.name, await client.list(AUTOSCALERS, key.namespace))
    except NotFoundError:
        return ()  # an API server without this API has no autoscalers
    except UnauthenticatedError:
        raise
    except RefusedError as error:
        return AutoscalersUnknown(error.why)


def _require_lasting(plan: ScalePlan, request: ScaleRequest) -> None:
    """Raise CliError if an autoscaler would overwrite the number, or may, and `--despite-autoscaler` is not set."""
    if request.despite_autoscaler:
        return
    if isinstance(plan.autoscalers, AutoscalersUnknown):
        raise autoscalers.refusal_if_unknown(plan.view, plan.autoscalers)
    if plan.overwriting:
        raise autoscalers.refusal(plan.view, plan.overwriting, plan.to)


def _show(plan: ScalePlan, request: ScaleRequest, output: Output) -> None:
    """Show the effect of a plan that is not written."""
    if output is not Output.TABLE:
        console.write(document_of(plan, written=False, dry_run=request.dry_run), output, in_one_line=request.wait)
        return
    console.show(scale_screen(plan))
    if request.dry_run and plan.to != plan.desired:
        console.show(Text("\nDry run: nothing was written."))


async def _wait(target: Target, name: str, output: Output) -> int:
    """Watch until the current replicas are the desired ones; give the exit code."""
    connection = await streamapps.resolve(target)
    key = Key(streamapps.namespace_of(target, connection), name)
    state = WatchState(key=key, is_reached=_is_current)
    source = streamapps.watch_source(target, key.namespace, name)
    with (
        streamapps.translate_errors(connection, streamapps.title_of(key.namespace, name)),
        watch.display(console.console(), output, state) as show,
    ):
        await watch.watch(source.events(), state, show)
    return Exit.FINE if key in state.objects else Exit.FAILED


def _is_current(resource: Json) -> bool:
    view = view_of(resource, watch.now())
    return view.is_of_this_spec and view.status.stateful_set_replicas == view.streamapp.replicas
