"""What a person reads when Maven fails."""

import shutil
from pathlib import Path

import pytest

from lab.build.cache import Cache
from lab.build.maven import package
from lab.errors import LabError
from lab.settings import Versions


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
