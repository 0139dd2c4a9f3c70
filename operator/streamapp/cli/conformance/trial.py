"""The requests of a run to the cluster: it makes, reads and changes only objects that carry the name of the run.

Every failure of a request is a KubeError; `until` waits and gives up after the time of the command line.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import click

from streamapp.api.names import PROCESS_ID, claim_of
from streamapp.cli.cluster.streamapps import MANAGER
from streamapp.cli.conformance.manifests import Setup, meter_pod
from streamapp.cli.conformance.waits import Wait, read_waits
from streamapp.cli.errors import CliError
from streamapp.cli.text import durations
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.errors import ConflictError, KubeError, UnavailableError
from streamapp.kube.client.kinds import (
    ACCESS_REVIEWS,
    BUDGETS,
    CLAIMS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    STREAM_APPS,
    Kind,
)

LOOK_SECONDS = 0.5
TRIES = 5
"""Of a write to an object that its other writers change."""
LOG_LINES = 5_000
"""Of the meter, at one line a second: more than an hour."""
CALM_MS = 2_000
"""No input waits for longer in quiet time."""
KILL_SECONDS = 1
"""The grace of a pod that is killed: the kubelet reports its end, and the application has no time to leave."""
CLAIM = "state"
OWN_KINDS = (STREAM_APPS, STATEFUL_SETS, SERVICES, BUDGETS)
"""The kinds of the objects that have exactly the name of the run."""

Json = dict[str, Any]


async def pause() -> None:
    """Wait for the next look."""
    await asyncio.sleep(LOOK_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One ordinal: its pod, its volume and its Kafka Streams process."""

    pod: str
    """UID."""
    claim: str
    """UID."""
    volume: str
    """Name of the PersistentVolume."""
    process: str
    """Process ID on record; empty: none yet."""


@dataclass(slots=True)
class Trial:
    """The application of a run, and the clock of the run."""

    client: KubeClient
    setup: Setup
    timeout: timedelta
    """Of each wait."""
    began: float = field(default_factory=time.monotonic)
    has_made: bool = False
    """Whether there can be something to clean up."""

    def say(self, words: str) -> None:
        """Show progress, with the time since the begin."""
        passed = timedelta(seconds=time.monotonic() - self.began)
        click.echo(f"{durations.short(passed):>7}  {words}", err=True)

    async def until(self, what: str, holds: Callable[[], Awaitable[bool]]) -> float | None:
        """Look until something holds; give the seconds that it took, or None if time has run out.

        An API server that is away for a moment is waited for.
        """
        self.say(f"waits until {what}")
        began = time.monotonic()
        while True:
            try:
                if await holds():
                    return time.monotonic() - began
            except UnavailableError as error:
                self.say(f"the API server does not answer: {error.why}")
            if time.monotonic() - began > self.timeout.total_seconds():
                return None
            await pause()

    async def require_free(self) -> None:
        """Refuse a name that is taken; CliError."""
        for kind in OWN_KINDS:
            if await self.client.find(kind, self.setup.namespace, self.setup.name) is not None:
                what = f"{kind.name} {self.setup.namespace}/{self.setup.name}"
                raise CliError(what, "it exists, and this run did not make it", "run the command again")

    async def allows(self, kind: Kind, verb: str, subresource: str = "") -> bool:
        """Whether this user can do this in the namespace."""
        attributes = {"group": kind.group, "resource": kind.plural, "verb": verb, "namespace": self.setup.namespace}
        attributes |= {"subresource": subresource} if subresource else {}
        review = await self.client.create(ACCESS_REVIEWS, {"metadata": {}, "spec": {"resourceAttributes": attributes}})
        return bool(review["status"]["allowed"])

    async def make(self, kind: Kind, body: Json) -> None:
        """Create an object of the run."""
        self.say(f"makes {kind.name} {body['metadata']['name']}")
        self.has_made = True
        await self.client.create(kind, body, manager=MANAGER)

    async def scale(self, replicas: int) -> None:
        """Set the desired replicas."""
        self.say(f"scales to {replicas} replicas")
        patch = {"spec": {"replicas": replicas}}
        await self.client.merge(STREAM_APPS, self.setup.namespace, self.setup.name, patch, manager=MANAGER)

    async def app(self) -> Json:
        """The StreamApp."""
        return await self.client.get(STREAM_APPS, self.setup.namespace, self.setup.name)

    async def replicas(self) -> int | None:
        """Replicas of the StatefulSet; None: it is not there."""
        found = await self.client.find(STATEFUL_SETS, self.setup.namespace, self.setup.name)
        return None if found is None else int(found["spec"]["replicas"])

    async def is_converged(self, replicas: int) -> bool:
        """Whether every task and copy runs on so many pods, by the newest word of the operator."""
        app = await self.app()
        status = app.get("status", {})
        told = condition(app, "Converged")
        return (
            told.get("status") == "True"
            and told.get("observedGeneration") == app["metadata"]["generation"]
            and (status.get("readyReplicas"), status.get("statefulSetReplicas")) == (replicas, replicas)
        )

    async def why(self) -> str:
        """What the operator says of the application."""
        app = await self.app()
        if not app.get("status"):
            return "the operator has written no status"
        told = condition(app, "Converged")
        held = condition(app, "ScaleDownHeld")
        return "; ".join(f"{one['reason']}: {one.get('message', '')}" for one in (told, held) if one.get("reason"))

    async def pod(self, name: str) -> Json | None:
        """A pod of the run."""
        return await self.client.find(PODS, self.setup.namespace, name)

    async def is_pending(self) -> bool:
        """Whether no node has taken the first pod of the application."""
        pod = await self.pod(f"{self.setup.name}-0")
        return pod is not None and not pod.get("spec", {}).get("nodeName")

    async def why_pod(self, name: str) -> str:
        """Why a pod of the run does not do its work: its waiting or failing container, or its phase."""
        pod = await self.pod(name)
        if pod is None:
            return f"pod {name} does not exist"
        status = pod.get("status", {})
        for one in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
            state = one.get("state", {})
            told = state.get("waiting") or state.get("terminated") or {}
            if told.get("reason") not in {None, "Completed", "PodInitializing", "ContainerCreating"}:
                return f"pod {name}, container {one['name']}: {told['reason']}{_last_words(told)}"
        unmet = [one for one in status.get("conditions", ()) if one["status"] == "False" and one.get("message")]
        return f"pod {name}: {unmet[0]['message'] if unmet else status.get('phase', 'Pending')}"

    async def kill(self, ordinal: int) -> None:
        """Delete a pod of the application, with so little grace that it cannot leave the group."""
        name = f"{self.setup.name}-{ordinal}"
        self.say(f"kills pod {name}")
        for left in reversed(range(TRIES)):
            pod = await self.client.get(PODS, self.setup.namespace, name)
            try:
                await self.client.end_pod(pod, grace_seconds=KILL_SECONDS)
            except ConflictError:
                if not left:
                    raise
                continue
            return

    async def identity(self, ordinal: int) -> Identity | None:
        """One ordinal as it is now; None if its pod or its claim is not there."""
        pod = await self.pod(f"{self.setup.name}-{ordinal}")
        name = claim_of(CLAIM, self.setup.name, ordinal)
        claim = await self.client.find(CLAIMS, self.setup.namespace, name)
        if pod is None or claim is None:
            return None
        return Identity(
            pod=pod["metadata"]["uid"],
            claim=claim["metadata"]["uid"],
            volume=claim["spec"].get("volumeName", ""),
            process=claim["metadata"].get("annotations", {}).get(PROCESS_ID, ""),
        )

    async def waits(self) -> tuple[Wait, ...]:
        """What the meter has printed; empty if it has not, or cannot be read."""
        name = meter_pod(self.setup)["metadata"]["name"]
        try:
            log = await self.client.log(self.setup.namespace, name, "waits", lines=LOG_LINES)
        except KubeError:
            return ()
        return read_waits(log)

    async def clock_ms(self) -> int:
        """The broker's time of the newest input that was measured; 0 if there is none."""
        waits = await self.waits()
        return waits[-1].clock_ms if waits else 0

    async def is_calm_since(self, clock_ms: int) -> bool:
        """Whether inputs came after a time of the broker, and none waits."""
        waits = await self.waits()
        return bool(waits) and waits[-1].clock_ms > clock_ms and waits[-1].open_ms < CALM_MS


def _last_words(told: Json) -> str:
    """The last line of what a container said; empty if it said nothing."""
    lines = str(told.get("message") or "").strip().splitlines()
    return f": {lines[-1]}" if lines else ""


def condition(app: Json, kind: str) -> Json:
    """A condition of the status; empty if it is not there."""
    found: list[Json] = [one for one in app.get("status", {}).get("conditions", ()) if one["type"] == kind]
    return found[0] if found else {}
