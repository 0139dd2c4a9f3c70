"""The room that a build needs, told before it begins."""

from dataclasses import replace
from pathlib import Path

import pytest

from lab.build.cache import Cache
from lab.build.plan import (
    ENTRIES,
    GO_BUILD_CACHE,
    GO_MODULES,
    GO_TOOLCHAIN,
    HELM_BUILD_CACHE,
    MAVEN_REPOSITORY,
    REBUILT,
    disk_needed,
)
from lab.settings import Settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in ("GOCACHE", "GOMODCACHE"):
        monkeypatch.setenv(name, str(tmp_path / name))
    return Settings.from_environment({"STREAMAPP_LAB_CACHE": str(tmp_path / "cache")})


@pytest.mark.parametrize("go", [None, "1000"], ids=["the machine's Go if it has one", "none that is new enough"])
def test_a_first_build_fills_the_cache_and_those_of_its_tools(
    settings: Settings, tmp_path: Path, go: str | None
) -> None:
    asked = replace(settings, versions=replace(settings.versions, go=go or settings.versions.go))
    assert disk_needed(asked) == [
        (settings.cache, ENTRIES + GO_BUILD_CACHE + GO_TOOLCHAIN),
        (tmp_path / "GOCACHE", GO_BUILD_CACHE + HELM_BUILD_CACHE),
        (tmp_path / "GOMODCACHE", GO_MODULES),
        (Path.home() / ".m2" / "repository", MAVEN_REPOSITORY),
    ]
    assert not settings.cache.exists()


def test_a_cache_with_a_whole_labkube_needs_little(settings: Settings) -> None:
    Cache(settings.cache).entry("labkube", "0" * 20, lambda folder: (folder / "labkube").touch())
    assert disk_needed(settings) == [(settings.cache, REBUILT)]
