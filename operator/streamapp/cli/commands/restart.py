"""`restart`: asks the operator to restart one pod as soon as its tasks are covered, with its volume or a new one.

The request names the pod by its UID, so it is over as soon as the pod is gone, and a repeated command asks for nothing
twice. The operator has no right to delete a claim: with `--new-volume` this command deletes it with the user's rights.
Kubernetes keeps a claim that is being deleted until its pod is gone.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.text import Text

from streamapp.api.names import APP_LABEL, RESTART, claim_of
from streamapp.api.status.translate import restart_requests
from streamapp.api.validation.parse import StreamApp
from streamapp.cli.cluster import streamapps
from streamapp.cli.cluster.api_errors import of_write
from streamapp.cli.cluster.target import Target
from streamapp.cli.commands.confirm import require_yes
from streamapp.cli.commands.run import run
from streamapp.cli.errors import CliError, Exit
from streamapp.cli.model.app_view import AppView, view_of
from streamapp.cli.model.restart import (
    PlannedRestart,
    pod_of,
    refusal,
    requests_over,
    require_asked,
    require_obeyed,
    state_of,
)
from streamapp.cli.screens import watch
from streamapp.cli.text import console
from streamapp.cli.text.console import Output
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import ConflictError, KubeError, NotFoundError
from streamapp.kube.client.kinds import CLAIMS, PODS, Key
from streamapp.kube.client.kubeconfig import ClusterConnection
from streamapp.kube.objects.from_json import is_ready

LOOK_SECONDS = 2.0

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartOptions:
    """The options of the command line."""

    ordinal: int
    new_volume: bool
    dry_run: bool
    wait: bool
    yes: bool


def restart(target: Target, name: str, options: RestartOptions, output: Output) -> int:
    """Ask for the restart, and with `--wait` return when the new pod is ready; give the exit code."""
    planned = run(_planned(target, name, options))
    if output is Output.TABLE:
        console.show(Group(Text(planned.view.name, style="bold"), *map(Text, planned.sentences())))
    if not options.dry_run:
        if planned.claim is not None or planned.is_uncovered:
            claim = "" if planned.claim is None else f"Delete claim {planned.claim['metadata']['name']} and "
            question = f"{claim}restart ordinal {planned.ordinal}"
            require_yes(f"StreamApp {planned.view.name}", f"{question[0].upper()}{question[1:]}", yes=options.yes)
        run(_write(target, planned))
    _show(planned, options, output)
    return run(_wait(target, planned, output)) if options.wait and not options.dry_run else Exit.FINE


def cancel(target: Target, name: str, output: Output) -> int:
    """Withdraw all requests of a StreamApp; give the exit code."""
    withdrawn = run(_cancel(target, name))
    if output is Output.TABLE:
        console.show(Text("The restarts are withdrawn." if withdrawn else "No restart was asked for."))
    else:
        console.write({"name": name, "withdrawn": withdrawn}, output)
    return Exit.FINE


async def _cancel(target: Target, name: str) -> int:
    connection = await streamapps.resolve(target)
    key = Key(streamapps.namespace_of(target, connection), name)
    counts: list[int] = []

    def patch_for(resource: Json) -> Json | None:
        annotations = resource["metadata"].get("annotations", {})
        counts.append(len([*restart_requests(annotations)]))
        return {"metadata": {"annotations": {RESTART: None}}} if RESTART in annotations else None

    async with streamapps.open_client(connection, streamapps.title_of(key.namespace, key.name)) as client:
        await streamapps.change(client, connection, key, patch_for)
    return counts[-1]


async def _planned(target: Target, name: str, options: RestartOptions) -> PlannedRestart:
    connection = await streamapps.resolve(target)
    key = Key(streamapps.namespace_of(target, connection), name)
    async with streamapps.open_client(connection, streamapps.title_of(key.namespace, key.name)) as client:
        view = view_of(await streamapps.read(client, connection, key), watch.now())
        require_obeyed(view, options.ordinal, new_volume=options.new_volume)
        pods = await client.list(PODS, key.namespace, f"{APP_LABEL}={name}")
        pod = pod_of(view, options.ordinal, pods)
        return PlannedRestart(
            view=view,
            ordinal=options.ordinal,
            pod=pod,
            over=requests_over(view.streamapp.metadata.annotations, pods),
            claim=await _claim(client, view, options.ordinal) if options.new_volume else None,
            new_volume=options.new_volume,
        )


async def _claim(client: KubeClient, view: AppView, ordinal: int) -> Json | None:
    """The claim of an ordinal, also if it is being deleted already; None if it is gone."""
    streamapp = view.streamapp
    if not isinstance(streamapp, StreamApp) or streamapp.spec.state is None:
        raise refusal(view, "it has no spec.state, so its pods have no volumes", "leave out --new-volume")
    name = claim_of(streamapp.spec.state.claim_name, streamapp.metadata.name, ordinal)
    return await client.find(CLAIMS, streamapp.metadata.namespace, name)


async def _write(target: Target, planned: PlannedRestart) -> None:
    """The request first: a claim that goes without one holds every restart."""
    connection = await streamapps.resolve(target)
    key = planned.key
    patches: list[Json | None] = []

    def patch_for(resource: Json) -> Json | None:
        patches.append(planned.patch_for(resource))
        return patches[-1]

    async with streamapps.open_client(connection, streamapps.title_of(key.namespace, key.name)) as client:
        await streamapps.change(client, connection, key, patch_for)
        if planned.claim is None:
            return
        try:
            await _require_same_pod(client, planned)
            await _delete(client, connection, key.namespace, planned.claim)
        except CliError:
            # Else a later deletion of that claim, for whatever reason, would restart the pod.
            if patches[-1] is not None and await _stays(client, key.namespace, planned.claim):
                await streamapps.change(client, connection, key, planned.withdrawal)
            raise


async def _stays(client: KubeClient, namespace: str, claim: Json) -> bool:
    """Whether a claim is there and nobody deletes it: a deletion without an answer may have been made all the same."""
    found = await client.find(CLAIMS, namespace, claim["metadata"]["name"])
    is_same = found is not None and found["metadata"]["uid"] == claim["metadata"]["uid"]
    return found is not None and is_same and "deletionTimestamp" not in found["metadata"]


async def _require_same_pod(client: KubeClient, planned: PlannedRestart) -> None:
    """A person may have thought about the question for minutes: another pod may use the claim by now."""
    name = planned.pod["metadata"]["name"]
    pod = await client.find(PODS, planned.key.namespace, name)
    is_same = pod is not None and pod["metadata"]["uid"] == planned.pod["metadata"]["uid"]
    if pod is None or not is_same or "deletionTimestamp" in pod["metadata"]:
        raise refusal(planned.view, f"pod {name} was replaced meanwhile; no claim was deleted", "run the command again")


async def _delete(client: KubeClient, connection: ClusterConnection, namespace: str, claim: Json) -> None:
    """Delete this claim and no later one of its name, in whatever version it is."""
    name, what = claim["metadata"]["name"], f"volume claim {namespace}/{claim['metadata']['name']}"
    for left in reversed(range(streamapps.TRIES)):
        current = await client.find(CLAIMS, namespace, name)
        if current is None or current["metadata"]["uid"] != claim["metadata"]["uid"]:
            return
        metadata = current["metadata"]
        try:
            await client.delete(
                CLAIMS, namespace, name, uid=metadata["uid"], resource_version=metadata["resourceVersion"]
            )
        except NotFoundError:
            return
        except KubeError as error:
            if isinstance(error, ConflictError) and left:
                continue
            raise of_write(error, connection, what, CLAIMS.plural, CLAIMS.group) from error
        return


async def _wait(target: Target, planned: PlannedRestart, output: Output) -> int:
    """Say what the restart waits for whenever that changes; return when the next pod of the ordinal is ready."""
    connection = await streamapps.resolve(target)
    key, before = planned.key, ""
    async with streamapps.open_client(connection, streamapps.title_of(key.namespace, key.name)) as client:
        while True:
            pod = await client.find(PODS, key.namespace, planned.pod["metadata"]["name"])
            view = view_of(await streamapps.read(client, connection, key), watch.now())
            is_next = pod is not None and pod["metadata"]["uid"] != planned.pod["metadata"]["uid"]
            state = state_of(planned, pod, view, is_next=is_next)
            if state != before and output is Output.TABLE:
                console.show(Text(f"{view.now:%H:%M:%S}  {state}"))
            if is_next and pod is not None and is_ready(pod):
                return Exit.FINE
            if not is_next:
                require_asked(view, planned, is_there=pod is not None)
            before = state
            await asyncio.sleep(LOOK_SECONDS)


def _show(planned: PlannedRestart, options: RestartOptions, output: Output) -> None:
    if output is not Output.TABLE:
        console.write(
            {
                "namespace": planned.key.namespace,
                "name": planned.key.name,
                "ordinal": planned.ordinal,
                "pod": planned.pod["metadata"]["name"],
                "podUID": planned.pod["metadata"]["uid"],
                "deletedClaim": None if planned.claim is None else planned.claim["metadata"]["name"],
                "written": not options.dry_run,
            },
            output,
        )
        return
    told = "Dry run: nothing was written." if options.dry_run else "Asked for."
    hint = "" if options.dry_run else f" `kubectl streamapp explain {planned.key.name}` says what it waits for."
    console.show(Text(f"\n{told}{hint}"))
