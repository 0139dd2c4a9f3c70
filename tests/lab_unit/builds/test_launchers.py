"""What Maven is told for each launcher and version, and that each pair is built once."""

from pathlib import Path

import pytest

from lab.build import launchers, maven
from lab.build.cache import Cache
from lab.settings import Versions

VERSIONS = Versions.read()


class Maven:
    """Stands in for Maven, which would fetch a framework: writes down its goals and leaves what it would have built."""

    def __init__(self) -> None:
        self.goals: list[list[str]] = []

    def __call__(self, goals: list[str], folder: Path, *_: object) -> None:
        self.goals.append(goals)
        for made in ("spring-boot/target/application.jar", "quarkus/target/quarkus-app/quarkus-run.jar"):
            if (folder / made.partition("/")[0]).is_dir():
                (folder / made).parent.mkdir(parents=True, exist_ok=True)
                (folder / made).write_text(" ".join(goals))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Maven:
    made = Maven()
    monkeypatch.setattr(maven, "_maven", made)
    return made


def test_each_pair_of_versions_is_built_once(told: Maven, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    first = launchers.spring_boot("3.5.16", "3.9.2", VERSIONS, cache)
    assert launchers.spring_boot("3.5.16", "3.9.2", VERSIONS, cache) == first
    other = launchers.spring_boot("4.1.1", "4.2.1", VERSIONS, cache)
    assert (first.is_file(), other.is_file()) == (True, True)
    assert first != other
    assert len(told.goals) == 2
    assert {"package", "spring-boot", "-Dspring-boot.version=3.5.16", "-Dkafka.streams.version=3.9.2"} <= set(
        told.goals[0]
    )


def test_the_jar_that_starts_quarkus_stays_beside_its_libraries(told: Maven, tmp_path: Path) -> None:
    jar = launchers.quarkus("3.20.3", "3.9.2", VERSIONS, Cache(tmp_path / "cache"))
    assert (jar.parent.name, jar.is_file()) == ("quarkus-app", True)
    assert "-Dquarkus.version=3.20.3" in told.goals[0]


def test_the_plain_application_runs_on_the_jars_of_another_version(told: Maven, tmp_path: Path) -> None:
    own, others = launchers.plain("3.8.1", VERSIONS, Cache(tmp_path / "cache"))
    assert (own.name, others.name) == ("counter.jar", "*")
    assert ["-Dkafka.streams.version=3.8.1" in goals for goals in told.goals] == [True, False]


def test_a_changed_source_is_built_anew_and_what_maven_left_in_the_project_is_none(told: Maven, tmp_path: Path) -> None:
    project = tmp_path / "app"
    (project / "quarkus" / "src").mkdir(parents=True)
    (project / "quarkus" / "src" / "A.java").write_text("class A {}")
    cache = Cache(tmp_path / "cache")

    def build() -> Path:
        return maven.module(project, "quarkus", "Package", VERSIONS, cache, {})

    first = build()
    (project / "quarkus" / "target").mkdir()
    (project / "quarkus" / "target" / "left.jar").write_text("left")
    assert build() == first
    (project / "quarkus" / "src" / "A.java").write_text("class A { int a; }")
    assert build() != first
    assert len(told.goals) == 2
