"""`hold`, `pause` and `resume`: on one StreamApp, on all of a namespace, or on all of the cluster."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.text import Text

from streamapp.cli.cluster import streamapps
from streamapp.cli.cluster.target import Target
from streamapp.cli.commands.confirm import require_yes
from streamapp.cli.commands.run import run
from streamapp.cli.errors import CliError, Exit
from streamapp.cli.model.phrases import counted
from streamapp.cli.model.user_action import ActionResult, UserAction, is_done, result_of
from streamapp.cli.text import console
from streamapp.cli.text.console import Output
from streamapp.cli.text.sanitize import plain
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.kinds import Key
from streamapp.kube.client.kubeconfig import ClusterConnection

_MOST_NAMESPACES = 8

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The StreamApps of an action: the one with this name, or all."""

    name: str | None
    everywhere: bool
    """All namespaces, not only the namespace of the context."""
    yes: bool


def apply(target: Target, selection: Selection, action: UserAction, output: Output) -> int:
    """Apply an action; give the exit code."""
    if selection.name is not None:
        return run(_apply_to_one(target, selection.name, action, output))
    resources = run(streamapps.list_all(target, everywhere=selection.everywhere))
    if not resources:
        raise CliError(
            "StreamApps", "there are none here", "list them with `kubectl streamapp status --all-namespaces`"
        )
    todo = [resource for resource in resources if not is_done(action, resource)]
    if todo:
        # Outside the event loop, which would swallow Ctrl-C at the prompt.
        question = _question(action, todo, len(resources))
        require_yes(f"{action.word} of {counted(len(todo), 'StreamApp')}", question, yes=selection.yes)
    return run(_apply_to_all(target, resources, action, output))


async def _apply_to_one(target: Target, name: str, action: UserAction, output: Output) -> int:
    connection = await streamapps.resolve(target)
    key = Key(streamapps.namespace_of(target, connection), name)
    async with streamapps.open_client(connection, streamapps.title_of(key.namespace, key.name)) as client:
        result = await _write(client, connection, key, action)
    if output is Output.TABLE:
        effect = action.effect.replace("NAME", name)
        console.show(Text(f"{plain(result.sentence)}\n{effect}" if result.written else plain(result.sentence)))
    else:
        console.write(result.document, output)
    return Exit.FINE


async def _apply_to_all(target: Target, resources: Sequence[Json], action: UserAction, output: Output) -> int:
    connection = await streamapps.resolve(target)
    async with streamapps.open_client(connection, "StreamApps") as client:
        attempts = await asyncio.gather(
            *(_write(client, connection, _key(resource), action) for resource in resources), return_exceptions=True
        )
    results, failures = _apart(attempts)
    _show(results, failures, action, output)
    return Exit.FAILED if failures else Exit.FINE


async def _write(client: KubeClient, connection: ClusterConnection, key: Key, action: UserAction) -> ActionResult:
    results: list[ActionResult] = []

    def patch_for(resource: Json) -> Json | None:
        results.append(result_of(action, resource))
        return action.patch if results[-1].written else None

    with streamapps.translate_errors(connection, streamapps.title_of(key.namespace, key.name)):
        await streamapps.change(client, connection, key, patch_for)
    return results[-1]


def _question(action: UserAction, todo: Sequence[Json], count: int) -> str:
    by_namespace = Counter(resource["metadata"]["namespace"] for resource in todo)
    named = [f"{namespace} ({number})" for namespace, number in sorted(by_namespace.items())]
    more = f" and {len(named) - _MOST_NAMESPACES} more namespaces" if len(named) > _MOST_NAMESPACES else ""
    unchanged = f"; {count - len(todo)} unchanged" if len(todo) < count else ""
    places = f"{', '.join(named[:_MOST_NAMESPACES])}{more}"
    return f"{action.effect}\n{action.word.capitalize()} {counted(len(todo), 'StreamApp')} in {places}{unchanged}"


def _apart(attempts: Sequence[ActionResult | BaseException]) -> tuple[list[ActionResult], list[CliError]]:
    results, failures = [], []
    for attempt in attempts:
        if isinstance(attempt, ActionResult):
            results.append(attempt)
        elif isinstance(attempt, CliError):
            failures.append(attempt)
        else:
            raise attempt
    return results, failures


def _show(results: Sequence[ActionResult], failures: Sequence[CliError], action: UserAction, output: Output) -> None:
    if output is Output.TABLE:
        written = sum(result.written for result in results)
        lines = [Text(plain(result.sentence)) for result in results]
        count = f"{counted(written, 'StreamApp')} changed, {len(results) - written} unchanged, {len(failures)} failed."
        console.show(Group(*lines, Text(f"\n{action.word}: {count}")))
    else:
        failed = [{"what": error.what, "why": error.why, "nextStep": error.next_step} for error in failures]
        console.write({"items": [result.document for result in results], "failures": failed}, output)
    for failure in failures:
        failure.show()


def _key(resource: Json) -> Key:
    return Key(resource["metadata"]["namespace"], resource["metadata"]["name"])
