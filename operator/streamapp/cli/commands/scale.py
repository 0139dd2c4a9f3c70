"""What `scale` does: reads, says what would come of it, writes the wish, and follows what becomes of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import click
from rich.text import Text

from streamapp.api.managed_fields import authors_of
from streamapp.cli.cluster import streamapps, writing
from streamapp.cli.cluster.target import Where
from streamapp.cli.commands.run import run
from streamapp.cli.errors import CliError, Exit
from streamapp.cli.model import autoscalers
from streamapp.cli.model.amounts import Amount
from streamapp.cli.model.app_view import view_of
from streamapp.cli.model.autoscalers import Autoscaler, Unlisted
from streamapp.cli.model.phrases import are
from streamapp.cli.model.scale_plan import Plan, of_plan, require_sound
from streamapp.cli.screens import watch
from streamapp.cli.screens.live import Picture
from streamapp.cli.screens.scale import scaling_screen
from streamapp.cli.text import console
from streamapp.cli.text.console import Output
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import NotFoundError, RefusedError, UnauthenticatedError
from streamapp.kube.client.kinds import AUTOSCALERS, Key
from streamapp.kube.client.kubeconfig import ClusterConnection

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line says."""

    words: str
    """How many, as it was said: `--to 80%`."""
    amount: Amount
    dry_run: bool
    wait: bool
    despite_autoscaler: bool


def scale(where: Where, name: str, asked: Asked, output: Output) -> int:
    """Change the wish of a StreamApp, and wait until it is granted if that was asked for; give the exit code."""
    run(_scale(where, name, asked, output))
    return run(_wait(where, name, output)) if asked.wait and not asked.dry_run else Exit.FINE


async def _scale(where: Where, name: str, asked: Asked, output: Output) -> None:
    found = await streamapps.find(where)
    key = Key(streamapps.namespace_of(where, found), name)
    async with streamapps.opened(found, streamapps.title_of(key.namespace, key.name)) as client:
        resource = await streamapps.read(client, found, key)
        driving = await _autoscalers(client, key)
        plan = Plan(view=view_of(resource, watch.now()), asked=asked.words, amount=asked.amount, autoscalers=driving)
        require_sound(plan)
        changes = plan.to != plan.desired
        if asked.dry_run or not changes:
            _tell(plan, asked, output)
        if not changes:
            return
        _require_lasting(plan, asked)
        if not asked.dry_run:
            await _write(client, found, key, plan, output, in_one_line=asked.wait)


async def _write(
    client: KubeClient, found: ClusterConnection, key: Key, plan: Plan, output: Output, *, in_one_line: bool
) -> None:
    attempt = _Attempt(plan, lambda one: console.show(scaling_screen(one)) if output is Output.TABLE else None)
    await writing.change(client, found, key, attempt.patch_for, "scale")
    if output is Output.TABLE:
        done = f"Written: {are(attempt.plan.to)} wished for." if attempt.is_needed else "Nothing was written."
        console.show(Text(f"\n{done}"))
    else:
        console.write(of_plan(attempt.plan, written=attempt.is_needed, dry_run=False), output, in_one_line=in_one_line)


@dataclass(slots=True)
class _Attempt:
    """The plan as it is after every read, shown whenever it has become another."""

    plan: Plan
    show: Callable[[Plan], None]
    is_shown: bool = False
    is_needed: bool = True

    def patch_for(self, resource: Json) -> Json | None:
        """Give the Scale to write; None where somebody else wished for as many meanwhile."""
        view = view_of(resource, self.plan.view.now)
        if view.found.replicas != self.plan.desired:
            _tell_of_another_wish(self.plan, resource, view.found.replicas)
            self.is_shown = False
        self.plan = replace(self.plan, view=view)
        require_sound(self.plan)
        if not self.is_shown:
            self.show(self.plan)
            self.is_shown = True
        self.is_needed = self.plan.to != self.plan.desired
        return {"spec": {"replicas": self.plan.to}} if self.is_needed else None


def _tell_of_another_wish(plan: Plan, resource: Json, desired: int) -> None:
    """Say that the wish has changed; CliError where what was asked for was meant of the earlier one."""
    authors = authors_of(resource, "spec", "replicas")
    by = f" by {authors[0].manager}" if authors else ""
    changed = f"the wish was changed from {plan.desired} to {desired}{by} meanwhile"
    if plan.amount.is_relative:
        raise CliError(
            f"StreamApp {plan.view.name}",
            f"{changed}, and {plan.asked} was meant of {plan.desired}; nothing was written",
            "run the command again if it is still meant, or name the number of replicas",
        )
    click.echo(f"{changed[0].upper()}{changed[1:]}.", err=True)


async def _autoscalers(client: KubeClient, key: Key) -> tuple[Autoscaler, ...] | Unlisted:
    try:
        return autoscalers.aimed_at(key.name, await client.list(AUTOSCALERS, key.namespace))
    except NotFoundError:
        return ()  # an API server without this API has none of them
    except UnauthenticatedError:
        raise
    except RefusedError as error:
        return Unlisted(error.why)


def _require_lasting(plan: Plan, asked: Asked) -> None:
    """Raise CliError where an autoscaler would overwrite it, or may, and nobody has said to write it all the same."""
    if asked.despite_autoscaler:
        return
    if isinstance(plan.autoscalers, Unlisted):
        raise autoscalers.not_known(plan.view, plan.autoscalers)
    if plan.records_to_go:
        raise autoscalers.refusal(plan.view, plan.records_to_go, plan.to)


def _tell(plan: Plan, asked: Asked, output: Output) -> None:
    """Say what would come of it where nothing is written."""
    if output is not Output.TABLE:
        console.write(of_plan(plan, written=False, dry_run=asked.dry_run), output, in_one_line=asked.wait)
        return
    console.show(scaling_screen(plan))
    if asked.dry_run and plan.to != plan.desired:
        console.show(Text("\nThis is a dry run: nothing was written."))


async def _wait(where: Where, name: str, output: Output) -> int:
    """Follow it until what is wished for is granted; give the exit code."""
    found = await streamapps.find(where)
    key = Key(streamapps.namespace_of(where, found), name)
    picture = Picture(key=key, is_reached=_is_granted)
    following = streamapps.following(where, key.namespace, name)
    with (
        streamapps.told(found, streamapps.title_of(key.namespace, name)),
        watch.display(console.console(), output, picture) as tell,
    ):
        await watch.watch(following.events(), picture, tell)
    return Exit.FINE if key in picture.objects else Exit.FAILED


def _is_granted(resource: Json) -> bool:
    view = view_of(resource, watch.now())
    return view.is_of_this_spec and view.status.stateful_set_replicas == view.found.replicas
