"""Builds the images of operator, seed and agent for every processor, each as one OCI archive with an index.

Called by `release.build`. Buildah builds from the project's own Dockerfiles. None of them runs a program, so that the
images of another processor need no emulation. The digest of the index is what a chart names and a registry answers.
"""

import gzip
import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.build.images import Image, assembled, failed
from lab.build.subprocesses import Command, run
from lab.build.toolchains import find, needed
from lab.settings import Versions
from release import archives
from release.source import Source

Json = dict[str, Any]

CONTEXT_HASH = re.compile(r"\b(dir|file):[0-9a-f]{64}")
"""What Buildah notes of a copied folder, the times of its files included."""
PROCESSORS = ("amd64", "arm64")
"""By the name that Go, Debian and OCI have for them alike."""
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"


@dataclass(frozen=True)
class Archive:
    """An image for all processors in one file."""

    name: str
    """`operator`, `seed` or `agent`."""
    path: Path
    digest: str
    """That of its index, as `sha256:…`."""


def build_layout(
    image: Image, source: Source, processor: str, bases: Mapping[str, Path], versions: Versions, target: Path
) -> None:
    """Build an image for one processor into a folder in OCI's layout.

    `bases` has folders in the same layout, by the argument of the Dockerfile that names them. Raises LabError that
    names the image and the step of its Dockerfile that failed.
    """
    with (
        tempfile.TemporaryDirectory(dir=target.parent) as storage,
        assembled(image, target.parent) as context,
    ):
        places = ["--root", f"{storage}/root", "--runroot", f"{storage}/run", "--storage-driver", "vfs"]
        arguments = ["--arch", processor, "--timestamp", str(source.epoch), "--identity-label=false"]
        arguments += ["--label", f"org.opencontainers.image.version={source.version}"]
        arguments += ["--label", f"org.opencontainers.image.revision={source.commit}"]
        arguments += ["--label", "org.opencontainers.image.licenses=Apache-2.0"]
        for name, base in bases.items():
            arguments += ["--build-arg", f"{name}=oci:{base}"]
        arguments += ["--file", str(image.dockerfile), "--tag", f"oci:{target}"]
        command: Command = [find(needed(versions)["buildah"]), *places, "build", *arguments, context]
        environment = {**os.environ, **source.environment(), "BUILDAH_ISOLATION": "chroot", "TMPDIR": storage}
        outcome = run(command, target.parent / f"{target.name}.log", environment=environment)
    if outcome.code != 0:
        raise failed(image, outcome)


def pack(name: str, layouts: Mapping[str, Path], target: Path, epoch: int) -> Archive:
    """Join the layouts of one image, by processor, under one index, and write them as an archive."""
    blobs: dict[str, bytes] = {}
    manifests = []
    for processor, layout in sorted(layouts.items()):
        (entry,) = json.loads((layout / "index.json").read_text())["manifests"]
        manifest = _manifest(json.loads(_blob(layout, entry["digest"])), layout, blobs)
        platform = {"architecture": processor, "os": "linux"}
        manifests.append({**_stored(manifest, MANIFEST_TYPE, blobs), "platform": platform})
    index = _stored(_json({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": manifests}), INDEX_TYPE, blobs)
    files: dict[str, Path | bytes] = {f"blobs/sha256/{digest}": content for digest, content in blobs.items()}
    files["oci-layout"] = _json({"imageLayoutVersion": "1.0.0"})
    files["index.json"] = _json({"schemaVersion": 2, "manifests": [index]})
    archives.tar(target, files, epoch)
    return Archive(name, target, index["digest"])


def _manifest(built: Json, layout: Path, blobs: dict[str, bytes]) -> bytes:
    """Write the manifest again with compressed layers, and without the paths of this machine that Buildah notes."""
    config = json.loads(_blob(layout, built["config"]["digest"]))
    for line in config["history"]:
        line.pop("comment", None)
        line["created_by"] = CONTEXT_HASH.sub(r"\1", line["created_by"])
    layers = []
    for layer in built["layers"]:
        packed = gzip.compress(_blob(layout, layer["digest"]), compresslevel=6, mtime=0)
        layers.append(_stored(packed, LAYER_TYPE, blobs))
    own = _stored(_json(config), built["config"]["mediaType"], blobs)
    return _json({"schemaVersion": 2, "mediaType": MANIFEST_TYPE, "config": own, "layers": layers})


def _stored(content: bytes, media_type: str, blobs: dict[str, bytes]) -> Json:
    """Add a blob; give what others name it by."""
    digest = archives.digest_of(content)
    blobs[digest] = content
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}


def _blob(layout: Path, digest: str) -> bytes:
    return (layout / "blobs" / digest.replace(":", "/")).read_bytes()


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
