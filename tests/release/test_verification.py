"""A release is good only if every check holds: each kind of damage is found, by who knows the maker's key or not."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.settings import REPOSITORY
from release import archives
from release.records import checksums
from tests.release.small import CHART, EPOCH, KeyPair, a_key, a_release, sign

CHECKER = REPOSITORY / "release" / "verification.py"
BUNDLE = "streamapp-operator-bundle-1.2.3.tar.gz"
SEED = "streamapp-seed-1.2.3.oci.tar"


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> KeyPair:
    return a_key(tmp_path_factory.mktemp("key"))


@pytest.fixture(scope="module")
def whole(key: KeyPair, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("whole")
    return a_release(place / "release", key, place)


@pytest.fixture
def release(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "release")


def verify(folder: Path, key: KeyPair) -> tuple[int, str]:
    command: list[str | Path] = [sys.executable, "-I", CHECKER, folder, "--key", key.public]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    return ran.returncode, ran.stdout


def test_a_whole_release_is_good_and_each_check_says_so(release: Path, key: KeyPair) -> None:
    code, said = verify(release, key)
    assert (code, said.splitlines()) == (
        0,
        [
            "ok      SHA256SUMS is signed by release.pub",
            "ok      18 files are as listed",
            f"ok      9 artifacts come from commit {'c' * 40}",
            "ok      the chart names the digests of agent, operator, seed",
            "ok      8 artifacts have a bill of materials",
            "ok      the manifest of krew names 4 archives",
        ],
    )


def test_another_key_signed_nothing(release: Path, tmp_path: Path) -> None:
    code, said = verify(release, a_key(tmp_path, "stranger"))
    assert code == 1
    assert said.startswith("BROKEN  SHA256SUMS.sig: stranger.pub did not sign it")
    assert said.endswith("Use nothing of this release.\n")


def changed(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        content = bytearray((folder / name).read_bytes())
        content[len(content) // 2] ^= 1
        (folder / name).write_bytes(content)

    return change


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a byte of an image": (changed(SEED), f"{SEED}: it is not the file that SHA256SUMS lists"),
    "a byte of the chart": (changed(CHART), f"{CHART}: it is not the file that SHA256SUMS lists"),
    "a byte of the list": (changed("SHA256SUMS"), "SHA256SUMS.sig: release.pub did not sign it"),
    "a file too few": (lambda folder: (folder / SEED).unlink(), f"{SEED}: listed in SHA256SUMS, and not there"),
    "a file too many": (lambda folder: (folder / "x.sh").write_text("x"), "x.sh: not listed in SHA256SUMS"),
    "no signature": (lambda folder: (folder / "SHA256SUMS.sig").unlink(), "SHA256SUMS.sig: not found"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found_and_named(release: Path, key: KeyPair, name: str) -> None:
    damage, told = DAMAGES[name]
    damage(release)
    code, said = verify(release, key)
    assert code == 1
    assert told in said


def replaced(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return change


def another_statement(folder: Path) -> None:
    told = json.loads((folder / "provenance.intoto.json").read_text())
    told["subject"].pop()
    (folder / "provenance.intoto.json").write_text(json.dumps(told))


def state_what_is_there(folder: Path) -> None:
    told = json.loads((folder / "provenance.intoto.json").read_text())
    if (folder / BUNDLE).exists():
        told["subject"].append({"name": BUNDLE, "digest": {}})
    for each in told["subject"]:
        each["digest"]["sha256"] = archives.digest(folder / each["name"])
    (folder / "provenance.intoto.json").write_text(json.dumps(told))


def no_bill(folder: Path) -> None:
    (folder / f"{SEED}.cdx.json").unlink()


def swapped_images(folder: Path) -> None:
    (folder / SEED).write_bytes((folder / SEED.replace("seed", "agent")).read_bytes())


def another_bundle(folder: Path) -> None:
    version = f"image: registry.example/streamapp/seed@sha256:{'0' * 64}\n"
    files: dict[str, Path | bytes] = {"manifests/streamapp-operator.clusterserviceversion.yaml": version.encode()}
    archives.tar_gz(folder / BUNDLE, files, EPOCH)


MISTAKES: dict[str, tuple[Callable[[Path], object], str]] = {
    "statement": (another_statement, "provenance.intoto.json: it names 8 artifacts, and 9 are there"),
    "bill": (no_bill, f"{SEED}: no bill of materials {SEED}.cdx.json"),
    "image": (swapped_images, f"{CHART}: it names the images"),
    "bundle": (another_bundle, f"{BUNDLE}: it names the images"),
    "krew": (replaced("streamapp.krew.yaml", "sha256: ", "sha256: 0"), "streamapp.krew.yaml: it names other archives"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_maker_who_signs_what_does_not_fit_together_is_found_too(release: Path, key: KeyPair, name: str) -> None:
    mistake, told = MISTAKES[name]
    mistake(release)
    (release / checksums.NAME).unlink()
    signatures = [path for path in release.iterdir() if path.name.endswith((".sig", ".dsse.json"))]
    for path in signatures:
        path.unlink()
    if name != "statement":
        state_what_is_there(release)
    checksums.write(release)
    sign(release, key)
    code, said = verify(release, key)
    assert code == 1
    assert told in said
