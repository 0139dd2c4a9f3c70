"""Reads out of a finished artifact which parts of others are in it, for its bill of materials.

Called by `release.build`. It looks into the artifact and not at the lock, so that a bill cannot say what is not there.
What a jar was shaded from leaves no trace in it: that comes from the project's pom.
"""

import gzip
import io
import json
import re
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

from docs.third_party import KNOWN, needed
from release.parts.system import PACKAGE_FOLDER
from release.source import Source
from release.tools import first_line

METADATA = re.compile(r"(?:^|/)[^/]+\.dist-info/METADATA$")
AGENT_POM = "agent/agent/pom.xml"


@dataclass(frozen=True, order=True)
class Part:
    """Something of others in an artifact."""

    kind: str
    """The type of its package URL: `pypi`, `deb`, `golang`, `maven` or `oci`."""
    name: str
    """With its group or namespace, before a `/`."""
    version: str
    licence: str = ""
    """An expression of SPDX where the part states one, else its own words, or nothing."""
    processor: str = ""
    """For packages of Debian."""


def of_plugin(archive: Path) -> list[Part]:
    """The Python packages in a plugin."""
    with tarfile.open(archive) as packed:
        program = packed.extractfile("kubectl-streamapp")
        content = program.read() if program else b""
    with zipfile.ZipFile(io.BytesIO(content)) as zipped:
        return sorted({python_part(zipped.read(name)) for name in zipped.namelist() if METADATA.search(name)})


def of_wheel(wheel: Path) -> list[Part]:
    """The Python packages in a wheel: its own alone."""
    with zipfile.ZipFile(wheel) as zipped:
        return sorted({python_part(zipped.read(name)) for name in zipped.namelist() if METADATA.search(name)})


def of_jar(source: Source) -> list[Part]:
    """The libraries that are shaded into the agent's jar."""
    found = needed(source.folder / AGENT_POM, "")
    return sorted(Part("maven", part.name.replace(":", "/"), part.version, KNOWN[part.name]) for part in found)


def of_program(program: Path, go: Path) -> list[Part]:
    """The standard library in a program of Go, by what the program says of itself."""
    return [_go_part(first_line(go, "version", program))]


def of_image(archive: Path, source: Source, go: Path) -> list[Part]:
    """All parts in the layers of an image, of every processor."""
    found: set[Part] = set()
    with tarfile.open(archive) as packed:
        for manifest in _manifests(packed):
            for layer in manifest["layers"]:
                content = _blob(packed, layer["digest"])
                with tarfile.open(fileobj=io.BytesIO(gzip.decompress(content))) as files:
                    found.update(_of_layer(files, source, go))
    return sorted(found)


def python_part(metadata: bytes) -> Part:
    """A package by its `METADATA`."""
    told = HeaderParser().parsestr(metadata.decode())
    licence = told["License-Expression"] or told["License"] or ""
    return Part("pypi", re.sub(r"[-_.]+", "-", told["Name"]).lower(), told["Version"], licence.partition("\n")[0])


def debian_part(control: bytes) -> Part:
    """A package by its `control` file."""
    told = dict(line.split(": ", 1) for line in control.decode().splitlines() if ": " in line and line[0] != " ")
    return Part("deb", f"debian/{told['Package']}", told["Version"], processor=told["Architecture"])


def _of_layer(files: tarfile.TarFile, source: Source, go: Path) -> Iterator[Part]:
    for entry in files:
        name = entry.name.lstrip("./")
        if not entry.isfile():
            continue
        if METADATA.search(name):
            yield python_part(_read(files, entry))
        elif name.startswith(f"{PACKAGE_FOLDER}/"):
            yield debian_part(_read(files, entry))
        elif name in {"seed", "bring"}:
            yield from _of_go(_read(files, entry), go)
        elif name.endswith("streamapp-agent.jar"):
            yield from of_jar(source)


def _of_go(content: bytes, go: Path) -> Iterable[Part]:
    with tempfile.NamedTemporaryFile() as program:
        program.write(content)
        program.flush()
        Path(program.name).chmod(0o755)
        return of_program(Path(program.name), go)


def _go_part(told: str) -> Part:
    version = re.search(r"\bgo(\d[\w.]*)", told.rpartition(": ")[2])
    if version is None:
        raise LookupError(f"the program does not say its version of Go: {told}")
    return Part("golang", "stdlib", version[1], "BSD-3-Clause")


def _manifests(packed: tarfile.TarFile) -> Iterator[dict[str, list[dict[str, str]]]]:
    (top,) = json.loads(_read(packed, packed.getmember("index.json")))["manifests"]
    for entry in json.loads(_blob(packed, top["digest"]))["manifests"]:
        yield json.loads(_blob(packed, entry["digest"]))


def _blob(packed: tarfile.TarFile, digest: str) -> bytes:
    return _read(packed, packed.getmember(f"blobs/{digest.replace(':', '/')}"))


def _read(packed: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    file = packed.extractfile(entry)
    return file.read() if file else b""
