"""Compiles the programs of the init containers that the operator adds to pods: static binaries.

Called by `lab.build.plan`. Their sources need nothing but Go's standard library.
"""

import os
from pathlib import Path

from lab.build.cache import Cache, content_key
from lab.build.subprocesses import Command, run
from lab.build.toolchains import find_or_fetch_go
from lab.errors import LabError
from lab.settings import REPOSITORY, Versions
from lab.terminal import step

SEED = REPOSITORY / "operator" / "images" / "seed"
"""Prepares the volume of each pod."""
AGENT = REPOSITORY / "operator" / "images" / "agent"
"""Brings the agent's jar into each pod."""


def init_program(sources: Path, name: str, versions: Versions, cache: Cache, processor: str = "") -> Path:
    """Give the program of one of these folders, called `name`, for a processor by Go's name or for this machine's."""
    go = find_or_fetch_go(versions, cache)
    files = [path for path in sorted(sources.glob("*.go")) if not path.name.endswith("_test.go")]
    inputs: dict[str, str | Path] = {path.name: path for path in [*files, sources / "go.mod"]}
    target = {"GOOS": "linux", "GOARCH": processor} if processor else {}
    inputs |= target

    def build(folder: Path) -> None:
        with step(f"Compile {name}"):
            command: Command = [go, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s", "-o", folder / name, "."]
            environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOWORK": "off", **target}
            outcome = run(command, cache.log(name), folder=sources, environment=environment)
        if outcome.code != 0:
            raise LabError(f"{name}: it does not compile", outcome.why(), f"mend {sources}")

    return cache.entry(name, content_key(inputs), build) / name
