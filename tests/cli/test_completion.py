"""Completion: names from the cluster, kubectl's way of asking, the scripts of shells."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.settings import REPOSITORY
from streamapp.cli import completion
from streamapp.cli.__main__ import complete
from tests.cli.cluster import Cluster
from tests.cli.conftest import Run
from tests.cli.showing import a_resource


@pytest.fixture
def proposals(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> "Propose":
    """Ask as kubectl does."""
    return Propose(monkeypatch, capsys)


class Propose:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *words: str) -> list[str]:
        """Give the lines without their descriptions; the last is the number."""
        self._monkeypatch.setattr("sys.argv", ["kubectl_complete-streamapp", *words])
        assert complete() == 0
        return [line.partition("\t")[0] for line in self._capsys.readouterr().out.splitlines()]


def put(cluster: Cluster) -> None:
    for name, namespace in (("counts", "demo"), ("wordcount", "demo"), ("words", "demo"), ("payments", "prod")):
        cluster.put(a_resource(None, {"metadata.namespace": namespace}, name=name))


def test_commands_and_options_are_proposed(proposals: Propose) -> None:
    assert proposals("hi") == ["history", ":4"]
    assert proposals("advise", "--config") == ["--config-map", ":4"]
    assert {"scale", "hold", "unhold", "override", "pause", "resume", "status"} <= set(proposals(""))
    assert proposals("scale", "--d") == ["--dry-run", "--despite-autoscaler", ":4"]
    assert proposals("status", "-o", "") == ["table", "json", "yaml", ":4"]
    assert proposals("status", "--kubeconfig", "") == [":0"]


def test_names_come_from_the_namespace_that_the_line_names(cluster: Cluster, proposals: Propose) -> None:
    put(cluster)
    for command in ("status", "scale", "hold", "unhold", "override", "pause", "resume", "history", "explain", "advise"):
        assert proposals(command, "wo") == ["wordcount", "words", ":4"]
    assert proposals("status", "-n", "prod", "") == ["payments", ":4"]
    assert proposals("status", "-n", "") == ["demo", "prod", ":4"]
    assert proposals("status", "--context", "h") == ["here", ":4"]


def test_nothing_is_proposed_where_nobody_answers(
    cluster: Cluster, proposals: Propose, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.refuse(403, "no")
    assert proposals("status", "") == [":4"]
    cluster.write_kubeconfig("http://127.0.0.1:1")
    assert proposals("status", "") == [":4"]
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    assert proposals("status", "") == [":4"]
    assert proposals("status", "--context", "") == [":4"]


def test_whoever_waits_for_a_completion_does_not_wait_long(
    cluster: Cluster, proposals: Propose, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(cluster)
    monkeypatch.setattr(completion, "TIMEOUT_SECONDS", 0.2)
    cluster.do(lambda server: setattr(server, "refuse", lambda _: time.sleep(1)))
    assert proposals("status", "") == [":4"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(run: Run, shell: str) -> None:
    ran = run("completion", shell)
    assert (ran.code, ran.err) == (0, "")
    assert f"{completion.COMPLETE_VARIABLE}={shell}_complete" in ran.out
    assert run("completion", "tcsh").code == 2


@pytest.mark.slow
@pytest.mark.timeout(180)  # a process of its own, on a machine that may have much else to do
def test_the_script_of_bash_completes(
    cluster: Cluster, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(cluster)
    script = tmp_path / "script"
    script.write_text(run("completion", "bash").out)
    command = tmp_path / "kubectl-streamapp"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m streamapp.cli "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY / "operator"))
    line = (
        f"source {script}; "
        "COMP_WORDS=(kubectl-streamapp status wor); COMP_CWORD=2; "
        "_kubectl_streamapp_completion kubectl-streamapp; echo ${COMPREPLY[@]}"
    )
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["wordcount", "words"]
