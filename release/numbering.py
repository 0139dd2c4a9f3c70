"""Writes the number of the next version, and the release before it, into the source tree: `python -m release begin`.

Between two releases the tree has the number of the next one. Called by the command line; a test compares `PLACES` with
every file that names the number.
"""

import re
import tomllib
from pathlib import Path

from lab.errors import LabError

PLACES = (
    *("pyproject.toml", "uv.lock", "charts/streamapp-operator/Chart.yaml"),
    *("agent/pom.xml", "agent/agent/pom.xml", "agent/assignor/pom.xml", "agent/agent/src/versions/pom.xml"),
    "agent/agent/src/test/java/dev/streamapp/agent/AgentIT.java",
    *("README.md", "docs/command-line.md", "docs/operations.md", "docs/releases.md", "docs/how-to/node-drains.md"),
)
"""Every file that names the version of the product. The examples have numbers of their own."""
EARLIER = Path("lab") / "build" / "earlier_release.py"
_VERSION = re.compile(r"\d+\.\d+\.\d+\Z")
_COMMIT = re.compile(r'^COMMIT = "[0-9a-f]{40}"$', re.MULTILINE)
_LOCK = re.compile(r'(^name = "streamapp-operator"\nversion = )"[^"]+"', re.MULTILINE)


def version_of(repository: Path) -> str:
    """The version that the source tree has."""
    return str(tomllib.loads((repository / "pyproject.toml").read_text())["project"]["version"])


def begin(repository: Path, version: str, release: str) -> tuple[Path, ...]:
    """Write a new version into all places, and the full hash of the commit of the last release; give changed files.

    Raises LabError, and writes nothing, if the version is no number or not later, or a place lacks the old one.
    """
    old = version_of(repository)
    what = f"release: {version} cannot follow {old}"
    if not _VERSION.match(version) or _numbers(version) <= _numbers(old):
        raise LabError(what, "it is not a later MAJOR.MINOR.PATCH", "name a later version, such as 0.2.0")
    texts = {place: _with(repository / place, old, version) for place in map(Path, PLACES)}
    earlier = (repository / EARLIER).read_text()
    texts[EARLIER] = _COMMIT.sub(f'COMMIT = "{release}"', earlier)
    silent = [str(place) for place, text in texts.items() if text == (repository / place).read_text()]
    if silent:
        raise LabError(
            what, f"{', '.join(silent)}: the old value was not found", "correct PLACES in release/numbering.py"
        )
    for place, text in texts.items():
        (repository / place).write_text(text)
    return tuple(texts)


def _with(path: Path, old: str, new: str) -> str:
    text = path.read_text()
    if path.name == "uv.lock":
        return _LOCK.sub(rf'\g<1>"{new}"', text)
    return re.sub(rf"(?<![\d.]){re.escape(old)}(?!\d|\.\d)", new, text)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
