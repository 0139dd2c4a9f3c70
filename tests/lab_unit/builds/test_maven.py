"""What a person reads when Maven fails."""

import shutil
from pathlib import Path

import pytest

from lab.build.cache import Cache
from lab.build.maven import AGENT_JAR, agent_jar, package
from lab.errors import LabError
from lab.settings import Versions
from tests.lab_unit.stand_ins import StandIns


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mvn") is None, reason="needs mvn")
def test_a_broken_pom_is_told_in_mavens_words_and_the_project_stays_clean(tmp_path: Path) -> None:
    project = tmp_path / "app"
    (project / "src").mkdir(parents=True)
    (project / "pom.xml").write_text("<project><modelVersion>4.0.0</modelVersion></project>")
    with pytest.raises(LabError) as raised:
        package(project, Versions.read(), Cache(tmp_path / "cache"))
    assert raised.value.what == "app-jars: Maven failed"
    assert raised.value.why.splitlines()[:4] == [
        "[ERROR] [ERROR] Some problems were encountered while processing the POMs:",
        "    [FATAL] 'groupId' is missing. @ line 1, column 10",
        "    [FATAL] 'artifactId' is missing. @ line 1, column 10",
        "    [FATAL] 'version' is missing. @ line 1, column 10",
    ]
    assert raised.value.why.endswith(f"(all of it: {tmp_path / 'cache' / 'app-jars' / 'log'})")
    assert sorted(path.name for path in project.iterdir()) == ["pom.xml", "src"]


PARENT = """<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>parent</artifactId>
<version>1</version><packaging>pom</packaging><modules><module>assignor</module><module>agent</module></modules></project>
"""


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """An agent's sources in small, whose Maven is a script that packs what it sees."""
    project = tmp_path / "agent"
    for name in ("assignor", "agent"):
        for part in ("main", "test"):
            (project / name / "src" / part).mkdir(parents=True)
            (project / name / "src" / part / "A.java").write_text(f"{name} {part}")
        (project / name / "pom.xml").write_text(name)
        (project / name / "target").mkdir()
        (project / name / "target" / "old.jar").write_text("old")
    (project / "pom.xml").write_text(PARENT)
    return project


def test_the_agents_jar_is_built_of_all_its_modules_and_of_nothing_else(
    modules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for Maven, since what is tested is what it sees and is told."""
    programs = StandIns(tmp_path / "bin")
    programs.folder.mkdir()
    seen = 'seen="$(find . -type f | sort)"\nmkdir agent/target\necho "$seen" > agent/target/streamapp-agent.jar'
    programs.put("mvn", f'[ "$1" = --version ] && echo "Apache Maven 3.8.7" && exit\n{seen}')
    monkeypatch.setenv("PATH", programs.path)
    cache = Cache(tmp_path / "cache")
    first = agent_jar(Versions.read(), cache, modules)
    assert (first / AGENT_JAR).read_text().split() == [
        "./agent/pom.xml",
        "./agent/src/main/A.java",
        "./assignor/pom.xml",
        "./assignor/src/main/A.java",
        "./pom.xml",
    ]
    (modules / "agent" / "src" / "test" / "A.java").write_text("another test")
    assert agent_jar(Versions.read(), cache, modules) == first
    (modules / "assignor" / "src" / "main" / "A.java").write_text("another assignor")
    assert agent_jar(Versions.read(), cache, modules) != first
    builds = [call for call in programs.calls() if "package" in call]
    assert len(builds) == 2
    assert builds[0].endswith("package -Dmaven.test.skip=true --projects agent --also-make")
