"""Adoption on a real API server, with the real controllers of StatefulSets and owners, the chart's policies and roles.

The operator is a real process under the name of its service account. The user has the cluster role `edit` and the
chart's. No kubelet: the test says that pods are ready, so that their containers are tests/lab/test_78_adoption.py's.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.matrix.processes import free_ports, started
from tests.chart.api_server import ApiServer, running
from tests.chart.rendering import render
from tests.tenants.brokers import (
    API_VERSIONS,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    HostileBroker,
    api_versions,
    crowded_group,
    itself_as_coordinator,
)

pytestmark = [pytest.mark.chart, pytest.mark.timeout(240)]

Json = dict[str, Any]
OPERATOR = "system:serviceaccount:streamapp-system:streamapp-operator"
KINDS = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ClusterRole")
PLACE = "shop"
ROLES = ("system:aggregate-to-edit", "system:aggregate-to-view", "streamapp-operator-edit", "streamapp-operator-view")
"""What the cluster role `edit` is made of, with the chart; the controller that adds them up does not run here."""
SETTLED_SECONDS = 3.0
"""In which the controller would have deleted a pod of another template."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Give an API server with the definition, the policies and a user; and a StatefulSet that runs."""
    with running(tmp_path_factory.mktemp("api")) as one, one.controllers():
        made = render({}).objects
        one.apply(*(each for each in made if each["kind"] == "CustomResourceDefinition"))
        one.apply(*(each for each in made if each["kind"] in KINDS), *roles())
        yield one


def roles() -> Iterator[Json]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}}
    for role in ROLES:
        yield {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": role.replace(":", "-"), "namespace": PLACE},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
        }


@dataclass(frozen=True)
class App:
    """A StatefulSet with three pods, its brokers, and the user who works on it."""

    server: ApiServer
    name: str
    broker: str
    user: Path
    """The kubeconfig."""

    @property
    def labels(self) -> dict[str, str]:
        """By which it finds its pods."""
        return {"app": self.name}

    def start(self) -> None:
        """Have three pods that are ready, and claims whose processes are known: no member is in the group."""
        self.server.apply(*self.workload())
        until("three pods are ready", self.has_ready_pods)
        for ordinal in range(3):
            mark = f"streamapp.dev/process-id=00000000-0000-0000-0000-00000000000{ordinal}"
            self.run("annotate", "pvc", f"datadir-{self.name}-{ordinal}", mark)

    def workload(self) -> list[Json]:
        """As a user writes it, with Kubernetes' own defaults."""
        env = {"APPLICATION_ID": self.name, "BOOTSTRAP_SERVERS": self.broker, "STREAMS_NUM_STANDBY_REPLICAS": "1"}
        container = {
            "name": "app",
            "image": "app:1",
            "env": [{"name": name, "value": value} for name, value in env.items()],
            "volumeMounts": [{"name": "datadir", "mountPath": "/state"}],
        }
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        metadata = {"name": self.name, "namespace": PLACE}
        spec = {
            "replicas": 3,
            "serviceName": self.name,
            "selector": {"matchLabels": self.labels},
            "template": {"metadata": {"labels": self.labels}, "spec": {"containers": [container]}},
            "volumeClaimTemplates": [{"metadata": {"name": "datadir"}, "spec": claim}],
        }
        service = {"clusterIP": "None", "selector": self.labels, "ports": [{"name": "http", "port": 80}]}
        return [
            {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec},
        ]

    def run(self, *arguments: str) -> str:
        """Run kubectl as an administrator."""
        done = self.server.run(*arguments, "--namespace", PLACE)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def get(self, kind: str) -> Json:
        """An object of its name."""
        found: Json = json.loads(self.run("get", kind, self.name, "--output=json"))
        return found

    def pods(self) -> list[Json]:
        """Its pods, whoever owns them."""
        found: list[Json] = json.loads(self.run("get", "pods", f"--selector=app={self.name}", "--output=json"))["items"]
        return found

    def uids(self) -> dict[str, str]:
        """Which pods they are."""
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self.pods()}

    def owners(self) -> set[str]:
        """The UIDs of the owners of its pods."""
        return {owner["uid"] for pod in self.pods() for owner in pod["metadata"]["ownerReferences"]}

    def has_ready_pods(self) -> bool:
        """Say of each pod that it is ready, as a kubelet would; whether there are three."""
        ready = json.dumps({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
        for name in self.uids():
            self.run("patch", "pod", name, "--subresource=status", f"--patch={ready}")
        return bool(self.get("statefulset").get("status", {}).get("readyReplicas") == 3)

    def refusal_to_scale_down(self) -> str:
        """Why a user cannot lower the replicas; empty if nothing is in the way."""
        who = ("--as=bob", "--as-group=system:masters", "--dry-run=server")
        done = self.server.run("scale", f"statefulset/{self.name}", "--namespace", PLACE, "--replicas=2", *who)
        return done.stderr

    async def streamapp(self, *arguments: str) -> tuple[int, str]:
        """Run the command as the user; give its exit code and its standard output."""
        command = (sys.executable, "-m", "streamapp.cli", *arguments, "--namespace", PLACE)
        environment = {**os.environ, "KUBECONFIG": str(self.user)}
        pipe = asyncio.subprocess.PIPE
        ran = await asyncio.create_subprocess_exec(*command, env=environment, stdout=pipe, stderr=pipe)
        out, err = await asyncio.wait_for(ran.communicate(), 200)
        print(f"$ kubectl streamapp {' '.join(arguments)}\n{err.decode()}{out.decode()}[{ran.returncode}]")  # noqa: T201
        return int(ran.returncode or 0), out.decode()


def until(what: str, holds: Callable[[], bool], seconds: float = 60) -> None:
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, what
        time.sleep(0.3)


@asynccontextmanager
async def an_app(server: ApiServer, name: str, folder: Path) -> AsyncIterator[App]:
    """Have a StatefulSet with three pods, and an operator that sees its group."""
    answers = {
        API_VERSIONS: api_versions,
        FIND_COORDINATOR: itself_as_coordinator(name),
        DESCRIBE_GROUPS: crowded_group(name, 0),
    }
    config = server.kubeconfig_for(OPERATOR, "system:masters")
    images = {"STREAMAPP_SEED_IMAGE": "seed:1", "STREAMAPP_AGENT_IMAGE": "agent:1"}
    environment = {"KUBECONFIG": str(config), "STREAMAPP_PORT": str(free_ports(1)[0]), **images}
    command = [sys.executable, "-m", "streamapp"]
    async with HostileBroker(answers).running() as broker:
        app = App(server, name, broker.address, server.kubeconfig_for("alice"))
        await asyncio.to_thread(app.start)
        with started("operator", command, environment, folder / "operator.log"):
            yield app


def test_a_user_with_edit_adopts_and_disowns_and_no_pod_is_made_anew(server: ApiServer, tmp_path: Path) -> None:
    async def main() -> None:
        async with an_app(server, "orders", tmp_path) as app:
            await there_and_back(app)

    asyncio.run(main())


async def there_and_back(app: App) -> None:
    before, old = app.uids(), app.get("statefulset")
    assert (await app.streamapp("adopt", "statefulset/orders", "--yes"))[0] == 0
    adopted = app.get("statefulset")
    assert (app.uids(), app.owners()) == (before, {adopted["metadata"]["uid"]})
    assert adopted["metadata"]["uid"] != old["metadata"]["uid"]
    assert adopted["spec"]["selector"] == {"matchLabels": {"streamapp.dev/app": "orders"}}
    assert adopted["spec"]["podManagementPolicy"] == "Parallel"
    assert app.get("service")["spec"]["ports"][0]["port"] == 80
    await asyncio.to_thread(until, "the budget is there", lambda: "orders" in app.run("get", "pdb", "--output=name"))
    assert "belongs to a StreamApp" in app.refusal_to_scale_down()

    assert (await app.streamapp("disown", "orders", "--yes"))[0] == 0
    free = app.get("statefulset")
    assert (app.uids(), app.owners()) == (before, {free["metadata"]["uid"]})
    for field in ("selector", "serviceName", "podManagementPolicy", "template", "replicas"):
        assert free["spec"][field] == old["spec"][field], field
    assert (app.run("get", "streamapps", "--output=name"), app.refusal_to_scale_down()) == ("", "")
    for kind, selector in (("service", app.labels), ("pdb", {"matchLabels": app.labels})):
        found = app.get(kind)
        assert (found["spec"]["selector"], "ownerReferences" in found["metadata"]) == (selector, False)


def test_half_an_adoption_is_taken_back_and_the_update_strategy_restarts_no_pod(
    server: ApiServer, tmp_path: Path
) -> None:
    """All writes but the deletion are made by hand, as a run that was cut off leaves them."""

    async def main() -> None:
        async with an_app(server, "words", tmp_path) as app:
            before, old = app.uids(), app.get("statefulset")
            _, manifest = await app.streamapp("adopt", "statefulset/words", "--dry-run")
            label: Json = {"metadata": {"labels": {"streamapp.dev/app": "words"}}}
            strategy = {"type": "OnDelete", "rollingUpdate": None}
            patch = {**label, "spec": {"updateStrategy": strategy, "template": label}}
            assert server.run("apply", "--filename=-", stdin=manifest).returncode == 0
            app.run("patch", "statefulset", "words", "--type=merge", f"--patch={json.dumps(patch)}")
            app.run("label", "pods", "--selector=app=words", "streamapp.dev/app=words")
            assert (await app.streamapp("disown", "words", "--yes"))[0] == 0
            await asyncio.sleep(SETTLED_SECONDS)
            assert (app.uids(), app.owners()) == (before, {old["metadata"]["uid"]})
            now = app.get("statefulset")
            assert (now["spec"], now["metadata"]["uid"]) == (old["spec"], old["metadata"]["uid"])
            assert app.run("get", "streamapps", "--output=name") == ""

    asyncio.run(main())
