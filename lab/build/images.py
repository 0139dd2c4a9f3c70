"""Builds container images without a registry: one Dockerfile for the embedded lab and for everybody who has Docker.

Called by `lab.build.plan`. Buildah builds each image in a storage of its own that is gone afterwards and leaves a
docker-archive tar, which containerd imports; where Docker is, `build_with_docker` gives it the same files. The
difference is the base: a Dockerfile names a public one as the default of its `BASE` argument, which Docker pulls, and
the embedded lab puts one of its own (`lab.build.bases`) in its place.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lab.build.cache import Cache, content_key
from lab.build.subprocesses import Command, ToolResult, run
from lab.build.toolchains import find, needed
from lab.errors import LabError
from lab.settings import Versions
from lab.terminal import step

ARCHIVE = "image.tar"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
"""What this machine trusts, its company's proxy perhaps: RUN steps see it, the image keeps its own."""


@dataclass(frozen=True)
class BuiltImage:
    """An image in a tar that `ctr images import` and `docker load` read."""

    reference: str
    """What pods name, for example `localhost/streamapp/kafka:4.2.1`."""
    archive: Path
    """The docker-archive tar, in the cache."""


@dataclass(frozen=True)
class Image:
    """What an image is made of."""

    name: str
    """Without registry and tag, for example `streamapp/kafka`."""
    tag: str
    dockerfile: Path
    context: Mapping[str, Path]
    """Files and folders by the name that the Dockerfile copies them under: it sees these and no others."""
    base: BuiltImage | None = None
    """Takes the place of the Dockerfile's default base in the embedded lab."""
    build_args: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, BuiltImage] = field(default_factory=dict)
    """Images that it copies from, by the argument that names them: they too take the place of public ones."""

    @property
    def reference(self) -> str:
        """The full name. Its registry cannot exist, so nobody ever pulls the image by mistake."""
        return f"localhost/{self.name}:{self.tag}"

    @property
    def entry(self) -> str:
        """The name of its entry in the cache."""
        return f"image-{self.name.rpartition('/')[2]}"


def build_image(image: Image, versions: Versions, cache: Cache) -> BuiltImage:
    """Build an image with Buildah unless the cache has it.

    Raises LabError that names the image, the step of its Dockerfile that failed and what the tool said.
    """
    inputs = {f"context {name}": _content(path, cache) for name, path in image.context.items()}
    inputs |= {f"argument {name}": value for name, value in image.build_args.items()}
    inputs |= {"dockerfile": image.dockerfile, "reference": image.reference}
    inputs |= {f"image {name}": _content(part.archive, cache) for name, part in image.parts.items()}
    if image.base is not None:
        inputs["base"] = _content(image.base.archive, cache)

    def build(folder: Path) -> None:
        with step(f"Build image {image.reference}"):
            _build_archive(image, folder / ARCHIVE, versions, cache)

    entry = cache.entry(image.entry, content_key(inputs), build)
    return BuiltImage(image.reference, entry / ARCHIVE)


def _content(path: Path, cache: Cache) -> str | Path:
    """Stand for a path in a key: the path of a cache's entry tells its content, so that nobody reads it all again."""
    return f"entry {path.relative_to(cache.folder)}" if path.is_relative_to(cache.folder) else path


def build_with_docker(image: Image, log: Path) -> str:
    """Build the same image with the machine's Docker, on the Dockerfile's own base; give its full name."""
    docker = shutil.which("docker")
    if docker is None:
        raise LabError(f"image {image.name}: it cannot be built", "no docker in PATH", "install Docker")
    with step(f"Build image {image.reference}"), assembled(image, None) as context:
        outcome = run([docker, "build", "--tag", image.reference, *_arguments(image), context], log)
        if outcome.code != 0:
            raise failed(image, outcome)
    return image.reference


def _build_archive(image: Image, archive: Path, versions: Versions, cache: Cache) -> None:
    """Build with a fresh storage below the archive's folder: a killed build then leaves nothing elsewhere.

    The storage driver is vfs: it mounts nothing and works on every file system, and copying a base of a hundred
    megabytes costs under a second.
    """
    with tempfile.TemporaryDirectory(dir=archive.parent) as storage, assembled(image, archive.parent) as context:
        places = ["--root", f"{storage}/root", "--runroot", f"{storage}/run", "--storage-driver", "vfs"]
        arguments = ["--tag", f"docker-archive:{archive}:{image.reference}", *_arguments(image)]
        for name, part in {**image.parts, **({"BASE": image.base} if image.base else {})}.items():
            arguments += ["--build-arg", f"{name}=docker-archive:{part.archive}"]
        if CERTIFICATES.is_file():
            arguments += ["--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro"]
        command: Command = [find(needed(versions)["buildah"]), *places, "build", *arguments, context]
        environment = {**os.environ, "BUILDAH_ISOLATION": "chroot", "TMPDIR": storage}
        outcome = run(command, cache.log(image.entry), environment=environment)
    if outcome.code != 0:
        raise failed(image, outcome)


def _arguments(image: Image) -> list[str]:
    """Give what Buildah and Docker both understand."""
    arguments = ["--file", str(image.dockerfile)]
    for name, value in image.build_args.items():
        arguments += ["--build-arg", f"{name}={value}"]
    return arguments


@contextmanager
def assembled(image: Image, below: Path | None) -> Iterator[Path]:
    """Copy the context together below a folder, by default the system's temporary one."""
    with tempfile.TemporaryDirectory(dir=below) as folder:
        for name, path in image.context.items():
            target = Path(folder, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                shutil.copytree(path, target, symlinks=True)
            else:
                shutil.copy(path, target)
        yield Path(folder)


def failed(image: Image, outcome: ToolResult) -> LabError:
    """Name the step of the Dockerfile that failed, which both tools quote in their last words."""
    steps = re.findall(r'building at STEP "(.*?)": |ERROR: failed to \w+: (.*)', "\n".join(outcome.last_lines))
    next_step = f"mend {image.dockerfile} or what it copies; where a registry did not answer, check the network"
    at = f" at {''.join(steps[-1])}" if steps else ""
    return LabError(f"image {image.name}: the build failed{at}", outcome.why(), next_step)
