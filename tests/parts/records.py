"""The table of what was run: one line for each run of a part, which is committed with the work.

A part is due when the content of its paths differs from that of its last green line.
"""

import csv
import hashlib
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from lab.settings import REPOSITORY
from tests.parts.plan import Part

RECORDS = REPOSITORY / "tests" / "parts" / "runs.csv"
GREEN = "green"
ALWAYS = ("pyproject.toml", "uv.lock", "versions.toml")
"""What every part depends on."""


class Run(NamedTuple):
    """One run of a part."""

    part: str
    content: str
    """A hash of all files of its paths."""
    commit: str
    """What was checked out."""
    date: str
    seconds: int
    seed: str
    """Of a random order or of drawn examples; empty where nothing was drawn."""
    result: str


class WorkTree:
    """The files that Git would know, as they lie there now; each is hashed once, however many parts have it."""

    def __init__(self, repository: Path = REPOSITORY) -> None:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=repository, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        self._repository = repository
        files = {name for name in listed.split("\0") if (repository / name).is_file()}
        # A run must not make its own part due again by what it writes down.
        self._names = sorted(files - {str(RECORDS.relative_to(REPOSITORY))})
        self._hashes: dict[str, bytes] = {}

    def content_of(self, part: Part) -> str:
        """Hash the content of all files of a part's paths.

        Raises:
            ValueError: A path has no file.
        """
        hashed = hashlib.sha256()
        for path in (*part.all_paths, *ALWAYS):
            names = [name for name in self._names if name.startswith(f"{path}/") or fnmatchcase(name, path)]
            if not names:
                raise ValueError(f"the plan names {path}, and no such file is there: correct tests/parts/plan.toml")
            for name in names:
                hashed.update(name.encode() + b"\0" + self._hash(name))
        return hashed.hexdigest()[:16]

    def _hash(self, name: str) -> bytes:
        if name not in self._hashes:
            self._hashes[name] = hashlib.sha256((self._repository / name).read_bytes()).digest()
        return self._hashes[name]


def read(path: Path = RECORDS) -> list[Run]:
    """Read the table; the newest run of a part is its last line."""
    with path.open(newline="") as file:
        return [Run(**{**row, "seconds": int(row["seconds"])}) for row in csv.DictReader(file)]  # type: ignore[arg-type]


def add(run: Run, path: Path = RECORDS) -> None:
    """Add a line in place of the part's older one of this kind: its newest green line and its newest red line stay."""
    runs = [one for one in read(path) if (one.part, one.result == GREEN) != (run.part, run.result == GREEN)]
    write([*runs, run], path)


def write(runs: Iterable[Run], path: Path) -> None:
    """Write the table, sorted by part and date."""
    with path.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(Run._fields)
        ordered = sorted(runs, key=lambda one: (one.part, one.date))
        table.writerows(ordered)


def due(parts: Mapping[str, Part], runs: Sequence[Run], repository: Path = REPOSITORY) -> dict[str, str]:
    """Give the parts that must be run again, each with the reason."""
    green = {run.part: run for run in runs if run.result == GREEN}
    tree = WorkTree(repository)
    return {
        name: f"its files changed since {green[name].commit}" if name in green else "never run"
        for name, part in parts.items()
        if name not in green or green[name].content != tree.content_of(part)
    }
