"""Compiles the program of the seed image, which prepares the volume of each pod: one static binary.

Called by `lab.build.plan`. Its sources need nothing but Go's standard library.
"""

import os
from pathlib import Path

from lab.build.cache import Cache, content_key
from lab.build.running import Command, run
from lab.build.toolchains import find_or_fetch_go
from lab.errors import LabError
from lab.settings import REPOSITORY, Versions
from lab.terminal import step

SOURCES = REPOSITORY / "operator" / "images" / "seed"


def seed_program(versions: Versions, cache: Cache) -> Path:
    """Give the program."""
    go = find_or_fetch_go(versions, cache)
    sources = [path for path in sorted(SOURCES.glob("*.go")) if not path.name.endswith("_test.go")]
    inputs: dict[str, str | Path] = {path.name: path for path in [*sources, SOURCES / "go.mod"]}

    def build(folder: Path) -> None:
        with step("Compile seed"):
            command: Command = [go, "build", "-trimpath", "-ldflags=-s", "-o", folder / "seed", "."]
            environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOWORK": "off"}
            outcome = run(command, cache.log("seed"), folder=SOURCES, environment=environment)
        if outcome.code != 0:
            raise LabError("seed: it does not compile", outcome.why(), f"mend {SOURCES}")

    return cache.entry("seed", content_key(inputs), build) / "seed"
