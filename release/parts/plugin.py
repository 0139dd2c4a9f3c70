"""Makes `kubectl streamapp` as one file for each platform, and the manifest by which krew installs it.

Called by `release.build`. A file holds the command line with all that it needs, for every Python of `PYTHONS`: native
modules carry the Python's name in theirs, so that they lie side by side. The machine needs one of these Pythons as
`python3`; nothing else, and no network.
"""

import filecmp
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from lab.build.subprocesses import Command, run
from lab.errors import LabError
from release import archives
from release.parts import packages
from release.source import Source

PROGRAM = "kubectl-streamapp"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
ENTRY = "streamapp.cli.__main__:main"
PREAMBLE = "release/parts/plugin_start.py"
"""What runs first, from the files of the commit."""


@dataclass(frozen=True)
class Platform:
    """An operating system on a processor, under the names of three programs."""

    system: str
    """`linux` or `darwin`, as Go and krew say."""
    processor: str
    """`amd64` or `arm64`, as Go and krew say."""
    uv: str
    """As uv says."""

    @property
    def name(self) -> str:
        """The end of a file's name, such as `linux-amd64`."""
        return f"{self.system}-{self.processor}"


PLATFORMS = (
    Platform("linux", "amd64", "x86_64-unknown-linux-gnu"),
    Platform("linux", "arm64", "aarch64-unknown-linux-gnu"),
    Platform("darwin", "amd64", "x86_64-apple-darwin"),
    Platform("darwin", "arm64", "aarch64-apple-darwin"),
)


def build(source: Source, wheel: Path, platform: Platform, workplace: Path, target: Path) -> Path:
    """Build the archive of one platform into `target`; give its path. Krew takes it, and so does tar."""
    site = workplace / "site"
    for python in PYTHONS:
        one = workplace / python
        packages.dependencies(source, "cli", platform.uv, python, one, workplace / "log")
        merge(one, site)
    packages.unpack(wheel, site)
    program = workplace / PROGRAM
    _zip(source, site, program, workplace / "log")
    files = {PROGRAM: program, "LICENSE": source.folder / "LICENSE", "NOTICE": source.folder / "NOTICE"}
    made = target / f"{PROGRAM}-{source.version}-{platform.name}.tar.gz"
    archives.tar_gz(made, files, source.epoch)
    return made


def merge(folder: Path, into: Path) -> None:
    """Add the packages of one Python to those of others.

    Only what describes a package may differ between two Pythons, and the first stays; LabError for a module that
    differs, which could serve one of them only.
    """
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        other = into / name
        if path.is_dir():
            other.mkdir(parents=True, exist_ok=True)
        elif not other.exists():
            other.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, other)
        elif not name.parts[0].endswith(".dist-info") and not filecmp.cmp(path, other, shallow=False):
            raise LabError(
                f"plugin: {name} differs between two versions of Python",
                "one file cannot serve both",
                "make a plugin for each Python: see PYTHONS in release/parts/plugin.py",
            )


def _zip(source: Source, site: Path, program: Path, log: Path) -> None:
    """Pack the folder with shiv, which unpacks it once for each user and starts the entry."""
    command: Command = [sys.executable, "-m", "shiv.cli", "--reproducible", "--site-packages", site]
    command = [*command, "--entry-point", ENTRY, "--preamble", source.folder / PREAMBLE, "--output-file", program]
    outcome = run([*command, "--python", "/usr/bin/env python3"], log, environment=source.environment())
    if outcome.code != 0:
        raise LabError("plugin: shiv failed", outcome.why(), "run make setup")


def krew_manifest(source: Source, made: dict[Platform, Path], url: str) -> str:
    """Write the manifest of krew; `url` is the folder that serves the archives.

    Without a `url` the addresses are the bare names of the archives: krew then installs from a file
    (`--manifest` with `--archive`), and refuses to download.
    """
    base = f"{url.rstrip('/')}/" if url else ""
    files = [{"from": name, "to": "."} for name in (PROGRAM, "LICENSE", "NOTICE")]
    places = [
        {
            "selector": {"matchLabels": {"os": platform.system, "arch": platform.processor}},
            "uri": f"{base}{archive.name}",
            "sha256": archives.digest(archive),
            "bin": PROGRAM,
            "files": files,
        }
        for platform, archive in made.items()
    ]
    spec = {
        "version": f"v{source.version}",
        "shortDescription": "Explain and control how Kafka Streams applications scale",
        "description": (
            "Shows why pods of a Kafka Streams application are held, what a change would move,\n"
            "and lets users hold, pause and scale under the safeguards of streamapp-operator.\n"
        ),
        "caveats": f"Needs CPython {PYTHONS[0]} to {PYTHONS[-1]} as python3.\n",
        "platforms": places,
    }
    head = {"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin"}
    manifest = {**head, "metadata": {"name": "streamapp"}, "spec": spec}
    return yaml.dump(manifest, sort_keys=False, default_flow_style=False, Dumper=_Plain)


class _Plain(yaml.SafeDumper):
    """YAML without references: the lists of files are alike, and a reader wants each."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 -- the signature is PyYAML's
        return True
