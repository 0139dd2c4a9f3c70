"""`CLUSTER` chooses the cluster, and what is not allowed is refused before anything is touched."""

import json
import os
from pathlib import Path

import pytest

from lab.clusters import choice
from lab.clusters.context import check_allowed
from lab.clusters.kind import check_docker
from lab.errors import LabError
from lab.settings import Settings
from tests.lab_unit.conftest import RunLab


@pytest.mark.parametrize("name", ["embedded", "kind", "context"])
def test_each_known_word_gives_its_cluster(name: str) -> None:
    assert choice.chosen(Settings.from_environment({"CLUSTER": name})).name == name


def test_no_word_gives_the_embedded_lab() -> None:
    assert choice.chosen(Settings.from_environment({})).name == "embedded"


def test_an_unknown_cluster_is_refused_with_the_known_ones(run_lab: RunLab) -> None:
    ran = run_lab("up", CLUSTER="minikube")
    assert ran.code == 1
    assert "error: CLUSTER=minikube: unknown" in ran.err
    assert "known are embedded, kind, context" in ran.err


def test_parts_are_shown_for_the_embedded_lab_alone(run_lab: RunLab) -> None:
    ran = run_lab("status", CLUSTER="context")
    assert ran.code == 1
    assert "has no parts to show" in ran.err


def _kubeconfig(folder: Path, context: str) -> Path:
    # Port 1 of this machine answers nobody: whoever gets past the allow-list fails there, and not at a cluster.
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": context, "context": {"cluster": "c", "user": "u"}}],
        "current-context": context,
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("allowed", ["", "staging", "production-eu,staging"])
def test_a_context_that_is_not_named_is_refused(allowed: str) -> None:
    with pytest.raises(LabError) as raised:
        check_allowed("production", allowed)
    assert raised.value.what == "context production: not on the allow-list"
    assert raised.value.next_step == "if this cluster is meant for it: export STREAMAPP_LAB_CONTEXTS=production"


def test_a_context_that_is_named_is_allowed() -> None:
    check_allowed("staging", "dev, staging")


def test_a_forgotten_kubeconfig_is_refused_by_the_command_line(run_lab: RunLab, tmp_path: Path, kubectl: Path) -> None:
    ran = run_lab(
        "down",
        CLUSTER="context",
        KUBECONFIG=str(_kubeconfig(tmp_path, "production")),
        STREAMAPP_LAB_CONTEXTS="dev",
        PATH=f"{kubectl.parent}:{os.environ['PATH']}",
    )
    assert ran.code == 1
    assert "error: context production: not on the allow-list" in ran.err


def test_kind_without_docker_names_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(LabError) as raised:
        check_docker(str(tmp_path))
    assert raised.value.what == "CLUSTER=kind: docker, kind, kubectl not found"
    assert "CLUSTER=embedded" in raised.value.next_step
