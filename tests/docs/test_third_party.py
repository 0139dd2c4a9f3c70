"""The page of third-party licences: as the locks have it, with what is installed as its source, and nothing guessed."""

import re
import sys
import tomllib
from dataclasses import replace
from functools import cache
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from docs import third_party
from docs.third_party import Part
from lab.settings import REPOSITORY


@cache
def packages() -> list[Part]:
    return third_party.packages()


def lying_there() -> list[tuple[Part, str]]:
    rows = [line.strip("| ").split(" | ") for line in third_party.PAGE.read_text().splitlines() if line[:2] == "| "]
    return [(Part(row[0], row[1], row[3]), row[2]) for row in rows if row[1] not in {"Version", "---"}]


def test_the_page_has_what_is_locked() -> None:
    locked = [*packages(), *third_party.libraries(), *third_party.standard_library(), *third_party.modules()]
    assert [part for part, _ in lying_there()] == locked, "run `make generate`"


@pytest.mark.skipif(
    f"{sys.version_info.major}.{sys.version_info.minor}" != third_party.PYTHON,
    reason="another Python has other versions installed than the images; names and versions are compared above",
)
def test_the_page_is_up_to_date() -> None:
    assert third_party.PAGE.read_text() == third_party.page(), "run `make generate`"


def test_every_project_and_program_that_is_shipped_is_looked_at() -> None:
    modules = re.findall(r"<module>(.+?)</module>", (REPOSITORY / "agent" / "pom.xml").read_text())
    assert {f"agent/{module}/pom.xml" for module in modules} < set(third_party.CARRIERS)
    assert {path.parent.name for path in (REPOSITORY / "operator" / "images").glob("*/go.mod")} == set(
        third_party.PROGRAMS
    )


def test_the_extras_need_what_they_name() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    for extra, named in project["optional-dependencies"].items():
        direct = {re.split(r"[<>=]", one)[0] for one in (*named, *project["dependencies"])}
        assert direct <= {part.name for part in packages() if f"`{extra}`" in part.where}


def test_the_wheel_and_the_pages_know_one_licence() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert project["license"] == "Apache-2.0"
    assert [name for name in project["license-files"] if not (REPOSITORY / name).is_file()] == []
    assert "Apache License" in (REPOSITORY / "LICENSE").read_text()


def stating(folder: Path, *lines: str) -> Distribution:
    (folder / "METADATA").write_text("\n".join(("Metadata-Version: 2.4", "Name: it", "Version: 1", *lines)) + "\n")
    return Distribution.at(folder)


@pytest.mark.parametrize(
    ("lines", "licence"),
    [
        (["License-Expression: MIT OR Apache-2.0", "License: MIT"], "MIT OR Apache-2.0"),
        (["License: ISC", "Classifier: License :: OSI Approved :: BSD License"], "ISC"),
        (["License: BSD", "Classifier: License :: OSI Approved :: BSD License"], "BSD License"),
        (["Classifier: License :: OSI Approved :: A", "Classifier: License :: B", "Classifier: Typing"], "A and B"),
        (["License: the one of Zope"], "the one of Zope"),
    ],
    ids=["expression", "expression as text", "classifier before text", "classifiers", "text"],
)
def test_the_most_exact_statement_of_a_package_counts(tmp_path: Path, lines: list[str], licence: str) -> None:
    assert third_party.stated(stating(tmp_path, *lines)) == licence


@pytest.mark.parametrize(
    "lines",
    [[], ["License: UNKNOWN"], ["License: Copyright", "        All rights reserved"]],
    ids=["none", "unknown", "a whole text"],
)
def test_a_package_without_a_licence_is_an_error_that_names_it(tmp_path: Path, lines: list[str]) -> None:
    with pytest.raises(LookupError, match="it 1 states no licence"):
        third_party.stated(stating(tmp_path, *lines))


def test_a_library_without_a_known_licence_is_an_error_that_names_it() -> None:
    with pytest.raises(LookupError, match="org:other: its licence is not known"):
        third_party.known("org:other")


def test_only_what_is_installed_as_locked_is_asked() -> None:
    (pydantic,) = [part for part in packages() if part.name == "pydantic"]
    assert third_party.installed(pydantic).version == pydantic.version
    with pytest.raises(LookupError, match=f"pydantic 0 is locked, {re.escape(pydantic.version)} installed"):
        third_party.installed(replace(pydantic, version="0"))
    with pytest.raises(LookupError, match="no-such-package 1 is locked and not installed"):
        third_party.installed(Part("no-such-package", "1", ""))


def test_only_what_a_jar_carries_of_others_is_read_from_a_pom(tmp_path: Path) -> None:
    dependency = "<dependency><groupId>{0}</groupId><artifactId>{0}</artifactId><version>{1}</version>{2}</dependency>"
    dependencies = [
        dependency.format("shaded", "${it.version}", ""),
        dependency.format("late", "3", "<scope>runtime</scope>"),
        dependency.format("given", "4", "<scope>provided</scope>"),
        dependency.format("tried", "5", "<scope>test</scope>"),
    ]
    (tmp_path / "pom.xml").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><properties><it.version>2</it.version></properties>'
        f"<dependencies>{''.join(dependencies)}</dependencies></project>"
    )
    found = list(third_party.needed(tmp_path / "pom.xml", "a jar"))
    assert found == [Part("shaded:shaded", "2", "a jar"), Part("late:late", "3", "a jar")]


def test_every_module_that_a_program_requires_is_found() -> None:
    go_mod = """module it

go 1.26.4

require example.org/one v1.2.3

require (
\texample.org/two/v2 v2.0.0
\tgolang.org/x/sys v0.1.0 // indirect
)

replace example.org/three v1.0.0 => ../three
"""
    assert list(third_party.required(go_mod, "here")) == [
        Part("example.org/one", "v1.2.3", "here"),
        Part("example.org/two/v2", "v2.0.0", "here"),
        Part("golang.org/x/sys", "v0.1.0", "here"),
    ]
