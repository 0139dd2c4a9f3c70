"""A whole release: the same bytes from two clones, signed, checked where nothing else is, and started on arm64."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.settings import REPOSITORY
from release import archives
from release.records import checksums
from tests.release.small import KeyPair, a_key, an_openpgp_key

pytestmark = [
    pytest.mark.release,
    # Two builds took an hour beside other work: no clock decides here.
    pytest.mark.timeout(3 * 3600),
    pytest.mark.skipif(os.geteuid() != 0, reason="images and root file systems take root"),
]
EMULATOR = "qemu-aarch64-static"


NO_NETWORK = ("unshare", "--net")
"""A network namespace of its own, with no device in it that is up."""


def run(*command: str | Path, folder: Path = REPOSITORY) -> str:
    """Run a command in a clone, on this Python with all that is installed; give its steps with their seconds."""
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{command}\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}"
    return "".join(line for line in ran.stderr.splitlines(keepends=True) if line.startswith("✓"))


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    """Two releases of this commit, from clones at two paths."""
    top = tmp_path_factory.mktemp("builds")
    made = []
    for place in ("one", "quite/another/place"):
        clone = top / place / "clone"
        run("git", "clone", "--quiet", REPOSITORY, clone)
        made.append(top / place / "release")
        print(place, run(sys.executable, "-m", "release", "build", made[-1], folder=clone), sep="\n")  # noqa: T201 -- figures for the reader
    yield made
    shutil.rmtree(top)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[KeyPair, KeyPair]:
    return a_key(tmp_path_factory.mktemp("key")), an_openpgp_key(tmp_path_factory.mktemp("g"))


@pytest.fixture(scope="module")
def release(builds: list[Path], keys: tuple[KeyPair, KeyPair]) -> Path:
    own, openpgp = keys
    signs = ("sign", builds[0], "--key", own.private, "--openpgp-key", openpgp.private)
    run(*NO_NETWORK, sys.executable, "-m", "release", *signs)
    return builds[0]


def test_two_clones_give_the_same_bytes(builds: list[Path]) -> None:
    listed = [(folder / checksums.NAME).read_text().splitlines() for folder in builds]
    assert set(listed[0]) ^ set(listed[1]) == set()


def verify(release: Path, keys: tuple[KeyPair, KeyPair]) -> subprocess.CompletedProcess[str]:
    given = ("--key", keys[0].public, "--openpgp-key", keys[1].public)
    command = (sys.executable, "-m", "release", "verify", release, *given)
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)


def test_it_is_good_where_only_it_and_the_keys_are(release: Path, keys: tuple[KeyPair, KeyPair]) -> None:
    checked = verify(release, keys)
    lines = checked.stdout.splitlines()
    assert (checked.returncode, len(lines)) == (0, 8), checked.stdout + checked.stderr
    assert {line[:3] for line in lines} == {"ok "}
    assert "kubectl-streamapp-" in lines[-1]


def test_a_changed_image_is_found_there(release: Path, keys: tuple[KeyPair, KeyPair], tmp_path: Path) -> None:
    broken = shutil.copytree(release, tmp_path / "broken")
    image = next(broken.glob("streamapp-operator-*.oci.tar"))
    content = bytearray(image.read_bytes())
    content[len(content) // 2] ^= 1
    image.write_bytes(content)
    checked = verify(broken, keys)
    assert checked.returncode == 1
    assert f"{image.name}: it is not the file that SHA256SUMS lists" in checked.stdout


def unpacked(archive: Path, processor: str, target: Path) -> Path:
    """Lay out all layers of an image for a processor."""
    with tarfile.open(archive) as packed:
        blobs = {
            entry.name.rpartition("/")[2]: packed.extractfile(entry).read()  # type: ignore[union-attr]
            for entry in packed
        }
    (top,) = json.loads(blobs["index.json"])["manifests"]
    index = json.loads(blobs[top["digest"][7:]])
    (own,) = [each for each in index["manifests"] if each["platform"]["architecture"] == processor]
    manifest = json.loads(blobs[own["digest"][7:]])
    config = json.loads(blobs[manifest["config"]["digest"][7:]])
    assert config["architecture"] == processor
    for layer in manifest["layers"]:
        target.mkdir(exist_ok=True)
        unpack: list[str | Path] = ["tar", "--extract", "--gzip", "--directory", target]
        subprocess.run(unpack, input=blobs[layer["digest"][7:]], check=True)
    return target


def test_the_images_of_arm64_start(release: Path, tmp_path: Path) -> None:
    assert shutil.which(EMULATOR), "apt-get install qemu-user-static"
    root = unpacked(next(release.glob("streamapp-operator-*.oci.tar")), "arm64", tmp_path / "operator")
    shutil.copy(shutil.which(EMULATOR) or "", root / "emulator")
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "PYTHONPATH": "/opt/streamapp:/opt/dependencies",
        "PYTHONSAFEPATH": "1",
    }
    command: list[str | Path] = ["chroot", root, "/emulator", "/usr/bin/python3", "-m", "streamapp"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    # It has read its modules and its settings, which lack an image.
    assert (ran.returncode, "STREAMAPP_SEED_IMAGE is empty" in ran.stderr) == (1, True), ran.stderr
    asked = "import aiohttp, kio, kopf, crc32c, platform, ssl; print(platform.machine())"
    loaded = subprocess.run([*command[:4], "-c", asked], env=environment, capture_output=True, text=True, check=False)
    assert loaded.stdout == "aarch64\n", loaded.stderr
    for name, program in (("seed", "seed"), ("agent", "bring")):
        root = unpacked(next(release.glob(f"streamapp-{name}-*.oci.tar")), "arm64", tmp_path / name)
        started = subprocess.run([EMULATOR, root / program], env={}, capture_output=True, text=True, check=False)
        assert started.returncode in {1, 2, 64}, started.stderr
        assert "unsupported" not in started.stderr
        assert started.stderr + started.stdout
    jar = unpacked(next(release.glob("streamapp-agent-*.oci.tar")), "amd64", tmp_path / "jar") / "streamapp-agent.jar"
    assert archives.digest(jar) == archives.digest(next(release.glob("streamapp-agent-*.jar")))
