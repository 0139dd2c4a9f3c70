"""`python -m streamapp check`, before an API server that knows rights, the definition and readiness."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.settings import REPOSITORY
from streamapp.controller import permission_check
from streamapp.kube.objects.rights import RIGHTS

ASKED = sum(len(right.verbs) for right in RIGHTS)


@dataclass
class Rights:
    """What the API server says."""

    url: str = ""
    definition: bool = True
    ready: int = 200
    denied: set[tuple[str, str]] = field(default_factory=set)
    """Verb and resource."""
    reviews: list[dict[str, str]] = field(default_factory=list)


class RightsServer(ThreadingHTTPServer):
    """An API server that answers so."""

    request_queue_size = 128
    """All questions come at once; a connection that finds the queue full is tried again a second later."""

    def __init__(self, state: Rights) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.state = state


class Answers(BaseHTTPRequestHandler):
    """One request."""

    server: RightsServer

    def send_json(self, status: int, body: dict[str, Any]) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self) -> None:
        state = self.server.state
        if self.path == "/readyz":
            self.send_json(state.ready, {})
        else:
            names = [{"name": "streamapps"}] if state.definition else []
            self.send_json(200, {"resources": names})

    def do_POST(self) -> None:
        state = self.server.state
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = body["spec"]["resourceAttributes"]
        state.reviews.append(asked)
        allowed = (asked["verb"], asked["resource"]) not in state.denied
        self.send_json(201, {**body, "status": {"allowed": allowed}})

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def rights(tmp_path: Path) -> Iterator[Rights]:
    state = Rights()
    server = RightsServer(state)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    config = {
        "current-context": "here",
        "clusters": [{"name": "there", "cluster": {"server": state.url}}],
        "users": [{"name": "me", "user": {"token": "secret"}}],
        "contexts": [{"name": "here", "context": {"cluster": "there", "user": "me"}}],
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    yield state
    server.shutdown()
    server.server_close()


@pytest.fixture
def check(
    tmp_path: Path, rights: Rights, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr("kubernetes.aio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "config"))

    def run(**settings: str) -> tuple[int, str]:
        code = permission_check.main(["--ready", f"{rights.url}/readyz"], settings)
        captured = capfd.readouterr()
        assert captured.err == ""
        return code, captured.out

    return run


@pytest.mark.slow
def test_it_runs_as_a_program(tmp_path: Path, rights: Rights) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "streamapp", "check", "--ready", f"{rights.url}/readyz"],
        env={"PYTHONPATH": str(REPOSITORY / "operator"), "KUBECONFIG": str(tmp_path / "config")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[-1].endswith("checked, nothing lacks")


def test_nodes_are_asked_about_only_where_they_are_watched(check: Any, rights: Rights) -> None:
    rights.denied = {("list", "nodes")}
    code, told = check()
    assert (code, "nodes" in told) == (0, False)
    code, told = check(STREAMAPP_WATCH_NODES="true")
    (line,) = [line for line in told.splitlines() if line.startswith("NO") and "nodes" in line]
    assert (code, "the ClusterRole" in line) == (1, True)


def test_where_everything_is_there_all_of_it_is_listed_and_the_exit_code_is_0(check: Any, rights: Rights) -> None:
    code, told = check(STREAMAPP_LEASE_NAMESPACE="own", STREAMAPP_WATCH_NODES="true")
    lines = told.splitlines()
    assert (code, lines[-1]) == (0, f"all {ASKED + 2} checked, nothing lacks")
    assert [line.split()[0] for line in lines[1:-2]] == ["yes"] * (ASKED + 2)
    assert {each.get("namespace") for each in rights.reviews if each["resource"] == "leases"} == {"own"}
    assert {each.get("namespace") for each in rights.reviews if each["resource"] != "leases"} == {None}
    named = {each["verb"]: each.get("name") for each in rights.reviews if each["resource"] == "leases"}
    assert named == {"get": "streamapp-operator", "patch": "streamapp-operator", "create": None}


def test_a_right_that_lacks_is_named_with_its_place_and_what_to_do(check: Any, rights: Rights) -> None:
    rights.denied.add(("patch", "persistentvolumeclaims"))
    code, told = check(STREAMAPP_NAMESPACES="blue,green")
    assert code == 1
    lacking = [" ".join(line.split()) for line in told.splitlines() if line.startswith("NO")]
    assert lacking == [
        f"NO patch persistentvolumeclaims {namespace} Records the process ID of each volume. It cannot delete one. "
        f"Let a Role in {namespace} of the operator grant patch on persistentvolumeclaims, as the chart of this "
        "release does"
        for namespace in ("blue", "green")
    ]
    assert told.splitlines()[-1].startswith("2 of ")


def test_one_that_is_optional_is_told_and_fails_nothing(check: Any, rights: Rights) -> None:
    rights.denied.add(("list", "horizontalpodautoscalers"))
    code, told = check()
    assert code == 0
    assert [line.split("  ")[0] for line in told.splitlines() if not line.startswith("yes")][1] == "no, optional"


def test_no_lease_is_asked_for_where_none_is_used(check: Any, rights: Rights) -> None:
    check()
    assert "leases" not in {each["resource"] for each in rights.reviews}


def test_a_definition_that_is_not_installed_and_an_operator_that_is_not_ready_fail(check: Any, rights: Rights) -> None:
    rights.definition, rights.ready = False, 503
    code, told = check()
    assert code == 1
    lacking = [line for line in told.splitlines() if line.startswith("NO")]
    assert "crds.enabled" in lacking[0]
    assert "it answers 503; look at the operator's pods" in lacking[1]
