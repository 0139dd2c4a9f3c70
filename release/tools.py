"""Builds the judges of workflow files and of bundles from their Go modules, and asks programs for their versions.

Called by the command line and the test of the workflows. What they make is in the lab's cache: it is no part of a
release.
"""

import subprocess
from pathlib import Path

from lab.build.cache import Cache, content_key
from lab.build.labkube import go_environment
from lab.build.subprocesses import COLOUR, Command, run
from lab.build.toolchains import find_or_fetch_go
from lab.errors import LabError
from lab.settings import Versions
from lab.terminal import step


def actionlint(versions: Versions, cache: Cache) -> Path:
    """Give actionlint, which judges workflow files."""
    module = f"github.com/rhysd/actionlint/cmd/actionlint@v{versions.actionlint}"
    return _install("actionlint", module, "-s -w", versions, cache)


def operator_verify(versions: Versions, cache: Cache) -> Path:
    """Give the judge of bundles, with the validators that operator-sdk has; ten minutes the first time."""
    module = f"github.com/operator-framework/api/cmd/operator-verify@v{versions.operator_framework_api}"
    return _install("operator-verify", module, "-s -w", versions, cache)


def _install(name: str, module: str, flags: str, versions: Versions, cache: Cache) -> Path:
    command: Command = ["install", "-trimpath", "-ldflags", flags, module]

    def build(folder: Path) -> None:
        go = find_or_fetch_go(versions, cache)
        with step(f"Build {name}, once: minutes"):
            environment = go_environment() | {"GOBIN": str(folder), "CGO_ENABLED": "0"}
            outcome = run([go, *command], cache.log(name), environment=environment)
        if outcome.code != 0:
            raise LabError(
                f"{name}: it could not be built",
                outcome.why(noise=r"^\s*$|^go: downloading "),
                "check the network and GOPROXY; what was fetched stays fetched, so run it again",
            )

    return cache.entry(name, content_key({"command": " ".join(map(str, command))}), build) / name


def first_line(*command: str | Path) -> str:
    """Give the first line that a program says of its version; `not found` where there is none."""
    try:
        asked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except FileNotFoundError:
        return "not found"
    return COLOUR.sub("", asked.stdout or asked.stderr).strip().partition("\n")[0]
