"""`restart`: asks the operator to restart one pod as soon as its tasks are covered, with its volume or a new one.

The request names the pod by its UID, so it is over as soon as the pod is gone, and a repeated command asks for nothing
twice. The operator has no right to delete a claim: with `--new-volume` this command deletes it with the user's rights.
Kubernetes keeps a claim that is being deleted until its pod is gone.
"""

import asyncio
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import Group
from rich.text import Text

from streamapp.api.names import APP_LABEL, NEW_VOLUME, RESTART, claim_of
from streamapp.api.status.translate import restart_requests
from streamapp.api.validation.parse import StreamApp
from streamapp.cli.cluster import streamapps
from streamapp.cli.cluster.api_errors import of_write
from streamapp.cli.cluster.target import Target
from streamapp.cli.commands.confirm import require_yes
from streamapp.cli.commands.run import run
from streamapp.cli.errors import CliError, Exit
from streamapp.cli.model.app_view import AppView, view_of
from streamapp.cli.screens import watch
from streamapp.cli.text import console
from streamapp.cli.text.console import Output
from streamapp.core.facts.policy import LearnerSource, RolloutPolicy
from streamapp.core.facts.snapshot import RestartRequest
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import ConflictError, KubeError, NotFoundError
from streamapp.kube.client.kinds import CLAIMS, PODS, Key
from streamapp.kube.client.kubeconfig import ClusterConnection

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRestart:
    """What is asked of the operator, and what the user gives up for it."""

    view: AppView
    ordinal: int
    pod: Json
    pod_uids: frozenset[str]
    """Of all pods: requests for others are over."""
    claim: Json | None
    """The claim that is given up; None if the volume is kept, or is gone already."""
    new_volume: bool

    @property
    def key(self) -> Key:
        """The StreamApp."""
        return Key(self.view.streamapp.metadata.namespace, self.view.streamapp.metadata.name)

    def patch_for(self, resource: Json) -> Json | None:
        """The request, beside those that are not over; None if it is there already."""
        present = view_of(resource, self.view.now)
        if present.streamapp.metadata.uid != self.view.streamapp.metadata.uid:
            raise _error(present, "it was deleted and created again meanwhile; nothing was written", "run it again")
        _require_obeyed(present, self.ordinal, new_volume=self.new_volume)
        annotations = present.streamapp.metadata.annotations
        text = requests_with(annotations.get(RESTART, ""), self.pod["metadata"]["uid"], self.pod_uids, self.new_volume)
        return None if text == annotations.get(RESTART) else {"metadata": {"annotations": {RESTART: text}}}

    @property
    def is_uncovered(self) -> bool:
        """Whether no copy is waited for: there can be none, or the user's policy asks for none."""
        status, streamapp = self.view.status, self.view.streamapp
        has_copies = status.learner_source in {LearnerSource.STANDBYS, LearnerSource.ON_DEMAND}
        is_immediate = isinstance(streamapp, StreamApp) and streamapp.spec.rollout.policy is RolloutPolicy.IMMEDIATE
        return is_immediate or not has_copies or streamapp.replicas == 1

    def withdrawal(self, resource: Json) -> Json | None:
        """The annotation without this request; None if it is not there."""
        annotation = resource["metadata"].get("annotations", {}).get(RESTART, "")
        left = [one for one in restart_requests({RESTART: annotation}) if one.pod_uid != self.pod["metadata"]["uid"]]
        return None if not annotation else {"metadata": {"annotations": {RESTART: _text(left) or None}}}

    def sentences(self) -> Iterator[str]:
        """What the restart costs and waits for."""
        name = self.pod["metadata"]["name"]
        if self.is_uncovered:
            restored = " and has restored their state" if self.claim is not None else ""
            yield (
                f"No copy of the tasks of pod {name} is waited for: there is one pod, no copies are known, or "
                f"`rollout.policy` is Immediate. Their users wait until the new pod runs{restored}."
            )
        else:
            yield (
                f"The operator restarts pod {name} when every stateful task that it runs has a caught-up copy on "
                "another pod."
            )
        if self.claim is not None:
            yield (
                f"Volume claim {self.claim['metadata']['name']} ({_size(self.claim)}) is deleted, and Kubernetes "
                "removes it with the pod. The state on it is lost; the new pod restores from Kafka."
            )
        spec = self.view.streamapp.spec if isinstance(self.view.streamapp, StreamApp) else None
        if spec is not None and spec.rollout.policy is RolloutPolicy.PAUSED:
            told = "it starts with the newest one" if self.new_volume else "it is not restarted"
            yield f"`rollout.policy` is Paused: if the pod has an older template, {told}."


def requests_with(annotation: str, pod_uid: str, pod_uids: Collection[str], new_volume: bool) -> str:
    """Give the annotation with one more request; those of pods that are gone are left out.

    Args:
        annotation: As it stands.
        pod_uid: The pod to restart.
        pod_uids: Of all pods that exist.
        new_volume: Whether its claim is given up.
    """
    kept = [
        request
        for request in restart_requests({RESTART: annotation})
        if request.pod_uid in pod_uids and request.pod_uid != pod_uid
    ]
    wanted = [*kept, RestartRequest(pod_uid=pod_uid, new_volume=new_volume)]
    return _text(wanted)


def _text(requests: Iterable[RestartRequest]) -> str:
    return ", ".join(f"{one.pod_uid} {NEW_VOLUME}" if one.new_volume else one.pod_uid for one in requests)


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
        _require_obeyed(view, options.ordinal, new_volume=options.new_volume)
        pods = await client.list(PODS, key.namespace, f"{APP_LABEL}={name}")
        pod = _pod_of(view, options.ordinal, pods)
        return PlannedRestart(
            view=view,
            ordinal=options.ordinal,
            pod=pod,
            pod_uids=frozenset(one["metadata"]["uid"] for one in pods),
            claim=await _claim(client, view, options.ordinal) if options.new_volume else None,
            new_volume=options.new_volume,
        )


def _require_obeyed(view: AppView, ordinal: int, *, new_volume: bool) -> None:
    """Raise CliError where the operator would not restart this ordinal: one that leaves only if its volume goes."""
    streamapp, name = view.streamapp, view.streamapp.metadata.name
    if not isinstance(streamapp, StreamApp):
        raise _error(view, f"its spec is invalid: {streamapp.sentence}", "correct the spec first")
    if streamapp.metadata.deletion_timestamp is not None:
        raise _error(view, "it is being deleted", "no action needed")
    if streamapp.spec.paused:
        raise _error(view, "it is paused, so the operator restarts nothing", f"kubectl streamapp resume {name}")
    if streamapp.spec.dry_run:
        raise _error(view, "it is a dry run, so the operator restarts nothing", "remove spec.dryRun")
    if ordinal >= streamapp.replicas and not new_volume:
        raise _error(
            view,
            f"ordinal {ordinal} is none of the {streamapp.replicas} desired replicas, so its pod leaves",
            f"name an ordinal below {streamapp.replicas}",
        )


def _pod_of(view: AppView, ordinal: int, pods: list[Json]) -> Json:
    name = f"{view.streamapp.metadata.name}-{ordinal}"
    pod = next((one for one in pods if one["metadata"]["name"] == name), None)
    if pod is None:
        raise _error(view, f"there is no pod {name}", "look at `kubectl streamapp status NAME`")
    if "deletionTimestamp" in pod["metadata"]:
        raise _error(view, f"pod {name} is being deleted already", "wait until the new pod is there")
    return pod


async def _claim(client: KubeClient, view: AppView, ordinal: int) -> Json | None:
    """The claim of an ordinal, also if it is being deleted already; None if it is gone."""
    streamapp = view.streamapp
    if not isinstance(streamapp, StreamApp) or streamapp.spec.state is None:
        raise _error(view, "it has no spec.state, so its pods have no volumes", "leave out --new-volume")
    name = claim_of(streamapp.spec.state.claim_name, streamapp.metadata.name, ordinal)
    return await client.find(CLAIMS, streamapp.metadata.namespace, name)


def _error(view: AppView, why: str, next_step: str) -> CliError:
    return CliError(f"StreamApp {view.name}", why, next_step)


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
        raise _error(planned.view, f"pod {name} was replaced meanwhile; no claim was deleted", "run the command again")


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
            state = _state(planned, pod, view, is_next=is_next)
            if state != before and output is Output.TABLE:
                console.show(Text(f"{view.now:%H:%M:%S}  {state}"))
            if is_next and pod is not None and _is_ready(pod):
                return Exit.FINE
            if not is_next:
                _require_asked(view, planned, is_there=pod is not None)
            before = state
            await asyncio.sleep(LOOK_SECONDS)


def _require_asked(view: AppView, planned: PlannedRestart, *, is_there: bool) -> None:
    """Raise CliError where the restart will not come, since it was withdrawn or the pod is to leave."""
    _require_obeyed(view, planned.ordinal, new_volume=planned.new_volume and is_there)
    asked = restart_requests(view.streamapp.metadata.annotations)
    if planned.pod["metadata"]["uid"] not in {request.pod_uid for request in asked}:
        raise _error(view, "the restart was withdrawn", "no action needed")


def _state(planned: PlannedRestart, pod: Json | None, view: AppView, *, is_next: bool) -> str:
    name = planned.pod["metadata"]["name"]
    if pod is None or "deletionTimestamp" in pod["metadata"]:
        return f"{name} stops"
    if is_next:
        return f"{name} is ready" if _is_ready(pod) else f"{name} starts"
    reconciling = view.condition("Reconciling")
    reason = "" if reconciling is None or reconciling.reason == "Steady" else f": {reconciling.reason}"
    return f"{name} waits{reason}"


def _is_ready(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _size(claim: Json) -> str:
    return str(claim.get("spec", {}).get("resources", {}).get("requests", {}).get("storage", "size unknown"))


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
