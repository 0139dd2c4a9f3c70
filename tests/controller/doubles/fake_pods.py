"""The StatefulSet's controller and the kubelet in small: pods and claims follow the replicas at once.

Listens to the fake API server. A pod that goes says how its container ended, as the last object of a DELETED event.
"""

import itertools
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.kube.api_server import ApiServer

Json = dict[str, Any]
NAMESPACE = "demo"


@dataclass(frozen=True, slots=True)
class FakePod:
    """One run of one pod's container."""

    ordinal: int
    ip: str
    container_id: str


class FakePods:
    """Keeps the pods of one StatefulSet."""

    def __init__(self, server: ApiServer, name: str, now: Callable[[], datetime]) -> None:
        self._server = server
        self._name = name
        self._now = now
        self._numbers = itertools.count(1)
        self.deleted: list[Json] = []
        """Pods that went, as they were last."""
        self.most_at_once = 0
        """The most pods that one write took away."""
        server.changed.append(self._changed)

    def running(self) -> list[FakePod]:
        """The containers that run."""
        return [
            FakePod(
                int(pod["metadata"]["name"].rpartition("-")[2]),
                pod["status"]["podIPs"][0]["ip"],
                pod["status"]["containerStatuses"][0]["containerID"],
            )
            for pod in self._pods().values()
            if "containerID" in pod["status"]["containerStatuses"][0]
        ]

    def kill(self, ordinal: int) -> None:
        """End a container; its pod starts it anew."""
        pod = self._pods()[f"{self._name}-{ordinal}"]
        status = pod["status"]["containerStatuses"][0]
        ended = {"containerID": status["containerID"], "finishedAt": self._time(), "reason": "Error", "exitCode": 137}
        status["lastState"] = {"terminated": ended}
        status["containerID"] = f"containerd://{next(self._numbers)}"
        status["restartCount"] += 1
        status["state"] = {"running": {"startedAt": self._time()}}
        self._server.put("pods", pod)

    def replace(self, ordinal: int) -> None:
        """Take a pod away; another one of its name runs at once, in a container of its own."""
        pod = self._pods()[f"{self._name}-{ordinal}"]
        pod["metadata"]["uid"] = f"{pod['metadata']['uid']}-again"
        pod["status"]["containerStatuses"][0]["containerID"] = f"containerd://{next(self._numbers)}"
        pod["spec"]["volumes"] = _volumes(self._server.get("statefulsets", NAMESPACE, self._name) or {})
        self._server.put("pods", pod)

    def _changed(self, plural: str, body: Json, before: Json | None) -> None:
        if plural != "statefulsets" or not body or body["metadata"]["name"] != self._name:
            return  # the pods of one that is deleted are orphans
        if before is not None and before.get("spec") == body.get("spec"):
            return
        wanted = {f"{self._name}-{number}": number for number in range(body["spec"]["replicas"])}
        present = self._pods()
        leaving = sorted(present.keys() - wanted.keys())
        self.most_at_once = max(self.most_at_once, len(leaving))
        for name in leaving:
            self._end(present[name])
        for name in sorted(wanted.keys() - present.keys()):
            self._start(name, wanted[name], body)
        # Not by `put`: a status that is written at once must not be one more change to react to.
        body["status"] = {
            "observedGeneration": body["metadata"]["generation"],
            "updateRevision": "r1",
            "replicas": len(wanted),
        }

    def _start(self, name: str, ordinal: int, statefulset: Json) -> None:
        number = next(self._numbers)
        self._server.put(
            "pods",
            {
                "metadata": {
                    "name": name,
                    "namespace": NAMESPACE,
                    "labels": {"streamapp.dev/app": self._name, "controller-revision-hash": "r1"},
                    "ownerReferences": [{"uid": statefulset["metadata"]["uid"], "controller": True}],
                },
                "spec": {"containers": [{"name": "app"}], "volumes": _volumes(statefulset)},
                "status": {
                    "podIPs": [{"ip": f"10.1.0.{number}"}],
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "containerStatuses": [
                        {
                            "name": "app",
                            "containerID": f"containerd://{number}",
                            "restartCount": 0,
                            "state": {"running": {"startedAt": self._time()}},
                        }
                    ],
                },
            },
        )
        claim = f"state-{name}"
        if self._server.get("persistentvolumeclaims", NAMESPACE, claim) is None:
            made_from = deepcopy(statefulset["spec"]["volumeClaimTemplates"][0])
            self._server.put(
                "persistentvolumeclaims",
                {
                    **made_from,
                    "metadata": {**made_from["metadata"], "name": claim, "namespace": NAMESPACE},
                    "status": {"phase": "Bound"},
                },
            )
        assert ordinal >= 0

    def _end(self, pod: Json) -> None:
        status = pod["status"]["containerStatuses"][0]
        ended = {"containerID": status["containerID"], "finishedAt": self._time(), "reason": "Completed", "exitCode": 0}
        status["state"] = {"terminated": ended}
        self.deleted.append(pod)
        self._server.remove("pods", NAMESPACE, pod["metadata"]["name"])

    def _pods(self) -> dict[str, Json]:
        return {name: stored.body for (plural, _, name), stored in self._server.objects.items() if plural == "pods"}

    def _time(self) -> str:
        return self._now().strftime("%Y-%m-%dT%H:%M:%SZ")


def _volumes(statefulset: Json) -> list[Json]:
    """Those of the template, which a pod keeps for its life."""
    volumes: list[Json] = statefulset.get("spec", {}).get("template", {}).get("spec", {}).get("volumes") or []
    return deepcopy(volumes)
