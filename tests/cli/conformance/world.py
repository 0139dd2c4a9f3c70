"""A small world for `conformance`: an operator, a kubelet and brokers that move on by one step between two looks.

They stand in for real ones, which tests/lab/test_83_conformance.py has.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from streamapp.api.names import APP_LABEL, PROCESS_ID
from streamapp.cli.conformance.manifests import RUN_LABEL
from tests.cli.cluster import NAMESPACE, Cluster
from tests.cli.operator_there import OperatorThere

Json = dict[str, Any]
KINDS = ("streamapps", "statefulsets", "services", "poddisruptionbudgets", "pods", "persistentvolumeclaims")


@dataclass
class World:
    """What runs beside the command."""

    cluster: Cluster
    there: OperatorThere
    name: str
    seconds: float = 1000.0
    ticks: int = 0
    stays: set[str] = field(default_factory=set)
    """What does not go as it should: `raise`, `hold`, `step`, `identity`, `volume`, `eviction`, `preload`, `remove`,
    `start`."""
    denied: set[str] = field(default_factory=set)
    """Rights that the user lacks: `create pods`."""
    on_tick: Callable[["World"], None] = lambda _: None
    gap_ms: int = 900
    passed: int = 0
    pods_made: int = 0
    seen_pods: list[str] = field(default_factory=list)
    lines: list[Json] = field(default_factory=list)
    waits: int = 0

    def begin(self) -> None:
        """Answer reviews and logs."""
        before = self.there._elsewhere

        def elsewhere(request: web.Request, body: Json) -> web.Response | None:
            if request.path.endswith("/selfsubjectaccessreviews"):
                asked = body["spec"]["resourceAttributes"]
                return web.json_response(
                    {"status": {"allowed": f"{asked['verb']} {asked['resource']}" not in self.denied}}
                )
            return before(request, body)

        self.cluster.do(lambda server: setattr(server, "elsewhere", elsewhere))

    def find(self, plural: str, name: str) -> Json | None:
        return self.cluster.do(lambda server: server.get(plural, NAMESPACE, name))

    def put(self, plural: str, name: str, body: Json) -> None:
        metadata = {"namespace": NAMESPACE, "name": name, **body.pop("metadata", {})}
        self.there.put(plural, {"metadata": metadata, **body})

    def left(self) -> list[str]:
        """What the run made and is still there."""
        objects = self.cluster.do(lambda server: list(server.objects))
        return sorted(f"{plural}/{name}" for plural, _, name in objects if self.name in name)

    async def tick(self) -> None:
        """Move on; the command pauses meanwhile."""
        self.ticks += 1
        self.seconds += 2
        self.on_tick(self)
        self._run_pods()
        app = self.find("streamapps", self.name)
        if app is None:
            self._collect()
        else:
            self._reconcile(app)
        self._measure()

    def _run_pods(self) -> None:
        for part, fails in (("preload", "preload" in self.stays), ("remove", "remove" in self.stays)):
            pod = self.find("pods", f"{self.name}-{part}")
            if pod is not None:
                self.seen_pods.append(part)
                phase = "Failed" if fails else "Succeeded"
                ended = {"reason": "Error", "message": "connects\nno route to the brokers\n"}
                state = {"terminated": ended} if fails else {}
                statuses = [{"name": part, "state": state}]
                self.there.put("pods", {**pod, "status": {"phase": phase, "containerStatuses": statuses}})
        self.there.logs[f"{self.name}-remove", "remove", False] = b"load: topics cannot be deleted: not authorized\n"

    def _reconcile(self, app: Json) -> None:
        desired = app["spec"]["replicas"]
        found = self.find("statefulsets", self.name)
        replicas = desired if found is None else found["spec"]["replicas"]
        if desired > replicas and "raise" not in self.stays:
            replicas = desired
        is_held = desired < replicas
        self.waits = self.waits + 1 if is_held else 0
        if is_held and "step" not in self.stays and (self.waits > 7 or "hold" in self.stays):
            replicas, is_held = desired, False
        self.put("statefulsets", self.name, {"spec": {"replicas": replicas}})
        self.put("services", self.name, {})
        for ordinal in range(replicas):
            self._start(ordinal)
        self._write(app, replicas, is_held=is_held)

    def _start(self, ordinal: int) -> None:
        pod = f"{self.name}-{ordinal}"
        claim = f"state-{pod}"
        is_new = self.find("pods", pod) is None
        if is_new:
            self.pods_made += 1
            labels = {APP_LABEL: self.name, RUN_LABEL: self.name}
            self.put("pods", pod, {"metadata": {"labels": labels, "uid": f"pod-{self.pods_made}"}})
        if self.find("persistentvolumeclaims", claim) is None or (is_new and "volume" in self.stays):
            self._claim(claim, f"volume-{self.pods_made}", f"process-{ordinal}")
        elif is_new and "identity" in self.stays:
            self._claim(claim, f"volume-{ordinal + 1}", "process-other")

    def _claim(self, name: str, volume: str, process: str) -> None:
        metadata = {"labels": {APP_LABEL: self.name}, "annotations": {PROCESS_ID: process}, "uid": f"uid-{volume}"}
        self.put("persistentvolumeclaims", name, {"metadata": metadata, "spec": {"volumeName": volume}})

    def _write(self, app: Json, replicas: int, *, is_held: bool) -> None:
        generation = app["metadata"].get("generation", 1)

        def condition(kind: str, *, status: bool, reason: str) -> Json:
            return {"type": kind, "status": str(status), "reason": reason, "observedGeneration": generation}

        app["status"] = {
            "readyReplicas": replicas,
            "statefulSetReplicas": replicas,
            "conditions": [
                condition("Converged", status=not is_held and "start" not in self.stays, reason="Converged"),
                condition("ScaleDownHeld", status=is_held, reason="Stabilizing" if is_held else "Steady"),
                condition("ProcessIdentityStable", status=True, reason="IdentityHolds"),
            ],
        }
        self.cluster.put(app)

    def _measure(self) -> None:
        clock = self.ticks * 1000
        ended = self.gap_ms if "eviction" not in self.stays or self.pods_made < 4 else 130_000
        line = {"clockMs": clock, "endedMs": ended, "openMs": 0, "answered": self.ticks * 100, "passed": self.passed}
        self.lines.append(line)
        log = "".join(f"{json.dumps(one)}\n" for one in self.lines).encode()
        self.there.logs[f"{self.name}-meter", "waits", False] = b"warning: slow\n" + log

    def _collect(self) -> None:
        """The garbage collector: what the StreamApp owned goes with it."""
        if self.find("statefulsets", self.name) is not None:
            self.there.remove("statefulsets", NAMESPACE, self.name)
