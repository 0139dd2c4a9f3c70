"""What `hold`, `pause` and `resume` do: to one StreamApp, to all of a namespace, or to all there are."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.text import Text

from streamapp.cli.cluster import streamapps, writing
from streamapp.cli.cluster.target import Where
from streamapp.cli.commands.confirm import require_yes
from streamapp.cli.commands.run import run
from streamapp.cli.errors import CliError, Exit
from streamapp.cli.model.hold_pause import Order, Outcome, is_so, outcome_of
from streamapp.cli.model.phrases import counted
from streamapp.cli.text import console
from streamapp.cli.text.console import Output
from streamapp.cli.text.sanitize import plain
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.kinds import Key
from streamapp.kube.client.kubeconfig import ClusterConnection

_MOST_NAMESPACES = 8

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """To whom an order is given: the one of this name, or all."""

    name: str | None
    everywhere: bool
    """All namespaces, and not that of the context alone."""
    yes: bool


def order_to(where: Where, targets: Targets, order: Order, output: Output) -> int:
    """Carry an order out; give the exit code."""
    if targets.name is not None:
        return run(_order_one(where, targets.name, order, output))
    resources = run(streamapps.several(where, everywhere=targets.everywhere))
    if not resources:
        raise CliError("StreamApps", "there is none here", "look with `kubectl streamapp status --all-namespaces`")
    todo = [one for one in resources if not is_so(order, one)]
    if todo:
        # Not within the event loop, which would keep Ctrl-C from whoever is asked.
        question = _question(order, todo, len(resources))
        require_yes(f"{order.word} of {counted(len(todo), 'StreamApp')}", question, yes=targets.yes)
    return run(_order_all(where, resources, order, output))


async def _order_one(where: Where, name: str, order: Order, output: Output) -> int:
    found = await streamapps.find(where)
    key = Key(streamapps.namespace_of(where, found), name)
    async with streamapps.opened(found, streamapps.title_of(key.namespace, key.name)) as client:
        done = await _carried_out(client, found, key, order)
    if output is Output.TABLE:
        consequence = order.consequence.replace("NAME", name)
        console.show(Text(f"{plain(done.sentence)}\n{consequence}" if done.written else plain(done.sentence)))
    else:
        console.write(done.document, output)
    return Exit.FINE


async def _order_all(where: Where, resources: Sequence[Json], order: Order, output: Output) -> int:
    found = await streamapps.find(where)
    async with streamapps.opened(found, "StreamApps") as client:
        tried = await asyncio.gather(
            *(_carried_out(client, found, _key(one), order) for one in resources), return_exceptions=True
        )
    outcomes, failures = _apart(tried)
    _tell(outcomes, failures, order, output)
    return Exit.FAILED if failures else Exit.FINE


async def _carried_out(client: KubeClient, found: ClusterConnection, key: Key, order: Order) -> Outcome:
    seen: list[Outcome] = []

    def patch_for(resource: Json) -> Json | None:
        seen.append(outcome_of(order, resource))
        return order.patch if seen[-1].written else None

    with streamapps.told(found, streamapps.title_of(key.namespace, key.name)):
        await writing.change(client, found, key, patch_for)
    return seen[-1]


def _question(order: Order, todo: Sequence[Json], count: int) -> str:
    by_namespace = Counter(one["metadata"]["namespace"] for one in todo)
    named = [f"{namespace} ({number})" for namespace, number in sorted(by_namespace.items())]
    more = f" and {len(named) - _MOST_NAMESPACES} more namespaces" if len(named) > _MOST_NAMESPACES else ""
    already = (
        f"; {count - len(todo)} {'is' if count - len(todo) == 1 else 'are'} so already" if len(todo) < count else ""
    )
    places = f"{', '.join(named[:_MOST_NAMESPACES])}{more}"
    return f"{order.consequence}\n{order.word.capitalize()} {counted(len(todo), 'StreamApp')} in {places}{already}"


def _apart(tried: Sequence[Outcome | BaseException]) -> tuple[list[Outcome], list[CliError]]:
    outcomes, failures = [], []
    for one in tried:
        if isinstance(one, Outcome):
            outcomes.append(one)
        elif isinstance(one, CliError):
            failures.append(one)
        else:
            raise one
    return outcomes, failures


def _tell(outcomes: Sequence[Outcome], failures: Sequence[CliError], order: Order, output: Output) -> None:
    if output is Output.TABLE:
        written = sum(one.written for one in outcomes)
        lines = [Text(plain(one.sentence)) for one in outcomes]
        count = f"{counted(written, 'StreamApp')} written, {len(outcomes) - written} so before, {len(failures)} failed."
        console.show(Group(*lines, Text(f"\n{order.word}: {count}")))
    else:
        failed = [{"what": one.what, "why": one.why, "nextStep": one.next_step} for one in failures]
        console.write({"items": [one.document for one in outcomes], "failures": failed}, output)
    for failure in failures:
        failure.show()


def _key(resource: Json) -> Key:
    return Key(resource["metadata"]["namespace"], resource["metadata"]["name"])
