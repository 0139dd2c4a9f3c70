"""`advise`: reads the insight and the StreamApps with the rights of the user, and shows what was learned."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from streamapp.api.insight import FILE, Insight, InsightExpiredError, InsightRefusedError, parse
from streamapp.cli.advice.document import of_advice
from streamapp.cli.advice.learned import Learned, Source
from streamapp.cli.advice.screen import app_screen, overview_screen
from streamapp.cli.cluster import streamapps
from streamapp.cli.cluster.target import Target
from streamapp.cli.commands.run import run
from streamapp.cli.errors import CliError, Exit
from streamapp.cli.screens import watch
from streamapp.cli.text import console, durations
from streamapp.cli.text.console import Output
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import RefusedError, UnauthenticatedError
from streamapp.kube.client.kinds import CONFIG_MAPS, STREAM_APPS, Key

Json = dict[str, Any]


def advise(target: Target, name: str | None, source: Source, output: Output, *, everywhere: bool) -> int:
    """Show what was learned of one StreamApp, or of several; give the exit code."""
    now = watch.now()
    insight, apps = run(_read(target, name, source, now, everywhere=everywhere))
    if output is not Output.TABLE:
        console.write(of_advice(insight, apps, source), output)
    elif name is None:
        console.show_paged(overview_screen(insight, apps, now, everywhere=everywhere))
    else:
        console.show_paged(app_screen(insight, apps[0], now))
    return Exit.FINE


async def _read(
    target: Target, name: str | None, source: Source, now: datetime, *, everywhere: bool
) -> tuple[Insight, Sequence[Learned]]:
    connection = await streamapps.resolve(target)
    namespace = None if everywhere else streamapps.namespace_of(target, connection)
    async with streamapps.open_client(connection, streamapps.title_of(namespace, name)) as client:
        if name is None or namespace is None:
            found = await client.list(STREAM_APPS, namespace)
        else:
            # For a mistyped name this error proposes similar names.
            found = [await streamapps.read(client, connection, Key(namespace, name))]
        insight = _parsed(await _text(client, source), source, now)
    ordered = sorted(found, key=lambda one: (one["metadata"]["namespace"], one["metadata"]["name"]))
    return insight, [_learned(insight, one["metadata"]) for one in ordered]


def _learned(insight: Insight, metadata: Json) -> Learned:
    namespace, name = metadata["namespace"], metadata["name"]
    return Learned(namespace=namespace, name=name, insight=insight.of(namespace, name, metadata["uid"]))


async def _text(client: KubeClient, source: Source) -> bytes:
    """The insight as it lies in the ConfigMap; CliError if there is none, or the user cannot read it."""
    try:
        found = await client.find(CONFIG_MAPS, source.namespace, source.name)
    except UnauthenticatedError:
        raise
    except RefusedError as error:
        step = f"ask for a Role with get on configmaps, resourceNames {source.name}, in namespace {source.namespace}"
        raise CliError(source.title, error.why, step) from error
    if found is None:
        step = "set `analytics.enabled` of the chart (docs/analytics.md), or name another with --config-map and "
        raise CliError(source.title, "it does not exist, so there is no insight", f"{step}--operator-namespace")
    text = (found.get("data") or {}).get(FILE)
    if not text:
        raise CliError(source.title, "no run of `streamapp-analytics` has written insight into it", source.next_step)
    return str(text).encode()


def _parsed(text: bytes, source: Source, now: datetime) -> Insight:
    try:
        return parse(text, None, now)
    except InsightExpiredError as error:
        made, ended = durations.ago(error.made_at, now), durations.clock(error.valid_until)
        why = f"its insight was made {made} and was valid until {ended}; nothing of it is shown"
        raise CliError(source.title, why, source.next_step) from error
    except InsightRefusedError as error:
        raise CliError(source.title, f"its insight cannot be used: {error}", source.next_step) from error
