"""Makes the Python parts: wheel, source archive, and folders of locked dependencies for other platforms.

Called by `release.build` and `release.parts.plugin`. uv fetches, with the hashes of `uv.lock`; what it leaves of this
machine's paths and times is taken out again.
"""

import compileall
import os
import shutil
import sys
import zipfile
from pathlib import Path
from py_compile import PycInvalidationMode

from lab.build.subprocesses import Command, run
from lab.errors import LabError
from release.source import Source

BUILD_REQUIREMENTS = "release/parts/build-requirements.txt"
"""Versions and hashes of what builds the wheel."""
_NOT_CONTENT = ("bin", ".lock")
"""Scripts name the interpreter by its path, and a lock of uv is no part of a package."""


def wheel_and_sdist(source: Source, target: Path, log: Path) -> tuple[Path, Path]:
    """Build both into `target`, the wheel from the source archive's own files; give wheel and source archive."""
    command: Command = ["build", "--quiet", "--sdist", "--wheel", "--out-dir", target, "--build-constraints"]
    uv([*command, source.folder / BUILD_REQUIREMENTS, "--require-hashes"], source, log)
    (wheel,), (sdist,) = target.glob("*.whl"), target.glob("streamapp_operator-*.tar.gz")
    (target / ".gitignore").unlink(missing_ok=True)
    return wheel, sdist


def dependencies(source: Source, extra: str, platform: str, python: str, target: Path, log: Path) -> None:
    """Install what an extra needs into `target`, for a platform by uv's name and a Python such as `3.12`.

    Raises LabError where the lock names no wheel for them.
    """
    listed = target.parent / f"{target.name}.txt"
    export = ("export", "--quiet", "--frozen", "--no-dev", "--no-emit-project", "--extra", extra)
    uv([*export, "--output-file", listed], source, log)
    place: Command = ["--python-platform", platform, "--python-version", python, "--target", target]
    install = ("pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:", "--link-mode", "copy")
    uv([*install, *place, "--requirements", listed], source, log)
    for name in _NOT_CONTENT:
        path = target / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for record in target.glob("*.dist-info/RECORD"):
        lines = record.read_text().splitlines(keepends=True)
        record.write_text("".join(line for line in lines if not line.startswith(("../", "bin/"))))


def unpack(wheel: Path, target: Path) -> None:
    """Lay out a wheel of pure Python as an installer does, without a trace of this machine."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)


def compile_for_image(folder: Path, place: str, python: str) -> None:
    """Compile all modules as they will lie at `place`, so that the file system can be read-only.

    The bytecode is not compared with its source later: an image has no other source. Raises LabError if this Python is
    not the one of the image, whose bytecode it could not write.
    """
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if here != python:
        raise LabError(
            "release: it runs on another Python than the image",
            f"this is Python {here}, and the image has {python}",
            "run make setup, which takes the version from .python-version",
        )
    unchecked = PycInvalidationMode.UNCHECKED_HASH
    done = compileall.compile_dir(
        folder, quiet=2, force=True, stripdir=str(folder), prependdir=place, invalidation_mode=unchecked
    )
    if not done:
        raise LabError(f"{folder.name}: a module does not compile", "see above", "remove the module or fix it")


def uv(arguments: Command, source: Source, log: Path) -> None:
    """Run uv on the files of the commit; LabError with what it said."""
    program = os.environ.get("UV") or shutil.which("uv")
    if program is None:
        raise LabError("uv: not found", "it is not in PATH", "python3 -m pip install uv")
    kept = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    outcome = run([program, *arguments], log, folder=source.folder, environment=kept | source.environment())
    if outcome.code != 0:
        raise LabError(f"uv {arguments[0]}: failed", outcome.why(), "check the network and the package index")
