"""Each part of a release on its own, made of little: the same bytes each time, and faults that are named."""

import gzip
import json
import os
import re
import sys
import tarfile
from io import BytesIO
from pathlib import Path

import pytest
import yaml

from lab.archives import unpack
from lab.errors import LabError
from lab.settings import REPOSITORY
from release import archives
from release.parts import chart, images, packages, pages, plugin, system
from release.source import Source

EPOCH = 1_700_000_000
DIGEST = f"sha256:{'a' * 64}"


@pytest.fixture
def source(tmp_path: Path) -> Source:
    folder = tmp_path / "source"
    folder.mkdir()
    return Source(folder, "c" * 40, EPOCH, "1.2.3")


def test_an_archive_depends_on_names_and_contents_alone(tmp_path: Path) -> None:
    made = []
    for place, time in (("one", 1), ("another", 2)):
        folder = tmp_path / place
        folder.mkdir()
        (folder / "program").write_text("x")
        (folder / "program").chmod(0o750 if time == 1 else 0o700)
        os.utime(folder / "program", (time, time))
        files: dict[str, Path | bytes] = {"b": b"text", "a": folder / "program"}
        archives.tar_gz(folder / "packed", files if time == 1 else dict(reversed(files.items())), EPOCH)
        made.append((folder / "packed").read_bytes())
    assert made[0] == made[1]
    with tarfile.open(fileobj=BytesIO(made[0])) as packed:
        found = [(entry.name, oct(entry.mode), entry.uid, entry.uname, entry.mtime) for entry in packed]
    assert found == [("a", "0o755", 0, "", EPOCH), ("b", "0o644", 0, "", EPOCH)]


def test_the_chart_gets_the_digest_of_each_image() -> None:
    values = (REPOSITORY / chart.CHART / "values.yaml").read_text()
    digests = {"operator": DIGEST, "seed": f"sha256:{'b' * 64}", "agent": f"sha256:{'c' * 64}"}
    written = yaml.safe_load(chart.with_digests(values, digests))
    assert {name: written["images"][name]["digest"] for name in digests} == digests
    assert written["images"]["analytics"]["digest"] == ""


def test_a_value_without_a_place_for_the_digest_is_an_error_and_not_left_out() -> None:
    with pytest.raises(LabError, match="0 places for the digest of the image operator"):
        chart.with_digests('images:\n  seed: {digest: ""}\n', {"operator": DIGEST})


def test_modules_of_two_pythons_lie_side_by_side(tmp_path: Path) -> None:
    for python in ("311", "312"):
        folder = tmp_path / python
        (folder / "x-1.dist-info").mkdir(parents=True)
        (folder / "x-1.dist-info" / "WHEEL").write_text(python)
        (folder / f"x.cpython-{python}.so").write_text(python)
        (folder / "x.py").write_text("same")
        plugin.merge(folder, tmp_path / "site")
    found = sorted(path.name for path in (tmp_path / "site").iterdir())
    assert found == ["x-1.dist-info", "x.cpython-311.so", "x.cpython-312.so", "x.py"]
    (tmp_path / "312" / "x.py").write_text("for 3.12 alone")
    with pytest.raises(LabError, match=r"plugin: x\.py differs between two versions of Python"):
        plugin.merge(tmp_path / "312", tmp_path / "site")


def test_krew_finds_an_archive_for_each_platform_where_the_maker_says(source: Source, tmp_path: Path) -> None:
    made = {}
    for platform in plugin.PLATFORMS:
        made[platform] = tmp_path / f"{platform.name}.tar.gz"
        made[platform].write_text(platform.name)
    manifest = yaml.safe_load(plugin.krew_manifest(source, made, "https://files.example/1.2.3/"))
    assert manifest["spec"]["version"] == "v1.2.3"
    found = {
        (each["selector"]["matchLabels"]["os"], each["selector"]["matchLabels"]["arch"]): (each["uri"], each["sha256"])
        for each in manifest["spec"]["platforms"]
    }
    assert found == {
        (platform.system, platform.processor): (
            f"https://files.example/1.2.3/{platform.name}.tar.gz",
            archives.digest(made[platform]),
        )
        for platform in plugin.PLATFORMS
    }


def test_without_an_address_the_manifest_invents_no_host(source: Source, tmp_path: Path) -> None:
    (tmp_path / "linux-amd64.tar.gz").write_text("")
    text = plugin.krew_manifest(source, {plugin.PLATFORMS[0]: tmp_path / "linux-amd64.tar.gz"}, "")
    assert "uri: linux-amd64.tar.gz" in text
    assert "://" not in text


def a_layout(folder: Path, processor: str, name: str = "layer") -> Path:
    """What Buildah leaves of an image with one layer, its notes of this machine included."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def stored(content: bytes) -> dict[str, object]:
        digest = archives.digest_of(content)
        (blobs / digest).write_bytes(content)
        return {"digest": f"sha256:{digest}", "size": len(content), "mediaType": "x"}

    line = {"created_by": f"COPY dir:{'0' * 64} in /opt", "comment": f"FROM localhost{folder}"}
    config = stored(json.dumps({"architecture": processor, "history": [line]}).encode())
    layers = [stored(f"{name} of {processor}".encode())]
    notes = {"org.opencontainers.image.base.name": str(folder)}
    manifest = stored(json.dumps({"config": config, "layers": layers, "annotations": notes}).encode())
    (folder / "index.json").write_text(json.dumps({"manifests": [manifest]}))
    return folder


def test_an_image_has_one_index_for_all_processors_and_no_path_of_this_machine(tmp_path: Path) -> None:
    made = [
        images.pack(
            "seed",
            {name: a_layout(tmp_path / place / name, name) for name in images.PROCESSORS},
            tmp_path / f"{place}.tar",
            EPOCH,
        )
        for place in ("one", "another")
    ]
    assert made[0].digest == made[1].digest
    assert made[0].path.read_bytes() == made[1].path.read_bytes()
    assert str(tmp_path).encode() not in made[0].path.read_bytes()
    with tarfile.open(made[0].path) as packed:
        blobs = {entry.name: packed.extractfile(entry).read() for entry in packed}  # type: ignore[union-attr]
    (top,) = json.loads(blobs["index.json"])["manifests"]
    index = json.loads(blobs[f"blobs/sha256/{top['digest'][7:]}"])
    assert [each["platform"]["architecture"] for each in index["manifests"]] == ["amd64", "arm64"]
    manifest = json.loads(blobs[f"blobs/sha256/{index['manifests'][1]['digest'][7:]}"])
    layer = manifest["layers"][0]
    assert gzip.decompress(blobs[f"blobs/sha256/{layer['digest'][7:]}"]) == b"layer of arm64"


def test_the_base_has_nothing_of_the_machine_that_made_it(tmp_path: Path) -> None:
    names = (
        *("./etc/hostname", "./etc/resolv.conf", "./etc/apt/sources.list", "./dev/null", "./var/lib/dpkg/status"),
        *("./usr/lib/python3.11/json/__pycache__/x.pyc", "./var/log/dpkg.log"),
    )
    kept = ("./etc/os-release", "./usr/bin/python3", f"./{system.PACKAGE_FOLDER}/libc6")
    with tarfile.open(tmp_path / "raw", "w") as raw:
        for name in (*names, *kept):
            entry = tarfile.TarInfo(name)
            entry.mtime = EPOCH + 5
            raw.addfile(entry)
    system.keep(tmp_path / "raw", tmp_path / "kept", EPOCH)
    with tarfile.open(tmp_path / "kept") as packed:
        assert [(entry.name, entry.mtime) for entry in packed] == [(name, EPOCH) for name in sorted(kept)]


def test_bytecode_does_not_depend_on_where_it_was_compiled(tmp_path: Path) -> None:
    made = []
    for place in ("one", "another"):
        folder = tmp_path / place
        folder.mkdir()
        (folder / "x.py").write_text("def f():\n    return 1\n")
        os.utime(folder / "x.py", (len(place), len(place)))
        packages.compile_for_image(folder, "/opt/x", f"{sys.version_info.major}.{sys.version_info.minor}")
        (compiled,) = folder.rglob("*.pyc")
        made.append(compiled.read_bytes())
    assert made[0] == made[1]
    assert b"/opt/x/x.py" in made[0]


def test_another_python_than_that_of_the_image_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"the image has 2\.7"):
        packages.compile_for_image(tmp_path, "/opt/x", "2.7")


def test_the_pages_of_a_release_lead_to_each_other_without_a_clone(tmp_path: Path) -> None:
    packed = pages.pack(Source(REPOSITORY, "c" * 40, EPOCH, "1.2.3"), tmp_path)
    with tarfile.open(packed) as archive:
        unpack(archive, tmp_path)
    top = tmp_path / "streamapp-operator-docs-1.2.3"
    read = (top / "README.md", *sorted((top / "docs" / "how-to").glob("*.md")), top / "docs" / "releases.md")
    links = [(page, link) for page in read for link in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text())]
    broken = [f"{page.relative_to(top)}: {link}" for page, link in links if not (page.parent / link).exists()]
    assert len(links) > 50
    assert broken == []
    assert (top / "release" / "verification.py").is_file()
    assert (top / "examples" / "counter" / "src" / "main").is_dir()


def test_the_page_beside_the_archives_has_every_step_and_leads_to_the_pages(tmp_path: Path) -> None:
    source = Source(REPOSITORY, "c" * 40, EPOCH, "1.2.3")
    (tmp_path / "release").mkdir()
    packed = pages.pack(source, tmp_path)
    with tarfile.open(packed) as archive:
        unpack(archive, tmp_path)
    page = pages.instructions(source, tmp_path / "release")
    text = page.read_text()
    steps = ("sha256sum --check", "helm verify", "skopeo copy", "helm install", "helm upgrade", "helm rollback")
    assert [step for step in (*steps, "install ../kubectl-streamapp", "helm uninstall") if step not in text] == []
    links = re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", text)
    assert len(links) >= 5
    assert [link for link in links if not (page.parent / link).exists()] == []
    titles = re.findall(r"^## (.+)$", text, re.MULTILINE)
    anchors = re.findall(r"\]\(#([^)]+)\)", text)
    assert set(anchors) - {title.lower().replace(" ", "-") for title in titles} == set()
