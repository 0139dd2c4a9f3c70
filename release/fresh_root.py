"""Checks a release in a fresh root file system that has nothing but the release, the public keys and the checker.

Called by the command line. The system is Debian with Python, openssl and gpgv; it has no network and sees no file of
this machine. So what it says does not depend on the clone, and a user can repeat it anywhere.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

from lab.build.bases import APT, apt_sources, fetch_debian
from lab.build.cache import Cache, content_key
from lab.errors import LabError
from lab.settings import Settings
from lab.terminal import step

PACKAGES = ("gpgv", "openssl", "python3", "python3-venv")
CHECKER = Path(__file__).with_name("verification.py")
SYSTEM = "system.tar"


def verify(folder: Path, key: Path, openpgp_key: Path, settings: Settings) -> int:
    """Run all checks in there, their lines on this terminal; give 0 if all hold. Root is needed.

    Raises LabError where a file is missing or the system cannot be made.
    """
    for path in (folder / "SHA256SUMS", key, openpgp_key):
        if not path.is_file():
            raise LabError(
                f"verify: {path} not found",
                "there is no such file",
                "name the folder of the release and both public keys",
            )
    packed = _system(settings)
    with tempfile.TemporaryDirectory(prefix="verify-release-") as place:
        root = Path(place)
        with step("Lay out a fresh root file system"):
            # Devices of the kernel are left out: nothing here needs more than these two.
            _run("tar", "--extract", "--file", packed, "--directory", root, "--exclude", "./dev/*")
            for device, minor in (("null", "3"), ("urandom", "9")):
                _run("mknod", "--mode=0666", root / "dev" / device, "c", "1", minor)
            shutil.copytree(folder, root / "release")
            for name, path in (("release.pub", key), ("openpgp.pub", openpgp_key), ("check.py", CHECKER)):
                shutil.copy(path, root / name)
        inside = ["/usr/bin/python3", "-I", "/check.py", "/release", "--install"]
        keys = ["--key", "/release.pub", "--openpgp-key", "/openpgp.pub"]
        # A network namespace of its own, with no device in it that is up.
        command = ["unshare", "--net", "--ipc", "--uts", "chroot", str(root), *inside, *keys]
        return subprocess.run(command, check=False, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}).returncode


def _system(settings: Settings) -> Path:
    """Give the tar of the system, made once from the mirrors that the machine itself uses."""
    cache = Cache(settings.cache)
    options = ("--variant=minbase", f"--include={','.join(PACKAGES)}")

    def build(folder: Path) -> None:
        with step("Fetch the Debian packages of the fresh root file system"):
            log = cache.log("fresh-root")
            fetch_debian("fresh root file system", options, folder / SYSTEM, settings.versions, log)

    inputs = {"options": " ".join(options), "mirrors": "".join(apt_sources(APT).values())}
    return cache.entry("fresh-root", content_key(inputs), build) / SYSTEM


def _run(*command: str | Path) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise LabError(
            f"fresh root file system: {command[0]} failed",
            ran.stderr.strip(),
            "run it as root, on a disk with 2 GB free",
        )
