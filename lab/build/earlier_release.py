"""Builds the product as it was at an earlier commit, for the tests of upgrade and downgrade: images and chart.

Called by `python -m lab build --earlier`, and by the test, which finds in the cache what that command made. The sources
come from the history of this clone; compilers and bases of the images are today's.
"""

import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.archives import unpack
from lab.build import bases, maven, python_packages
from lab.build.cache import Cache, content_key
from lab.build.images import BuiltImage, Image, build_image
from lab.build.init_programs import init_program
from lab.build.plan import LICENCES
from lab.build.subprocesses import Command, run
from lab.errors import LabError
from lab.settings import REPOSITORY, Settings
from lab.terminal import step

COMMIT = "9e00eca3abde30925502fcb7e98aee740f88f5d8"
"""The last release, or the candidate of the first one, by its hash since a clone can lack tags. From it and to it an
operator is replaced without a restart. `python -m release begin` writes it."""
TAG = f"at-{COMMIT[:12]}"


@dataclass(frozen=True)
class EarlierRelease:
    """What `helm install` needs of it."""

    chart: Path
    images: Mapping[str, BuiltImage]
    """By short name: `operator`, `seed`, `agent`."""


def build_earlier_release(settings: Settings) -> EarlierRelease:
    """Build what is not in the cache yet; LabError, also if the history of this clone does not reach back so far."""
    versions, cache = settings.versions, Cache(settings.cache)
    sources = sources_of_commit(cache)
    folders = {name: sources / "operator" / "images" / name for name in ("operator", "seed", "agent")}
    jar = maven.agent_jar(versions, cache, sources / "agent") / maven.AGENT_JAR
    contexts: dict[str, dict[str, Path]] = {
        "operator": {
            "dependencies": python_packages.dependencies("operator", cache, sources),
            "streamapp": python_packages.product(cache, sources),
        },
        "seed": {"seed": init_program(folders["seed"], "seed", versions, cache), **LICENCES},
        "agent": {
            "bring": init_program(folders["agent"], "bring", versions, cache),
            maven.AGENT_JAR: jar,
            **LICENCES,
        },
    }
    python = bases.debian_python(versions, cache)
    made = {
        name: Image(
            f"streamapp/{name}", TAG, folders[name] / "Dockerfile", context, python if name == "operator" else None
        )
        for name, context in contexts.items()
    }
    images = {name: build_image(image, versions, cache) for name, image in made.items()}
    return EarlierRelease(sources / "charts" / "streamapp-operator", images)


def sources_of_commit(cache: Cache) -> Path:
    """Give the folder with the files of the commit; LabError if the history does not have it."""
    name = "earlier-sources"

    def build(folder: Path) -> None:
        archive = folder / "sources.tar"
        with step(f"Take the sources of {COMMIT[:12]} from the history"):
            command: Command = ["git", "-C", REPOSITORY, "archive", f"--output={archive}", COMMIT]
            outcome = run(command, cache.log(name))
            if outcome.code != 0:
                what = f"commit {COMMIT[:12]}: its files cannot be read"
                raise LabError(what, outcome.why(), "use a clone with its whole history: git fetch --unshallow")
            with tarfile.open(archive) as files:
                unpack(files, folder)
        archive.unlink()

    return cache.entry(name, content_key({"commit": COMMIT}), build)
