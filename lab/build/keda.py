"""Builds KEDA for the lab's test of an autoscaler by consumer lag: one image, and KEDA's own manifests beside it.

Called by `python -m lab build --keda` and by that test alone, since compiling it takes a quarter of an hour. The
module in `lab/keda` names KEDA and what KEDA replaces; its `go.mod` and `go.sum` are what the programs are.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from lab.build.cache import Cache, content_key
from lab.build.chart_tools import module_sources
from lab.build.images import BuiltImage, Image, build_image
from lab.build.labkube import go_environment
from lab.build.subprocesses import Command, fetch
from lab.build.toolchains import find_or_fetch_go
from lab.errors import LabError
from lab.settings import LAB, Settings, Versions
from lab.terminal import step

MODULE = "github.com/kedacore/keda/v2"
SOURCES = LAB / "keda"
DOCKERFILE = LAB / "images" / "keda" / "Dockerfile"
PROGRAMS = {"operator": "keda", "adapter": "keda-adapter"}
"""By the name of each program's folder in the module, the name that KEDA's manifests start it by."""
FLAGS = ("-trimpath", "-buildvcs=false", "-ldflags=-s -w")


@dataclass(frozen=True)
class BuiltKeda:
    """What the test of an autoscaler by lag deploys."""

    image: BuiltImage
    """Has both programs, under the names of `PROGRAMS`."""
    manifests: Path
    """A copy of the module's folder `config`; `minimal` in it is a kustomization without webhooks."""


def build_keda(settings: Settings) -> BuiltKeda:
    """Build the image unless the cache has it. Raises LabError."""
    versions, cache = settings.versions, Cache(settings.cache)
    programs = _programs(versions, cache)
    context = {name: programs / name for name in PROGRAMS.values()}
    image = build_image(Image("streamapp/keda", versions.keda, DOCKERFILE, context), versions, cache)
    return BuiltKeda(image, _manifests(versions, cache))


def _programs(versions: Versions, cache: Cache) -> Path:
    """Give the folder with both programs; a quarter of an hour the first time."""
    inputs: dict[str, str | Path] = {name: SOURCES / name for name in ("go.mod", "go.sum")}
    packages = [f"{MODULE}/cmd/{folder}" for folder in PROGRAMS]

    def build(folder: Path) -> None:
        go = find_or_fetch_go(versions, cache)
        with step(f"Build KEDA {versions.keda}, once: a quarter of an hour"):
            command: Command = [go, "build", *FLAGS, "-o", f"{folder}/", *packages]
            outcome = fetch(command, cache.log("keda"), folder=SOURCES, environment=go_environment())
        if outcome.code != 0:
            raise LabError(
                f"KEDA {versions.keda}: it could not be built",
                outcome.why(noise=r"^\s*$|^go: downloading "),
                "check the network and GOPROXY; what was fetched stays fetched, so run it again",
            )
        for built, name in PROGRAMS.items():
            (folder / built).rename(folder / name)

    return cache.entry("keda", content_key(inputs | {"flags": " ".join([*FLAGS, *packages])}), build)


def _manifests(versions: Versions, cache: Cache) -> Path:
    """Give a copy of KEDA's manifests, which lie beside its programs in the module."""
    version = f"v{versions.keda}"

    def build(folder: Path) -> None:
        go = find_or_fetch_go(versions, cache)
        with step("Fetch the manifests of KEDA"):
            # Modules are read-only, and so would be the copy: nobody could remove it.
            shutil.copytree(
                module_sources(go, MODULE, version) / "config", folder / "config", copy_function=shutil.copyfile
            )
            for path in (folder / "config").rglob("*"):
                path.chmod(0o755 if path.is_dir() else 0o644)
            (folder / "config").chmod(0o755)

    return cache.entry("keda-manifests", content_key({"version": version}), build) / "config"
