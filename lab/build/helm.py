"""Builds Helm as its authors released it: `go install` of a version, from the module proxy.

Helm 4 is part of every lab and installs the operator there. Helm 3 only renders the chart in its tests, which ask for
it themselves, so that nobody waits for it before a lab is up.
"""

import subprocess
from pathlib import Path

from lab.build.cache import Cache, content_key
from lab.build.labkube import go_environment
from lab.build.running import Command, run
from lab.build.toolchains import find_or_fetch_go
from lab.errors import LabError
from lab.settings import Versions
from lab.terminal import step


def build_helm(versions: Versions, cache: Cache, major: int = 4) -> Path:
    """Give the folder that holds `helm`, of the pinned version of that major number (3 or 4).

    Raises LabError if there is no Go, a module cannot be fetched, or the program reports another version.
    """
    version = {3: versions.helm_3, 4: versions.helm}[major]
    module = f"helm.sh/helm/v{major}"
    name = f"helm-{major}"
    flags = f"-s -w -X {module}/internal/version.version=v{version}"
    command: Command = ["install", "-trimpath", "-ldflags", flags, f"{module}/cmd/helm@v{version}"]

    def build(folder: Path) -> None:
        go = find_or_fetch_go(versions, cache)
        with step(f"Build Helm {version}, once: a minute or two"):
            outcome = run([go, *command], cache.log(name), environment=go_environment() | {"GOBIN": str(folder)})
        if outcome.code != 0:
            raise LabError(
                f"Helm {version}: it could not be built",
                outcome.why(noise=r"^\s*$|^go: downloading "),
                "check the network and GOPROXY; what was fetched stays fetched, so run it again",
            )
        _check_version(folder / "helm", version)

    # A newer Go gives the same program for our purpose: nobody waits for that.
    return cache.entry(name, content_key({"command": " ".join(map(str, command))}), build)


def _check_version(program: Path, version: str) -> None:
    """Expect the pinned version: the linker says nothing about a variable that has moved elsewhere."""
    asked = subprocess.run(
        [program, "version", "--template", "{{.Version}}"], capture_output=True, text=True, check=False, timeout=30
    )
    if asked.stdout.strip() != f"v{version}":
        raise LabError(
            f"Helm {version}: it reports a wrong version",
            f"it says {(asked.stdout or asked.stderr).strip()!r}",
            "look where this release keeps its version, and mend lab/build/helm.py",
        )
