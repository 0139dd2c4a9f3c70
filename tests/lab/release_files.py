"""What the test of an installation needs from a network, made before the lab starts: a release, and a registry.

`python -m tests.lab.release_files` makes both; the test finds them in the lab's cache.
"""

import subprocess
import sys
from pathlib import Path

from lab.build.bases import APT, apt_sources
from lab.build.cache import Cache, content_key
from lab.build.subprocesses import run
from lab.errors import LabError
from lab.settings import REPOSITORY, Settings
from release.source import commit_of

_REGISTRY = "docker-registry"


def release_of_head(settings: Settings) -> Path:
    """Give the release of this commit without signatures, made once for each commit."""

    def build(folder: Path) -> None:
        command = (sys.executable, "-m", "release", "build", str(folder / "release"))
        subprocess.run(command, cwd=REPOSITORY, check=True)

    key = content_key({"commit": commit_of(REPOSITORY, "HEAD")})
    return Cache(settings.cache).entry("release", key, build) / "release"


def registry_program(settings: Settings) -> Path:
    """Give the registry's program from Debian's package, fetched once and not installed: no service starts."""
    cache = Cache(settings.cache)

    def build(folder: Path) -> None:
        log = cache.log(_REGISTRY)
        # The user `_apt` cannot write to the cache.
        fetch = ("apt-get", "download", "-o", "APT::Sandbox::User=root", _REGISTRY)
        outcome = run(fetch, log, folder=folder)
        if outcome.code == 0:
            (package,) = folder.glob("*.deb")
            outcome = run(("dpkg-deb", "--extract", package, folder), log)
        if outcome.code != 0:
            raise LabError(f"{_REGISTRY}: it cannot be fetched", outcome.why(), "apt-get update")

    mirrors = "".join(apt_sources(APT).values())
    return cache.entry(_REGISTRY, content_key({"mirrors": mirrors}), build) / "usr" / "bin" / _REGISTRY


if __name__ == "__main__":
    registry_program(Settings.from_environment())
    release_of_head(Settings.from_environment())
