"""A cluster with an operator in it: its pods, its Lease, its answers behind a port-forward."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web

from streamapp.api.http.build import findings_told, tasks_told
from streamapp.api.http.messages import Answered, OperatorTold, findings_path, tasks_path, with_time
from streamapp.controller.record.reader import RecordHistory
from streamapp.core.doctor.examine import examine
from streamapp.core.doctor.subject import Subject
from streamapp.core.status.task_table import task_table
from streamapp.kube.client.kinds import Key
from tests.builders import NOW, ago
from tests.cli.cluster import NAMESPACE, Cluster
from tests.core.doctor.subjects import with_agents

Json = dict[str, Any]
SYSTEM = "streamapp-system"
LABELS = {"app.kubernetes.io/name": "streamapp-operator"}
HERE = version("streamapp-operator")


def a_pod(name: str, *, ready: bool = True, namespace: str = SYSTEM, lease: str | None = None) -> Json:
    container: Json = {"name": "operator", "image": "op:1"}
    if lease is not None:
        container["env"] = [{"name": "STREAMAPP_LEASE_NAME", "value": lease}]
    return {
        "metadata": {"namespace": namespace, "name": name, "labels": LABELS},
        "spec": {"serviceAccountName": "streamapp-operator", "containers": [container]},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


@dataclass
class OperatorThere:
    """What answers elsewhere than the objects do."""

    cluster: Cluster
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """By path; of the pod that leads."""
    leader: str = "operator-a"
    denied: set[tuple[str, str]] = field(default_factory=set)
    """Resource and verb that the operator may not."""
    versions: tuple[str, ...] = ("v1alpha1",)
    has_keda: bool = False
    metrics: int = 200
    reviewed: list[Json] = field(default_factory=list)
    may_review: bool = True
    forwarded: list[str] = field(default_factory=list)
    """What was asked of pods: `pod:port/path`."""
    record: Path | None = None
    """Folder of the flight record."""
    logs: dict[tuple[str, str, bool], bytes] = field(default_factory=dict)
    """By pod, container and whether it is of the run before."""
    since: list[str] = field(default_factory=list)
    """From when on its history was asked for."""

    def put(self, plural: str, body: Json) -> None:
        """Write an object."""
        self.cluster.do(lambda server: server.put(plural, body))

    def remove(self, plural: str, namespace: str, name: str) -> None:
        """Delete one."""
        self.cluster.do(lambda server: server.remove(plural, namespace, name))

    def install(self, *pods: str, lease: str | None = None, namespace: str = SYSTEM) -> None:
        """Have pods, and a Lease with this holder."""
        for name in pods or ("operator-a", "operator-b"):
            self.put("pods", a_pod(name, namespace=namespace))
        if lease is not None:
            body = {
                "metadata": {"namespace": namespace, "name": "streamapp-operator"},
                "spec": {"holderIdentity": lease},
            }
            self.put("leases", body)

    def rename_lease(self, name: str) -> None:
        """Have the pods stand for a Lease of another name, as the chart's do where its release has one."""
        held = self.cluster.do(lambda server: server.get("leases", SYSTEM, "streamapp-operator"))
        assert held is not None
        self.remove("leases", SYSTEM, "streamapp-operator")
        self.put("leases", {"metadata": {"namespace": SYSTEM, "name": name}, "spec": held["spec"]})
        for pod in ("operator-a", "operator-b"):
            self.remove("pods", SYSTEM, pod)
            self.put("pods", a_pod(pod, lease=name))

    def policies(self) -> None:
        """Have an admission policy of the chart's."""
        body = {"metadata": {"namespace": "", "name": "streamapp-scaling", "labels": LABELS}}
        self.put("validatingadmissionpolicies", body)

    def tell(self, path: str, told: Answered) -> None:
        """Answer so."""
        self.answers[path] = (200, with_time(told.as_json(), NOW))

    def tell_of(self, subject: Subject, name: str = "wordcount", *, age: float = 2.0) -> None:
        """Answer of this application as the operator would."""
        at = ago(age)
        table = task_table(subject.snapshot, subject.policy)
        self.tell(tasks_path(NAMESPACE, name), tasks_told(NAMESPACE, name, table, as_of=at))
        self.tell(findings_path(NAMESPACE, name), findings_told(NAMESPACE, name, examine(subject), as_of=at))

    def serve(self) -> None:
        """Stand in."""
        operator = OperatorTold(release=HERE, instance=self.leader, leads=True, agent_key=True)
        self.tell("/v1/operator", operator)
        self.tell_of(replace(with_agents()))
        self.cluster.do(lambda server: setattr(server, "elsewhere", self._elsewhere))
        self.cluster.do(lambda server: setattr(server, "forwarded", self._forwarded))

    def _elsewhere(self, request: web.Request, body: Json) -> web.Response | None:
        if request.path.startswith("/apis/") and (found := self._discovered(request.path)) is not None:
            return found
        if request.path.endswith("/subjectaccessreviews"):
            return self._review(body)
        if request.path.endswith("/log"):
            return self._log(request)
        return None

    def _discovered(self, path: str) -> web.Response | None:
        if path == "/apis/streamapp.dev":
            if not self.versions:
                return web.json_response({"message": "404 page not found"}, status=404)
            return web.json_response({"versions": [{"version": one} for one in self.versions]})
        if path == "/apis/metrics.k8s.io/v1beta1":
            return web.json_response({"resources": [{"name": "pods"}], "message": "no endpoints"}, status=self.metrics)
        if path == "/apis/keda.sh/v1alpha1" and self.has_keda:
            return web.json_response({"resources": [{"name": "scaledobjects"}]})
        return None

    def _log(self, request: web.Request) -> web.Response:
        pod, asked = request.path.split("/")[-2], request.query
        log = self.logs.get((pod, asked["container"], asked["previous"] == "true"))
        if log is None:
            return web.json_response({"message": f'pods "{pod}" is forbidden: no get on pods/log'}, status=403)
        newest = log.splitlines(keepends=True)[-int(asked["tailLines"]) :]
        return web.Response(body=b"".join(newest))

    def _review(self, body: Json) -> web.Response:
        if not self.may_review:
            return web.json_response({"message": "cannot create subjectaccessreviews"}, status=403)
        self.reviewed.append(body["spec"])
        asked = body["spec"]["resourceAttributes"]
        what = "/".join(asked[part] for part in ("resource", "subresource") if part in asked)
        return web.json_response({"status": {"allowed": (what, asked["verb"]) not in self.denied}})

    def _forwarded(self, pod: str, port: str, asked: str) -> tuple[int, bytes] | str:
        path, _, query = asked.partition("?")
        self.forwarded.append(f"{pod}:{port}{path}")
        if pod != self.leader:
            return 503, b"this replica of the operator does not lead"
        if path.endswith("/history") and path not in self.answers:
            return self._history(path.split("/"), dict(parse_qsl(query)).get("since", ""))
        return self.answers.get(path, (404, b"StreamApp x: this operator does not know it"))

    def _history(self, path: list[str], since: str) -> tuple[int, bytes]:
        """The operator's own answer, from files."""
        self.since.append(since)
        *_, namespace, name, _ = path
        history = RecordHistory(self.record, lambda: True)
        with ThreadPoolExecutor(1) as pool:
            told = pool.submit(lambda: asyncio.run(history.about(Key(namespace, name), since))).result()
        return told.status, told.body.encode()


def that_tells_of(cluster: Cluster, subject: Subject) -> OperatorThere:
    """An operator whose leader answers, and has examined this application."""
    operator = OperatorThere(cluster)
    operator.install(lease="operator-a_x7k2")
    operator.serve()
    operator.tell_of(subject)
    return operator
