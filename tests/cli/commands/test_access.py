"""Who asks: another user than that of the kubeconfig, and credentials from an exec plugin, as with kubectl."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamapp.cli.__main__ import main
from streamapp.cli.cluster import streamapps
from streamapp.cli.cluster.target import Target
from streamapp.kube.client import exec_credential
from tests.cli.cluster import Cluster
from tests.cli.conftest import Run
from tests.cli.showing import a_resource, one_line
from tests.statuses import held_status

VERSION = "client.authentication.k8s.io/v1"


def held() -> dict[str, Any]:
    return a_resource(held_status(), {"spec.replicas": 2}, name="wordcount")


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exec_credential, "_known", {})


def with_user(cluster: Cluster, user: dict[str, Any], **of_cluster: Any) -> None:
    """Write a kubeconfig whose user is this one."""
    content = yaml.safe_load(cluster.kubeconfig.read_text())
    content["users"] = [{"name": "me", "user": user}]
    content["clusters"][0]["cluster"] |= of_cluster
    cluster.kubeconfig.write_text(yaml.safe_dump(content))


def sent(cluster: Cluster) -> list[dict[str, list[str]]]:
    """Collect who each request is made as."""
    seen: list[dict[str, list[str]]] = []

    def look(request: Any) -> None:
        names = [name for name in request.headers if name == "Authorization" or name.startswith("Impersonate-")]
        seen.append({name: request.headers.getall(name) for name in names})

    cluster.do(lambda server: setattr(server, "refuse", look))
    return seen


AS = {"as": "jane", "as-groups": ["viewers", "team a"], "as-uid": "7", "as-user-extra": {"example.org/Why": ["x", "y"]}}
HEADERS = {
    "Authorization": ["Bearer secret"],
    "Impersonate-User": ["jane"],
    "Impersonate-Group": ["viewers", "team a"],
    "Impersonate-Uid": ["7"],
    "Impersonate-Extra-example.org%2Fwhy": ["x", "y"],
}


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Cluster]:
    """Another cluster, with a StreamApp of the same name."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    with Cluster(folder).running() as other:
        other.put(held())
        yield other


def switched(cluster: Cluster, to: Cluster, context: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have another terminal switch the kubeconfig while the question waits, and then answer yes."""

    def switch(*_: object, **__: object) -> bool:
        content = yaml.safe_load(cluster.kubeconfig.read_text())
        there = {"name": "prod", "cluster": {"server": to.url}}
        entry = {"name": context, "context": {"cluster": "prod", "user": "me", "namespace": "prod"}}
        contexts = [one for one in content["contexts"] if one["name"] != context]
        changed = {"current-context": context, "contexts": [*contexts, entry]}
        cluster.kubeconfig.write_text(yaml.safe_dump({**content, **changed, "clusters": [*content["clusters"], there]}))
        return True

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.confirm", switch)


def test_a_context_that_is_switched_while_a_question_waits_changes_no_other_cluster(
    cluster: Cluster, elsewhere: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put(held())
    switched(cluster, elsewhere, "prod", monkeypatch)
    assert run("pause", "--all").code == 0
    assert (cluster.written, elsewhere.written) == ([("PATCH", "streamapps")], [])


def test_a_context_that_leads_elsewhere_after_a_question_is_refused(
    cluster: Cluster, elsewhere: Cluster, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put(held())
    switched(cluster, elsewhere, "here", monkeypatch)
    ran = run("pause", "--all")
    assert (ran.code, cluster.written, elsewhere.written) == (1, [], [])
    assert f"it led to {cluster.url} when the command began" in one_line(ran.err)


def test_a_command_stays_in_the_namespace_of_its_first_look(cluster: Cluster) -> None:
    target = Target()
    first = asyncio.run(streamapps.resolve(target))
    cluster.write_kubeconfig(cluster.url, namespace="prod")
    again = asyncio.run(streamapps.resolve(target))
    assert (first.namespace, again.namespace) == ("demo", "demo")
    assert asyncio.run(streamapps.resolve(Target())).namespace == "prod"


def test_a_context_that_acts_as_another_user_does_so_in_every_request(cluster: Cluster, run: Run) -> None:
    cluster.put(held())
    with_user(cluster, {"token": "secret", **AS})
    seen = sent(cluster)
    assert run("pause", "wordcount").code == 0
    assert {json.dumps(one) for one in seen} == {json.dumps(HEADERS)}
    assert cluster.written


def test_the_command_line_comes_before_the_kubeconfig(cluster: Cluster, run: Run) -> None:
    cluster.put(held())
    with_user(cluster, {"token": "secret", **AS})
    seen = sent(cluster)
    run("status", "wordcount", "--as", "joe", "--as-group", "a", "--as-group", "b", "--as-uid", "8")
    assert seen == [
        {
            "Authorization": ["Bearer secret"],
            "Impersonate-User": ["joe"],
            "Impersonate-Group": ["a", "b"],
            "Impersonate-Uid": ["8"],
        }
    ]


def test_a_group_without_a_user_is_an_error_and_nothing_is_sent(cluster: Cluster, run: Run) -> None:
    seen = sent(cluster)
    ran = run("status", "wordcount", "--as-group", "admins")
    with_user(cluster, {"token": "secret", "as-groups": ["admins"]})
    again = run("status", "wordcount")
    assert (ran.code, again.code, seen) == (1, 1, [])
    assert "it names groups, a UID or extras to act as, and no user" in ran.err
    assert f"kubeconfig {cluster.kubeconfig}" in again.err


# Exec plugins


def a_plugin(folder: Path, script: str, **settings: Any) -> dict[str, Any]:
    """Write a plugin, and give what names it."""
    file = folder / "plugin"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return {"exec": {"apiVersion": VERSION, "command": "./plugin", **settings}}


def giving(**status: str) -> str:
    answer = {"apiVersion": VERSION, "kind": "ExecCredential", "status": status}
    return f"cat <<'END'\n{json.dumps(answer)}\nEND"


def test_a_plugin_gives_the_token_and_what_it_says_is_seen(
    cluster: Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster.put(held())
    script = f"echo 'open this page' >&2; echo \"$KUBERNETES_EXEC_INFO $WORD\" > seen; {giving(token='fresh')}"
    plugin = a_plugin(
        tmp_path,
        f"cd {tmp_path}; {script}",
        provideClusterInfo=True,
        interactiveMode="IfAvailable",
        env=[{"name": "WORD", "value": "given"}],
    )
    extension = {"name": exec_credential.EXTENSION, "extension": {"audience": "x"}}
    with_user(cluster, plugin, extensions=[extension], **{"tls-server-name": "api"})
    seen = sent(cluster)
    assert main(["status", "wordcount"]) == 0
    assert seen == [{"Authorization": ["Bearer fresh"]}]
    assert "open this page" in capfd.readouterr().err
    info, word = (tmp_path / "seen").read_text().rsplit(" ", 1)
    assert word == "given\n"
    assert json.loads(info) == {
        "apiVersion": VERSION,
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {"server": cluster.url, "tlsServerName": "api", "config": {"audience": "x"}},
        },
    }


def test_a_plugin_is_asked_again_only_when_its_credential_ends(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    cluster.put(held())
    counting = f"echo x >> {tmp_path}/runs;"
    with_user(cluster, a_plugin(tmp_path, f"{counting} {giving(token='a')}"))
    run("status", "wordcount")
    run("status", "wordcount")
    assert (tmp_path / "runs").read_text() == "x\n"
    ended = giving(token="a", expirationTimestamp="2020-01-01T00:00:00Z")
    with_user(cluster, a_plugin(tmp_path, f"{counting} {ended}", args=["other"]))
    run("status", "wordcount")
    run("status", "wordcount")
    assert (tmp_path / "runs").read_text() == "x\nx\nx\n"


FAILING: dict[str, tuple[str, dict[str, Any], str]] = {
    "one that fails": ("exit 3", {}, "it ended with exit code 3"),
    "one that says nothing": ("true", {}, "its output is no ExecCredential"),
    "one that gives nothing": (giving(), {}, "it gave neither a token nor a certificate with its key"),
    "one that gives half": (giving(clientCertificateData="x"), {}, "neither a token nor a certificate with its key"),
    "one of another version": (
        giving(token="x"),
        {"apiVersion": VERSION + "beta1"},
        f"it gave ExecCredential of {VERSION}",
    ),
    "one of an old version": (giving(token="x"), {"apiVersion": VERSION + "alpha1"}, "its apiVersion is"),
    "one that must ask": (giving(token="x"), {"interactiveMode": "Always"}, "standard input is no terminal"),
    "one that is not there": ("true", {"command": "./missing", "installHint": "get it"}, "No such file"),
}


@pytest.mark.parametrize(("script", "settings", "why"), FAILING.values(), ids=FAILING.keys())
def test_a_plugin_that_fails_ends_the_command_before_anything_is_sent(
    cluster: Cluster, run: Run, tmp_path: Path, script: str, settings: dict[str, Any], why: str
) -> None:
    with_user(cluster, a_plugin(tmp_path, script, **settings))
    seen = sent(cluster)
    ran = run("status", "wordcount")
    assert (ran.code, seen) == (1, [])
    assert "exec plugin " in ran.err
    assert why in ran.err
    assert settings.get("installHint", "") in ran.err


def test_a_plugin_that_never_ends_is_ended(
    cluster: Cluster, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exec_credential, "DEADLINE_SECONDS", 0.05)
    with_user(cluster, a_plugin(tmp_path, "exec sleep 60"))
    assert "it has not ended within 0.05 s" in run("status", "wordcount").err


def test_of_several_files_the_first_with_a_name_wins_and_paths_are_its_own(
    cluster: Cluster, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put(held())
    other = tmp_path / "other"
    other.mkdir()
    with_user(cluster, a_plugin(other, giving(token="others")))
    (other / "config").write_text(cluster.kubeconfig.read_text())
    with_user(cluster, {"token": "mine"})
    content = yaml.safe_load(cluster.kubeconfig.read_text())
    first = {"users": [], "clusters": content["clusters"], "current-context": "here"}
    cluster.kubeconfig.write_text(yaml.safe_dump(first))
    monkeypatch.setenv("KUBECONFIG", f"{cluster.kubeconfig}:{other / 'config'}")
    seen = sent(cluster)
    assert run("status", "wordcount").code == 0
    assert seen == [{"Authorization": ["Bearer others"]}]
