"""Insight on a real API server: the job's account writes it with the chart's rights, and no upgrade takes it away."""

import json
import shlex
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from streamapp.analytics.errors import AnalyticsError
from streamapp.analytics.insight.destination import Destination
from streamapp.analytics.insight.publication import Publication, publish
from streamapp.api.insight import FILE, Advice, AppInsight, Insight, Patch
from streamapp.cli.__main__ import main
from tests.chart.api_server import ApiServer, running
from tests.chart.rendering import CHART, NAMESPACE, REGISTRY, Json, helm
from tests.streamapps import written

pytestmark = [pytest.mark.chart, pytest.mark.timeout(600)]

JOB = f"system:serviceaccount:{NAMESPACE}:streamapp-operator-analytics"
DESTINATION = Destination(NAMESPACE, "streamapp-insight", "north")
NOW = datetime.now(UTC)
PIECE = Advice(
    knob="acceptableRecoveryLag",
    current="10,000",
    proposed="50,000",
    evidence="7 scale-downs waited",
    days=28,
    n=7,
    patch=Patch(kind="StreamApp", name="wordcount", patch='{"spec": {"learners": {"acceptableRecoveryLag": 50000}}}'),
)


def insight(minutes_ago: float, *apps: AppInsight) -> Insight:
    made = NOW - timedelta(minutes=minutes_ago)
    return Insight(cluster="north", made_at=made, valid_until=made + timedelta(days=3), apps=apps)


def installed(server: ApiServer, major: int, **more: Json) -> None:
    """Install the chart, or upgrade what is installed."""
    values: Json = {
        "images": {"registry": REGISTRY},
        "clusterName": "north",
        "analytics": {"enabled": True, "tables": {"existingClaim": "tables"}},
        "record": {"kafka": {"bootstrapServers": "a:9092"}},
        **more,
    }
    place = [f"--namespace={NAMESPACE}", f"--kubeconfig={server.kubeconfig}", "--create-namespace", "--values=-"]
    command = [str(helm(major)), "upgrade", "--install", "streamapp-operator", str(CHART), *place]
    ran = subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr


def as_job(server: ApiServer) -> str:
    """A kubeconfig with a token of the job's account, as its pod has one."""
    made = server.run("create", "token", "streamapp-operator-analytics", f"--namespace={NAMESPACE}")
    assert made.returncode == 0, made.stderr
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": made.stdout.strip()}
    path = server.kubeconfig.parent / "job.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return str(path)


def there(server: ApiServer, name: str = "streamapp-insight") -> Json:
    ran = server.run("get", "configmap", name, f"--namespace={NAMESPACE}", "--output=json")
    assert ran.returncode == 0, ran.stderr
    found: Json = json.loads(ran.stdout)
    return found


def empty(server: ApiServer) -> None:
    patch = ("--type=merge", "--patch", '{"data": null}')
    ran = server.run("patch", "configmap", "streamapp-insight", f"--namespace={NAMESPACE}", *patch)
    assert ran.returncode == 0, ran.stderr


def may(server: ApiServer, verb: str, resource: str) -> bool:
    asked = server.run("auth", "can-i", verb, resource, f"--namespace={NAMESPACE}", f"--as={JOB}")
    return asked.stdout.strip() == "yes"


@pytest.fixture(scope="module", params=[4, 3], ids=["helm 4", "helm 3"])
def major(request: pytest.FixtureRequest) -> int:
    version: int = request.param
    return version


@pytest.fixture(scope="module")
def server(major: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with running(tmp_path_factory.mktemp(f"api-{major}")) as one:
        installed(one, major)
        yield one


def test_the_job_writes_insight_that_an_upgrade_keeps(
    server: ApiServer, major: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty(server)
    monkeypatch.setenv("KUBECONFIG", as_job(server))
    assert publish([insight(30)], DESTINATION) is Publication.WRITTEN
    before = there(server)["data"]
    assert publish([insight(60)], DESTINATION) is Publication.OVERTAKEN
    installed(server, major, labels={"team": "data"})
    after = there(server)
    assert (after["metadata"]["labels"]["team"], after["data"]) == ("data", before)
    assert publish([insight(20)], DESTINATION) is Publication.WRITTEN
    assert there(server)["data"] != before


def test_the_job_has_no_other_right(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = {
        (verb, resource)
        for verb in ("get", "list", "watch", "create", "update", "patch", "delete")
        for resource in ("configmap/streamapp-insight", "configmaps", "secrets", "pods", "streamapps.streamapp.dev")
        if may(server, verb, resource)
    }
    assert allowed == {("get", "configmap/streamapp-insight"), ("patch", "configmap/streamapp-insight")}
    monkeypatch.setenv("KUBECONFIG", as_job(server))
    with pytest.raises(AnalyticsError, match="configmaps"):
        publish([insight(10)], Destination(NAMESPACE, "another", "north"))


def test_one_that_a_person_made_is_written_to_and_stays_that_persons(
    server: ApiServer, major: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    body: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": NAMESPACE}}
    server.apply({**body, "data": {"note": "kept"}})
    installed(server, major, insight={"configMap": "mine"})
    monkeypatch.setenv("KUBECONFIG", as_job(server))
    assert publish([insight(5)], Destination(NAMESPACE, "mine", "north")) is Publication.WRITTEN
    installed(server, major)
    found = there(server, "mine")
    assert sorted(found["data"]) == [FILE, "note"]
    assert "meta.helm.sh/release-name" not in found["metadata"].get("annotations", {})


def test_a_person_with_the_role_for_diagnosis_reads_the_advice(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    empty(server)
    server.apply({**written(), "metadata": {"name": "wordcount", "namespace": "default"}})
    made = json.loads(server.run("get", "streamapp", "wordcount", "--output=json").stdout)["metadata"]
    app = AppInsight(namespace="default", app="wordcount", uid=made["uid"], days=28, advice=(PIECE,))
    monkeypatch.setenv("KUBECONFIG", as_job(server))
    assert publish([insight(1, app)], DESTINATION) is Publication.WRITTEN

    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig_for("maria")))
    assert main(["advise", "wordcount"]) == 1
    assert "cannot" in capsys.readouterr().err
    for name, namespace, kind in (("view", "default", "ClusterRole"), ("diagnosis", NAMESPACE, "Role")):
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": f"streamapp-operator-{name}"}
        server.apply(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": {"name": f"maria-{name}", "namespace": namespace},
                "roleRef": role,
                "subjects": [{"kind": "User", "name": "maria", "apiGroup": "rbac.authorization.k8s.io"}],
            }
        )
    assert main(["advise", "wordcount"]) == 0
    out = capsys.readouterr().out
    assert "1. acceptableRecoveryLag: 10,000 → 50,000" in out
    (command,) = [line.strip() for line in out.splitlines() if "kubectl patch" in line]
    patched = server.run(*shlex.split(command)[1:])
    assert patched.returncode == 0, patched.stderr
    limit = server.run("get", "streamapp", "wordcount", "--output=jsonpath={.spec.learners.acceptableRecoveryLag}")
    assert limit.stdout == "50000"
