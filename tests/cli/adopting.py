"""A cluster with a plain StatefulSet, and what acts on it: Kubernetes' controller and the operator, each in small.

Both only react to what is stored, as the real ones do; tests/lab/test_78_adoption.py plays the real ones.
"""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from streamapp.api.names import APP_LABEL, OPERATOR_LABEL, PROCESS_ID
from tests.cli.cluster import NAMESPACE, Cluster
from tests.kube.api_server import ApiServer

Json = dict[str, Any]
NAME = "counter"
LABELS = {"app.kubernetes.io/name": "counter"}
CONTAINER: Json = {
    "name": "app",
    "image": "counter:1",
    "env": [
        {"name": "APPLICATION_ID", "value": "counter-eu"},
        {"name": "BOOTSTRAP_SERVERS", "value": "kafka:9092"},
        {"name": "STATE_DIR", "value": "/state"},
        {"name": "STREAMS_NUM_STANDBY_REPLICAS", "value": "1"},
    ],
    "volumeMounts": [{"name": "datadir", "mountPath": "/state"}],
}


def a_statefulset() -> Json:
    """As a user wrote it, three pods."""
    return {
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": LABELS},
        "spec": {
            "replicas": 3,
            "serviceName": NAME,
            "selector": {"matchLabels": LABELS},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}},
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "datadir"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
                }
            ],
        },
    }


def a_pod(ordinal: int, revision: str) -> Json:
    """One that runs."""
    name = f"{NAME}-{ordinal}"
    claim = {"name": "datadir", "persistentVolumeClaim": {"claimName": f"datadir-{name}"}}
    return {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {**LABELS, "controller-revision-hash": revision},
        },
        "spec": {"containers": [CONTAINER], "volumes": [claim]},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "app", "restartCount": 0}],
        },
    }


@dataclass
class World:
    """The cluster, and what its two controllers do."""

    cluster: Cluster
    operator_runs: bool = True
    kafka: str = "True"
    records: bool = True
    """Whether it learns the process IDs."""
    denied: set[tuple[str, str]] = field(default_factory=set)
    """Verb and plural that the user has no right to."""
    made: list[Json] = field(default_factory=list)
    """Specifications of the StatefulSets that the operator made."""
    _pending: bool = False

    def start(self, changes: Any = None) -> "World":
        """Put everything in place; `changes` alters the StatefulSet before."""
        self.cluster.do(self._listen)
        body = a_statefulset()
        if changes is not None:
            changes(body)
        self.cluster.do(lambda server: self._put_all(server, body))
        return self

    def put(self, plural: str, body: Json) -> Json:
        """Write an object as somebody else would."""
        metadata = {"namespace": NAMESPACE, **body["metadata"]}
        return self.cluster.do(lambda server: server.put(plural, {**body, "metadata": metadata}))

    def get(self, plural: str, name: str = NAME) -> Json:
        """An object as it is."""
        found = self.cluster.do(lambda server: server.get(plural, NAMESPACE, name))
        assert found is not None, f"{plural} {name} is gone"
        return found

    def has(self, plural: str, name: str = NAME) -> bool:
        """Whether it is there."""
        return self.cluster.do(lambda server: server.get(plural, NAMESPACE, name)) is not None

    def pods(self) -> dict[str, Json]:
        """The pods by name."""
        return {f"{NAME}-{ordinal}": self.get("pods", f"{NAME}-{ordinal}") for ordinal in range(3)}

    def uids(self) -> dict[str, str]:
        """Which pods they are."""
        return {name: pod["metadata"]["uid"] for name, pod in self.pods().items()}

    def owners(self, plural: str, name: str = NAME) -> list[tuple[str, str]]:
        """Kind and UID of the owners."""
        return [(one["kind"], one["uid"]) for one in self.get(plural, name)["metadata"].get("ownerReferences") or []]

    def _listen(self, server: ApiServer) -> None:
        server.elsewhere = self._review
        server.changed.append(lambda *_: self._soon(server))

    def _put_all(self, server: ApiServer, body: Json) -> None:
        made = server.put("statefulsets", body)
        for ordinal in range(body["spec"]["replicas"]):
            server.put("pods", a_pod(ordinal, revision_of(made)))
            name = f"datadir-{NAME}-{ordinal}"
            server.put("persistentvolumeclaims", {"metadata": {"name": name, "namespace": NAMESPACE}})
        service = {"clusterIP": "None", "selector": LABELS}
        server.put("services", {"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": service})

    def _review(self, request: web.Request, body: Json) -> web.Response | None:
        if not request.path.endswith("selfsubjectaccessreviews"):
            return None
        asked = body["spec"]["resourceAttributes"]
        allowed = (asked["verb"], asked["resource"]) not in self.denied
        return web.json_response({"status": {"allowed": allowed}})

    def _soon(self, server: ApiServer) -> None:
        if not self._pending:
            self._pending = True
            asyncio.get_running_loop().call_soon(self._act, server)

    def _act(self, server: ApiServer) -> None:
        self._pending = False
        if self.operator_runs:
            self._operate(server)
        self._control(server)

    def _control(self, server: ApiServer) -> None:
        """Kubernetes' own controller: sees the newest template, and takes the pods that its selector matches."""
        body = server.get("statefulsets", NAMESPACE, NAME)
        if body is None or "deletionTimestamp" in body["metadata"]:
            return
        status = {"observedGeneration": body["metadata"]["generation"], "updateRevision": revision_of(body)}
        if body.get("status") != status:
            body = server.put("statefulsets", {**body, "status": status})
        wanted = body["spec"]["selector"]["matchLabels"]
        for ordinal in range(body["spec"]["replicas"]):
            pod = server.get("pods", NAMESPACE, f"{NAME}-{ordinal}")
            if pod is None or pod["metadata"].get("ownerReferences"):
                continue
            if wanted.items() <= pod["metadata"]["labels"].items():
                owner = {"kind": "StatefulSet", "name": NAME, "uid": body["metadata"]["uid"], "controller": True}
                server.put("pods", {**pod, "metadata": {**pod["metadata"], "ownerReferences": [owner]}})

    def _operate(self, server: ApiServer) -> None:
        """The operator: says what it finds, and makes a StatefulSet where there is none."""
        app = server.get("streamapps", NAMESPACE, NAME)
        if app is None:
            return
        body, uid = server.get("statefulsets", NAMESPACE, NAME), app["metadata"]["uid"]
        is_paused = app["spec"].get("paused", False)
        if body is None and not is_paused:
            pods = [server.get("pods", NAMESPACE, f"{NAME}-{ordinal}") for ordinal in range(9)]
            highest = max((number + 1 for number, pod in enumerate(pods) if pod is not None), default=0)
            self._make(server, app, max(app["spec"]["replicas"], highest))
            return
        owners = [] if body is None else body["metadata"].get("ownerReferences") or []
        is_foreign = body is not None and [owner["uid"] for owner in owners] != [uid]
        stalled = ("True", "ForeignStatefulSet") if is_foreign else ("False", "Steady")
        if not is_foreign and body is not None and self.records:
            self._record(server)
        status = {
            "observedGeneration": app["metadata"]["generation"],
            "conditions": [
                {"type": "Stalled", "status": stalled[0], "reason": stalled[1], "message": "m"},
                {"type": "KafkaReachable", "status": self.kafka, "reason": "r", "message": "no broker answers"},
            ],
        }
        if app.get("status") != status:
            server.put("streamapps", {**app, "status": status})

    def _record(self, server: ApiServer) -> None:
        for ordinal in range(3):
            claim = server.get("persistentvolumeclaims", NAMESPACE, f"datadir-{NAME}-{ordinal}")
            if claim is not None and "annotations" not in claim["metadata"]:
                metadata = {**claim["metadata"], "annotations": {PROCESS_ID: str(ordinal)}}
                server.put("persistentvolumeclaims", {**claim, "metadata": metadata})

    def _make(self, server: ApiServer, app: Json, replicas: int) -> None:
        labels = {APP_LABEL: NAME, OPERATOR_LABEL: "streamapp-operator"}
        owner = {"kind": "StreamApp", "name": NAME, "uid": app["metadata"]["uid"], "controller": True}
        metadata = {"name": NAME, "namespace": NAMESPACE, "labels": labels, "ownerReferences": [owner]}
        spec = {
            "replicas": replicas,
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": {APP_LABEL: NAME}},
            "template": {**app["spec"]["template"], "metadata": {"labels": {**LABELS, APP_LABEL: NAME}}},
        }
        self.made.append(spec)
        server.put("statefulsets", {"metadata": metadata, "spec": spec})
        service = {"clusterIP": "None", "selector": {APP_LABEL: NAME}}
        server.put("services", {"metadata": metadata, "spec": service})
        budget = {"maxUnavailable": 1, "selector": {"matchLabels": {APP_LABEL: NAME}}}
        server.put("poddisruptionbudgets", {"metadata": metadata, "spec": budget})


def revision_of(statefulset: Json) -> str:
    """A name for the template, the same for the same template."""
    return f"{NAME}-{abs(hash(json.dumps(statefulset['spec']['template'], sort_keys=True))) % 10**8}"
