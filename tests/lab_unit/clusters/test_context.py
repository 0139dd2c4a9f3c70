"""A cluster of the user's own: what is written to it, and that it stays the one that was allowed."""

import json
import os
import socket
import sys
from pathlib import Path

import pytest

from lab.clusters import broker, context
from lab.clusters.cluster import SESSION, Session, is_session
from lab.clusters.context import ContextCluster, require_free
from lab.clusters.kubectl import Kubectl
from lab.errors import LabError
from tests.lab_unit.stand_ins import StandIns

WRITES = {"apply", "create", "delete", "label", "patch", "scale"}


def _two_contexts(folder: Path, current: str) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": n, "cluster": {"server": f"https://{n}.invalid"}} for n in ("dev", "production")],
        "users": [{"name": n, "user": {"token": f"of-{n}"}} for n in ("dev", "production")],
        "contexts": [{"name": n, "context": {"cluster": n, "user": n}} for n in ("dev", "production")],
        "current-context": current,
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(content))
    return path


def test_the_context_that_was_checked_stays_though_the_user_switches_meanwhile(tmp_path: Path, kubectl: Path) -> None:
    environment = {
        "PATH": f"{kubectl.parent}:{os.environ['PATH']}",
        "KUBECONFIG": str(_two_contexts(tmp_path, "dev")),
        "STREAMAPP_LAB_CONTEXTS": "dev",
    }
    with ContextCluster(environment)._pinned() as session:
        _two_contexts(tmp_path, "production")
        pinned = Path(session.environment["KUBECONFIG"])
        seen = Kubectl(session).json("config", "view", "--raw")
        assert pinned.stat().st_mode & 0o777 == 0o600
        assert seen["current-context"] == "dev"
        assert [each["cluster"]["server"] for each in seen["clusters"]] == ["https://dev.invalid"]
        assert [each["user"]["token"] for each in seen["users"]] == ["of-dev"]
        assert is_session(session.environment)
    assert not pinned.exists()


def test_no_context_at_all_is_not_allowed_by_an_empty_list() -> None:
    with pytest.raises(LabError, match="not on the allow-list"):
        context.check_allowed("", "")


def _cluster_with(stand_ins: StandIns, *existing: str, marked: tuple[str, ...] = ()) -> ContextCluster:
    """Stand in for kubectl before a cluster with these namespaces, some of them with the lab's label."""
    there = "\n".join(f'  *"namespace {name} "*) echo namespace/{name};;' for name in existing)
    labelled = "\n".join(f'  *"metadata.name={name} "*) echo namespace/{name};;' for name in marked)
    stand_ins.put(
        "kubectl",
        f'case "$*" in\n  "config current-context") echo mine;;\n  *" --selector="*) case "$*" in\n{labelled}\n'
        f"  esac;;\n{there}\nesac",
    )
    return ContextCluster({"PATH": stand_ins.path, "STREAMAPP_LAB_CONTEXTS": "mine"})


def _written(stand_ins: StandIns) -> list[str]:
    return [call for call in stand_ins.calls() if call.split()[1] in WRITES]


@pytest.fixture(autouse=True)
def _path(stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch) -> None:
    # A program is looked for in the PATH of the caller, also where the child gets an environment of its own.
    monkeypatch.setenv("PATH", stand_ins.path)


@pytest.mark.parametrize("taken", ["kafka", "demo"])
@pytest.mark.parametrize("deed", ["up", "ensure_up", "down"])
def test_a_namespace_that_the_lab_did_not_make_is_refused_before_anything_is_written(
    stand_ins: StandIns, taken: str, deed: str
) -> None:
    other = {"kafka": "demo", "demo": "kafka"}[taken]
    cluster = _cluster_with(stand_ins, taken, other, marked=(other,))
    with pytest.raises(LabError) as raised:
        getattr(cluster, deed)()
    assert raised.value.what == f"namespace {taken}: not the lab's"
    assert "app.kubernetes.io/managed-by=streamapp-lab" in raised.value.why
    assert raised.value.next_step.endswith(
        f"kubectl label namespace {taken} app.kubernetes.io/managed-by=streamapp-lab"
    )
    assert _written(stand_ins) == []


def test_the_brokers_deployment_refuses_on_every_cluster(stand_ins: StandIns) -> None:
    _cluster_with(stand_ins, "kafka")
    with pytest.raises(LabError, match="namespace kafka: not the lab's"):
        broker.deploy(Kubectl(Session((), dict(os.environ))))
    assert _written(stand_ins) == []


def test_namespaces_of_the_lab_are_deleted(stand_ins: StandIns) -> None:
    _cluster_with(stand_ins, "kafka", "demo", marked=("kafka", "demo")).down()
    assert _written(stand_ins) == ["kubectl delete namespace --ignore-not-found demo kafka"]


def test_a_second_up_is_refused_and_reuse_deploys_anew(stand_ins: StandIns) -> None:
    cluster = _cluster_with(stand_ins, "kafka", marked=("kafka",))
    with pytest.raises(LabError) as raised:
        cluster.up()
    assert raised.value.what == "broker of the lab: up already"
    assert _written(stand_ins) == []
    cluster.ensure_up()
    assert [call.split()[1] for call in _written(stand_ins)] == ["apply"]


def test_nothing_is_built_and_that_is_said(stand_ins: StandIns, capsys: pytest.CaptureFixture[str]) -> None:
    _cluster_with(stand_ins).build()
    assert "nothing to build" in capsys.readouterr().err
    assert stand_ins.calls() == []


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> int:
    """Take a port that is free instead of the one that the broker advertises."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        free: int = server.getsockname()[1]
    monkeypatch.setattr(context, "EXTERNAL_BOOTSTRAP", f"localhost:{free}")
    monkeypatch.setattr(context, "_FORWARD_DEADLINE_SECONDS", 3.0)
    return free


@pytest.fixture
def session(stand_ins: StandIns) -> Session:
    """Give a session with the stand-ins."""
    return Session((), {"PATH": stand_ins.path})


# Listens like kubectl: says what the first argument is, complains at length, takes connections until it is ended.
_LISTEN = """
import socket, sys, time
sys.stderr.write("E error copying from remote stream\\n" * 20_000)
with socket.create_server(("127.0.0.1", int(sys.argv[1]))):
    print(sys.argv[2], flush=True)
    time.sleep(60)
"""


def _listener(stand_ins: StandIns, port: int, word: str) -> None:
    (stand_ins.folder / "listen.py").write_text(_LISTEN)
    stand_ins.put("kubectl", f"exec {sys.executable} {stand_ins.folder}/listen.py {port} '{word}'")


def test_a_forward_that_complains_at_length_goes_on(stand_ins: StandIns, session: Session, port: int) -> None:
    _listener(stand_ins, port, f"Forwarding from 127.0.0.1:{port} -> 9094")
    with context._forwarded(session):
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    require_free(port)
    assert stand_ins.calls() == [f"kubectl port-forward --namespace kafka service/kafka-external {port}:9094"]


def test_a_listener_that_does_not_say_that_it_forwards_is_not_believed(
    stand_ins: StandIns, session: Session, port: int
) -> None:
    _listener(stand_ins, port, "Hello")
    with pytest.raises(LabError, match="broker: not reachable from here"), context._forwarded(session):
        pass
    require_free(port)


@pytest.mark.usefixtures("port")
def test_a_forward_that_ends_gives_its_own_words(stand_ins: StandIns, session: Session) -> None:
    stand_ins.put("kubectl", "echo 'services \"kafka-external\" not found' >&2; exit 1")
    with pytest.raises(LabError) as raised, context._forwarded(session):
        pass
    assert raised.value.why == 'services "kafka-external" not found'


def test_a_port_that_somebody_listens_on_is_refused(stand_ins: StandIns, session: Session, port: int) -> None:
    stand_ins.put("kubectl")
    with (
        socket.create_server(("127.0.0.1", port)),
        pytest.raises(LabError) as raised,
        context._forwarded(session),
    ):
        pass
    assert raised.value.what == f"port {port} of this machine: in use"
    assert stand_ins.calls() == []


@pytest.mark.parametrize(
    ("environment", "inside"),
    [
        ({}, False),
        ({"KUBECONFIG": "/a"}, False),
        ({"KUBECONFIG": "/a", SESSION: "/a"}, True),
        ({"KUBECONFIG": "/elsewhere", SESSION: "/a"}, False),
        ({SESSION: "/a"}, False),
    ],
)
def test_a_session_is_left_by_whoever_takes_another_kubeconfig(environment: dict[str, str], inside: bool) -> None:
    assert is_session(environment) is inside
