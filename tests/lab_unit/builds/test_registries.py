"""Real builds from the package registries: one of each kind, small, in a cache of their own."""

import subprocess
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from lab.build import bases
from lab.build.cache import Cache
from lab.build.chart_tools import build_helm, prometheus_definitions
from lab.build.images import Image, build_image
from lab.build.labkube import build_labkube
from lab.build.maven import package
from lab.build.toolchains import find_or_fetch_go, needed, older, version_of
from lab.settings import Settings, Versions

pytestmark = [pytest.mark.registries, pytest.mark.timeout(600)]
VERSIONS = Versions.read()


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    cache = Cache(tmp_path / "cache")
    yield cache
    cache.prune(keep=0, unused=timedelta(0))


def test_go_is_fetched_where_the_machine_has_none_new_enough(cache: Cache) -> None:
    go = find_or_fetch_go(replace(VERSIONS, go="1000"), cache)
    version = version_of(needed(VERSIONS)["go"], go)
    assert version is not None
    assert not older(version, VERSIONS.go)
    assert go.is_relative_to(cache.folder)


def test_a_project_is_packaged_with_the_jars_it_needs(cache: Cache, tmp_path: Path) -> None:
    project = tmp_path / "app"
    (project / "src" / "main" / "java").mkdir(parents=True)
    (project / "src" / "main" / "java" / "App.java").write_text("class App {}\n")
    pom = """
        <project xmlns="http://maven.apache.org/POM/4.0.0">
          <modelVersion>4.0.0</modelVersion>
          <groupId>dev.streamapp.test</groupId><artifactId>app</artifactId><version>1</version>
          <properties>
            <maven.compiler.source>17</maven.compiler.source>
            <maven.compiler.target>17</maven.compiler.target>
            <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
          </properties>
          <dependencies><dependency>
            <groupId>org.slf4j</groupId><artifactId>slf4j-api</artifactId><version>1.7.36</version>
          </dependency></dependencies>
          <build><finalName>app</finalName><plugins><plugin>
            <artifactId>maven-dependency-plugin</artifactId><version>3.11.0</version>
            <executions><execution>
              <phase>package</phase><goals><goal>copy-dependencies</goal></goals>
              <configuration><outputDirectory>${project.build.directory}/lib</outputDirectory></configuration>
            </execution></executions>
          </plugin></plugins></build>
        </project>
    """
    (project / "pom.xml").write_text(textwrap.dedent(pom).lstrip())
    jars = package(project, VERSIONS, cache)
    assert sorted(path.relative_to(jars).as_posix() for path in jars.rglob("*.jar")) == [
        "app.jar",
        "lib/slf4j-api-1.7.36.jar",
    ]


def test_the_java_base_runs_java_and_a_shell(cache: Cache, tmp_path: Path) -> None:
    base = bases.debian_java(VERSIONS, cache)
    (tmp_path / "Dockerfile").write_text(
        "ARG BASE=none\nFROM ${BASE}\nRUN java --list-modules > /it && java -Xshare:on -version && ls -l /it\n"
    )
    image = Image("streamapp/java-test", "1", tmp_path / "Dockerfile", {}, base)
    built = build_image(image, VERSIONS, cache)
    said = cache.log(image.entry).read_text()
    assert "openjdk version" in said
    assert built.archive.stat().st_size < 200_000_000


def test_every_part_of_labkube_starts_and_tells_its_version() -> None:
    parts = build_labkube(VERSIONS, Cache(Settings.from_environment().cache))
    kubernetes = f"v{VERSIONS.kubernetes}"
    asked = {
        "coredns": ("-version", VERSIONS.coredns),
        "etcd": ("--version", VERSIONS.etcd),
        "kube-apiserver": ("--version", kubernetes),
        "kube-controller-manager": ("--version", kubernetes),
        "kube-proxy": ("--version", kubernetes),
        "kube-scheduler": ("--version", kubernetes),
        "kubectl": ("version", kubernetes),
        "kubelet": ("--version", kubernetes),
        "metrics-server": ("--version", kubernetes),
    }
    told = {
        part: subprocess.run(
            [parts / part, option, *(["--client"] if part == "kubectl" else [])],
            capture_output=True,
            text=True,
            check=False,
            timeout=20,
        ).stdout
        for part, (option, _) in asked.items()
    }
    assert [part for part, (_, version) in asked.items() if version not in told[part]] == []


@pytest.mark.parametrize(("major", "version"), [(4, VERSIONS.helm), (3, VERSIONS.helm_3)])
def test_helm_is_of_the_pinned_version(major: int, version: str) -> None:
    folder = build_helm(VERSIONS, Cache(Settings.from_environment().cache), major)
    told = subprocess.run(
        [folder / "helm", "version", "--template", "{{.Version}}"], capture_output=True, text=True, check=True
    )
    assert told.stdout == f"v{version}"


def test_the_definitions_of_the_prometheus_operator_come_with_its_module(cache: Cache) -> None:
    folder = prometheus_definitions(VERSIONS, cache)
    kinds = {path.stem: yaml.safe_load(path.read_text())["spec"]["names"]["kind"] for path in folder.iterdir()}
    assert kinds == {"podmonitors": "PodMonitor", "prometheusrules": "PrometheusRule"}
