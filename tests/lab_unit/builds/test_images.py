"""Images are built from small Dockerfiles by the real Buildah."""

import json
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from lab.build.cache import Cache
from lab.build.images import Image, build_image, build_with_docker
from lab.errors import LabError
from lab.settings import Versions

VERSIONS = Versions.read()
needs_buildah = pytest.mark.skipif(shutil.which("buildah") is None, reason="needs buildah")


def image(folder: Path, dockerfile: str, **files: str) -> Image:
    (folder / "Dockerfile").write_text(dockerfile)
    context = {}
    for name, text in files.items():
        context[name] = folder / name
        context[name].write_text(text)
    return Image("streamapp/tiny", "1", folder / "Dockerfile", context)


def manifest(archive: Path) -> list[dict[str, object]]:
    with tarfile.open(archive) as tar:
        member = tar.extractfile("manifest.json")
        assert member is not None
        manifest: list[dict[str, object]] = json.load(member)
        return manifest


@needs_buildah
def test_an_image_becomes_an_archive_under_its_name_and_is_built_again_only_for_other_content(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    first = image(tmp_path, "FROM scratch\nCOPY it /it\n", it="1")
    built = build_image(first, VERSIONS, cache)
    again = build_image(first, VERSIONS, cache)
    (tmp_path / "it").write_text("2")
    changed = build_image(first, VERSIONS, cache)
    assert [entry["RepoTags"] for entry in manifest(built.archive)] == [["localhost/streamapp/tiny:1"]]
    assert (again, changed.archive != built.archive) == (built, True)
    assert [path.name for path in built.archive.parent.iterdir()] == ["image.tar"]


@needs_buildah
def test_an_image_stands_on_the_base_that_takes_the_place_of_the_default_one(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    base = build_image(image(tmp_path, "FROM scratch\nCOPY base /base\n", base="1"), VERSIONS, cache)
    above = image(tmp_path, "ARG BASE=none\nFROM ${BASE}\nCOPY it /it\n", it="1")
    built = build_image(replace(above, name="streamapp/above", base=base), VERSIONS, cache)
    layers = manifest(built.archive)[0]["Layers"]
    assert isinstance(layers, list)
    assert layers[:1] == manifest(base.archive)[0]["Layers"]
    assert len(layers) == 2


@needs_buildah
def test_a_failing_build_names_the_image_and_the_step_and_what_the_tool_said(tmp_path: Path) -> None:
    broken = image(tmp_path, "FROM scratch\nCOPY missing /it\n", it="1")
    cache = Cache(tmp_path / "cache")
    with pytest.raises(LabError) as raised:
        build_image(broken, VERSIONS, cache)
    error = raised.value
    assert (error.what, error.next_step) == (
        "image streamapp/tiny: the build failed at COPY missing /it",
        f"mend {tmp_path / 'Dockerfile'} or what it copies; where a registry did not answer, check the network",
    )
    assert '"/missing": no such file or directory' in error.why
    assert [path.name for path in (cache.folder / "image-tiny").iterdir() if path.is_dir()] == []


def test_without_docker_its_builder_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError) as raised:
        build_with_docker(image(tmp_path, "FROM scratch\n"), tmp_path / "log")
    assert raised.value == LabError("image streamapp/tiny: it cannot be built", "no docker in PATH", "install Docker")
