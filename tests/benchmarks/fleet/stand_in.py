"""An API server and a StatefulSet controller for a fleet: the object store of the tests with indexes and latencies.

Beyond what one machine can run as real pods. Each answer takes as long as one of the lab's API server did; pods come
with the status that they would have. Every request is counted, and every raise is timed from the write of the wish to
the arrival of the PATCH.
"""

import asyncio
import contextlib
import json
import random
import time
from bisect import bisect_right
from collections import Counter, defaultdict
from datetime import UTC, datetime

from aiohttp import web

from streamapp.api.names import APP_LABEL
from streamapp.kube.client.kinds import AUTOSCALERS, BUDGETS, CLAIMS, PODS, STATEFUL_SETS, STREAM_APPS, Key, Kind
from tests.kube.api_server import ApiServer
from tests.kube.discovery import discovery
from tests.kube.field_ownership import Json
from tests.kube.object_store import Change, Identity, Request

READ_SECONDS, WRITE_SECONDS = 0.004, 0.008
"""Medians of the lab's API server for single requests; the spread is that of `SPREAD`."""
SPREAD = 0.4
BOOKMARK_EVERY = 50.0
_DISCOVERY = discovery(
    (
        *(STREAM_APPS, STATEFUL_SETS, BUDGETS, AUTOSCALERS, PODS, CLAIMS),
        Kind("", "v1", "namespaces", "Namespace"),
        Kind("", "v1", "events", "Event"),
        Kind("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"),
    )
)


class FleetServer(ApiServer):
    """The objects of a fleet, its pods, and what the operator asked for."""

    def __init__(self) -> None:
        super().__init__(lambda: datetime.now(UTC))
        self.requests: Counter[tuple[str, str]] = Counter()
        """By method and plural; watches apart."""
        self.raised_at: dict[Key, float] = {}
        """When replicas were raised that were not granted yet."""
        self.latencies: list[float] = []
        self.pods_run = True
        self._chance = random.Random(18)  # noqa: S311 (spreads latencies)
        self._by_plural: dict[str, dict[Identity, Json]] = defaultdict(dict)
        self._by_app: dict[tuple[str, str, str], dict[Identity, Json]] = defaultdict(dict)
        self._changes: dict[str, list[Change]] = defaultdict(list)
        self._versions_of: dict[str, list[int]] = defaultdict(list)

    def wish(self, key: Key, replicas: int) -> None:
        """Write a StreamApp's replicas as its user does, and time what follows."""
        app = self.objects[STREAM_APPS.plural, key.namespace, key.name].body
        self.raised_at[key] = time.monotonic()
        self.put(STREAM_APPS.plural, {**app, "spec": {**app["spec"], "replicas": replicas}})

    async def _serve(self, received: web.Request) -> web.StreamResponse:
        plural = Request.of(received.method, received.path, received.query, {}).plural
        method = "WATCH" if received.query.get("watch") == "true" else received.method
        self.requests[method, plural] += 1
        seconds = READ_SECONDS if received.method == "GET" else WRITE_SECONDS
        await asyncio.sleep(seconds * self._chance.lognormvariate(0, SPREAD))
        known = _DISCOVERY.get(received.path) if received.method == "GET" else None
        self.reads.clear()
        self.writes.clear()
        return await super()._serve(received) if known is None else web.json_response(known)

    def _read(self, request: Request, objects: object) -> Json:  # noqa: ARG002 (there are indexes)
        if request.name or not request.plural:
            return super()._read(
                request, {key: self.objects[key].body for key in (request.identity,) if key in self.objects}
            )
        wanted = dict(part.split("=") for part in request.query.get("labelSelector", "").split(",") if "=" in part)
        if APP_LABEL in wanted and request.namespace:
            found = self._by_app[request.plural, request.namespace, wanted[APP_LABEL]]
        else:
            found = self._by_plural[request.plural]
        begin, most = int(request.query.get("continue") or 0), int(request.query.get("limit") or 0) or len(found) + 1
        items = [body for body in found.values() if request.asks_for(body)]
        more = {"continue": str(begin + most)} if begin + most < len(items) else {}
        return {"items": items[begin : begin + most], "metadata": {"resourceVersion": str(self.version), **more}}

    def _objects_at(self, version: int | None) -> dict[Identity, Json]:  # noqa: ARG002 (nothing is stale here)
        return {}

    def _remember(self, change: Change) -> None:
        plural, namespace, name = change.identity
        body = change.body or change.before or {}
        app = body["metadata"].get("labels", {}).get(APP_LABEL, "")
        for index in (self._by_plural[plural], self._by_app[plural, namespace, app]):
            if change.body is None:
                index.pop(change.identity, None)
            else:
                index[change.identity] = change.body
        self._changes[plural].append(change)
        self._versions_of[plural].append(change.version)
        self.history[:] = [change]
        if plural == STATEFUL_SETS.plural and change.body is not None:
            self._follow(Key(namespace, name), change.body, change.before)
        self._wake()

    def _follow(self, key: Key, body: Json, before: Json | None) -> None:
        """Do what the StatefulSet's controller and the kubelet do."""
        replicas = body["spec"]["replicas"]
        if key in self.raised_at and (before is None or replicas > before["spec"]["replicas"]):
            self.latencies.append(time.monotonic() - self.raised_at.pop(key))
        if before is not None and before.get("spec") == body.get("spec"):
            return
        pods = self._by_app[PODS.plural, key.namespace, key.name]
        body["status"] = {
            "observedGeneration": body["metadata"]["generation"],
            "updateRevision": "r1",
            "replicas": replicas,
        }
        for number in range(len(pods), replicas):
            asyncio.get_running_loop().call_soon(self.put, PODS.plural, _pod(key, number, body, runs=self.pods_run))

    async def _watch(self, received: web.Request, request: Request) -> web.StreamResponse:
        version = int(received.query.get("resourceVersion") or 0)
        ends_at = time.monotonic() + float(received.query.get("timeoutSeconds") or 300)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(received)
        with contextlib.suppress(ConnectionResetError):
            await self._tell(response, request, version, ends_at)
        return response

    async def _tell(self, response: web.StreamResponse, request: Request, version: int, ends_at: float) -> None:
        plural, bookmark_at = request.plural, time.monotonic() + BOOKMARK_EVERY
        while time.monotonic() < ends_at:
            told = self._told
            first = bisect_right(self._versions_of[plural], version)
            for change in self._changes[plural][first:]:
                version = change.version
                if request.asks_for(change.told):
                    await _send(response, change.kind, change.told)
            if time.monotonic() >= bookmark_at:
                bookmark_at += BOOKMARK_EVERY
                await _send(response, "BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}})
            try:
                async with asyncio.timeout(max(0.0, min(bookmark_at, ends_at) - time.monotonic())):
                    await told.wait()
            except TimeoutError:
                continue


def a_stream_app(key: Key, replicas: int, bootstrap: str) -> Json:
    """A StreamApp as users write them."""
    container = {
        "name": "app",
        "image": "registry.example/app:1",
        "env": [{"name": f"STREAMS_SETTING_{number}", "value": "a value of some length"} for number in range(12)],
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
    }
    return {
        "apiVersion": STREAM_APPS.api_version,
        "kind": STREAM_APPS.name,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {
            "replicas": replicas,
            "applicationId": key.name,
            "kafka": {"bootstrapServers": bootstrap},
            "template": {"spec": {"containers": [container]}},
        },
    }


def _pod(key: Key, number: int, statefulset: Json, *, runs: bool) -> Json:
    name = f"{key.name}-{number}"
    since = "2026-01-01T00:00:00Z"
    status: Json = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]}
    if runs:
        address = f"10.{hash(key) % 200}.{hash(name) % 250}.{number % 250}"
        status = {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": since}
                for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "containerStatuses": [
                {
                    "name": "app",
                    "containerID": f"containerd://{key.namespace}-{name}",
                    "restartCount": 0,
                    "ready": True,
                    "state": {"running": {"startedAt": since}},
                    "lastState": {},
                }
            ],
        }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": key.namespace,
            "labels": {APP_LABEL: key.name, "controller-revision-hash": "r1"},
            "ownerReferences": [{"uid": statefulset["metadata"]["uid"], "controller": True, "kind": "StatefulSet"}],
        },
        "spec": {**statefulset["spec"]["template"]["spec"], "nodeName": f"node-{number % 20}", "hostname": name},
        "status": status,
    }


async def _send(response: web.StreamResponse, kind: str, body: Json) -> None:
    await response.write(json.dumps({"type": kind, "object": body}).encode() + b"\n")
