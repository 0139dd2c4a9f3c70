"""Signatures by keys from files: what is no key is refused first, and nothing leaves the machine."""

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.build.cache import Cache
from lab.build.chart_tools import build_helm
from lab.errors import LabError
from lab.settings import REPOSITORY, Settings
from release import archives, signing, verification
from release.parts import chart
from release.records import checksums
from release.signing import Keys
from release.source import Source
from tests.release.small import CHART, EPOCH, KeyPair, a_key, a_release, an_openpgp_key, gpg, openssl

DIGESTS = {name: f"sha256:{digit * 64}" for name, digit in (("operator", "a"), ("seed", "b"), ("agent", "c"))}


@pytest.fixture(scope="module")
def openpgp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyPair]:
    home = tmp_path_factory.mktemp("g")
    yield an_openpgp_key(home)
    gpg(home, "--yes", "--quiet", "--list-keys")
    subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> KeyPair:
    return a_key(tmp_path_factory.mktemp("key"))


def test_without_a_key_the_command_says_how_to_name_one() -> None:
    with pytest.raises(LabError, match="no key is named") as raised:
        signing.check(Keys(Path(), Path()))
    assert "make release KEY=release.pem OPENPGP_KEY=secret.gpg" in raised.value.next_step


def test_a_key_that_is_not_there_or_of_another_kind_is_refused_with_the_command_that_makes_one(
    tmp_path: Path, key: KeyPair
) -> None:
    with pytest.raises(LabError, match="none: not found") as raised:
        signing.check(Keys(tmp_path / "none", key.private))
    assert "openssl ecparam -genkey -name prime256v1" in raised.value.next_step
    (tmp_path / "rsa.pem").write_bytes(openssl("genrsa", "2048"))
    with pytest.raises(LabError, match=r"rsa\.pem: not usable"):
        signing.check(Keys(tmp_path / "rsa.pem", key.private))
    with pytest.raises(LabError, match="no private OpenPGP key in it"):
        signing.check(Keys(key.private, key.private))


@pytest.mark.slow
def test_a_public_openpgp_key_cannot_sign_and_is_refused(key: KeyPair, openpgp: KeyPair) -> None:
    signing.check(Keys(key.private, openpgp.private))
    with pytest.raises(LabError, match="no private OpenPGP key in it"):
        signing.check(Keys(key.private, openpgp.public))


def a_chart(helm: Path, place: Path) -> Path:
    """The project's own chart, packed below a folder of its own from files of another time."""
    folder = place / "source"
    shutil.copytree(REPOSITORY / chart.CHART, folder / chart.CHART)
    for path in (folder / chart.CHART).rglob("*"):
        os.utime(path, (EPOCH, EPOCH))
    (place / "work").mkdir()
    (place / "made").mkdir()
    source = Source(folder, "c" * 40, EPOCH, "1.2.3")
    return chart.pack(source, DIGESTS, {"artifacthub.io/prerelease": "false"}, helm, place / "work", place / "made")


@pytest.fixture(scope="module")
def helm() -> Path:
    settings = Settings.from_environment()
    return build_helm(settings.versions, Cache(settings.cache)) / "helm"


@pytest.mark.chart
def test_the_chart_is_the_same_bytes_wherever_it_is_packed(helm: Path, tmp_path: Path) -> None:
    made = [a_chart(helm, tmp_path / place) for place in ("one", "another/place")]
    assert made[0].read_bytes() == made[1].read_bytes()
    with tarfile.open(made[0]) as packed:
        assert {entry.mtime for entry in packed} == {EPOCH}


@pytest.mark.chart
@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace takes root")
def test_signing_needs_no_network_and_leaves_no_key(helm: Path, key: KeyPair, openpgp: KeyPair, tmp_path: Path) -> None:
    folder = a_release(tmp_path / "release", key, tmp_path)
    packed = a_chart(helm, tmp_path / "chart")
    (folder / CHART).unlink()
    shutil.copy(packed, folder)
    (folder / checksums.NAME).unlink()
    for name in (signing.SIGNATURE, signing.ENVELOPE):
        (folder / name).unlink()
    checksums.write(folder)
    # A namespace with no device that is up: whatever would leave the machine fails here.
    command: list[str | Path] = ["unshare", "--net", sys.executable, "-m", "release", "sign", folder]
    keys: list[str | Path] = ["--key", key.private, "--openpgp-key", openpgp.private]
    ran = subprocess.run([*command, *keys], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    public: list[str | Path] = ["-verify", key.public, "-signature", folder / signing.SIGNATURE]
    assert openssl("dgst", "-sha256", *public, folder / checksums.NAME) == b"Verified OK\n"
    ring = tmp_path / "ring.gpg"
    ring.write_bytes(gpg(openpgp.private.parent, "--export"))
    verified = subprocess.run(
        [helm, "verify", "--keyring", ring, folder / packed.name], capture_output=True, text=True, check=False
    )
    assert verified.returncode == 0, verified.stderr
    assert f"sha256:{archives.digest(packed)}" in verified.stdout
    assert f"{packed.name} is signed by public.asc" == verification.check_chart(folder, openpgp.public)
    secrets = (key.private.read_bytes().splitlines()[1], openpgp.private.read_bytes()[-64:])
    found = [path.name for path in folder.iterdir() if any(secret in path.read_bytes() for secret in secrets)]
    assert found == []
