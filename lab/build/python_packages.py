"""Installs the product and its locked dependencies into folders, as the image of the operator takes them.

Called by `lab.build.plan`. uv does the work on this machine, with hashes from `uv.lock`, and compiles the bytecode: the
build of the image itself needs neither pip nor a network.
"""

import os
import shutil
import tempfile
from pathlib import Path

from lab.build.cache import Cache, content_key
from lab.build.subprocesses import Command, fetch
from lab.errors import LabError
from lab.settings import REPOSITORY
from lab.terminal import step

PYTHON = "3.11"
LICENCES = tuple(REPOSITORY / name for name in ("LICENSE", "NOTICE", "THIRD-PARTY-LICENSES.md"))
"""What the wheel has beside the sources."""
_INSTALL = ("pip", "install", "--quiet", "--python-version", PYTHON, "--compile-bytecode")


def dependencies(extra: str, cache: Cache, repository: Path = REPOSITORY) -> Path:
    """Give the folder with everything that the product needs with one of its extras, by the lock of a repository."""
    name = f"python-{extra}"

    def build(folder: Path) -> None:
        with step(f"Install the Python packages of the {extra}"), tempfile.TemporaryDirectory() as workplace:
            listed = Path(workplace, "requirements.txt")
            export = ("export", "--quiet", "--frozen", "--no-dev", "--no-emit-project", "--extra", extra)
            _uv([*export, "--output-file", listed], cache.log(name), repository)
            install: Command = [*_INSTALL, "--require-hashes", "--requirements", listed, "--target", folder]
            _uv(install, cache.log(name), repository)

    inputs: dict[str, str | Path] = {"lock": repository / "uv.lock", "extra": extra, "python": PYTHON}
    return cache.entry(name, content_key(inputs), build)


def product(cache: Cache, repository: Path = REPOSITORY) -> Path:
    """Give the folder with the product of a repository alone, installed from its wheel."""

    def build(folder: Path) -> None:
        with step("Build the product's wheel"), tempfile.TemporaryDirectory() as workplace:
            _uv(["build", "--quiet", "--wheel", "--out-dir", workplace], cache.log("product"), repository)
            (wheel,) = Path(workplace).glob("*.whl")
            _uv([*_INSTALL, "--no-deps", wheel, "--target", folder], cache.log("product"), repository)

    packages = repository / "operator" / "streamapp"
    sources = {str(path.relative_to(packages)): path for path in sorted(packages.rglob("*.py"))}
    licences = {path.name: repository / path.name for path in LICENCES}
    project = repository / "pyproject.toml"
    return cache.entry("product", content_key({"project": project, **licences, **sources}), build)


def _uv(arguments: Command, log: Path, repository: Path) -> None:
    uv = shutil.which("uv")
    if uv is None:
        raise LabError("uv: not found", "it is not in PATH", "python3 -m pip install uv")
    # The caller's own environment is none of this build's business.
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    outcome = fetch([uv, *arguments], log, folder=repository, environment=environment)
    if outcome.code != 0:
        raise LabError(f"uv {arguments[0]}: failed", outcome.why(), "check the network and the package index")
