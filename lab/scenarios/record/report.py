"""The report of what just happened: the operator's record through the pipeline, as anybody runs it by its commands.

It runs on this machine, beside the cluster and not in it; Spark takes a gigabyte for as long as it does.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.terminal import step

_NEEDED = ("pyspark", "pyarrow", "altair", "jinja2", "vl_convert")
"""Of the extra `analytics`."""
_SMALL = ("--master", "local[2]", "--memory", "1g", "--small")
_LAST_LINES = 12
_COMMANDS = ("record", "tables", "report.html", "report.json", "pipeline.log")
"""What a run leaves in its folder, and takes away before it begins."""


@dataclass(frozen=True)
class Report:
    """What a run of the pipeline made."""

    folder: Path
    figures: dict[str, Any]
    """`report.json`."""
    ingested: str
    """What the run said of the ingest."""

    @property
    def page(self) -> Path:
        """The page to read."""
        return self.folder / "report.html"

    def application(self, namespace: str, name: str, uid: str) -> dict[str, Any]:
        """Give the figures of one StreamApp.

        Raises:
            LabError: it is not in the report.
        """
        for one in self.figures["applications"]:
            if (one["namespace"], one["app"], one["uid"]) == (namespace, name, uid):
                found: dict[str, Any] = one
                return found
        raise LabError(
            f"report of {namespace}/{name}: it is not in it",
            "the operator's flight record holds no line of this StreamApp",
            f"look at {self.folder / 'record'}, and at the operator's log",
        )


def missing() -> str:
    """Say what this machine lacks for the pipeline; empty where it can run."""
    lacking = [name for name in _NEEDED if find_spec(name) is None]
    if lacking:
        how = "uv sync --frozen, or pip install '.[analytics]'"
        return f"{', '.join(lacking)} not installed: {how}"
    home = os.environ.get("JAVA_HOME", "")
    if shutil.which("java", path=str(Path(home) / "bin") if home else None) is None:
        where = f"under JAVA_HOME={home}" if home else "on the PATH"
        return f"no java {where}: install Java 17 or newer (apt-get install openjdk-17-jre-headless)"
    return ""


def clear(folder: Path) -> Path:
    """Make the folder, without what an earlier run left in it; give the place for the record."""
    for name in _COMMANDS:
        place = folder / name
        shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "record"


def make(folder: Path) -> Report:
    """Run the pipeline over `record` in the folder, and write the report beside it.

    Raises:
        LabError: a command failed; its last words are the cause.
    """
    root = str(folder / "tables")
    page, figures = str(folder / "report.html"), folder / "report.json"
    with step("from the record to tables and the report, on Spark"):
        said = _run(folder, "run", str(folder / "record"), "--root", root, "--out", page, *_SMALL)
    with step("the figures of the report"):
        _run(folder, "report", "--root", root, "--out", page, "--json", str(figures))
    return Report(folder, json.loads(figures.read_text()), said.strip().partition("\n")[0])


def _run(folder: Path, *words: str) -> str:
    """Run a command of the pipeline; what it says is kept in `pipeline.log`."""
    ran = subprocess.run(
        (sys.executable, "-m", "streamapp.analytics", *words), capture_output=True, text=True, check=False
    )
    log = folder / "pipeline.log"
    with log.open("a") as file:
        file.write(f"$ streamapp-analytics {' '.join(words)}\n{ran.stdout}{ran.stderr}\n")
    if ran.returncode:
        raise LabError(
            f"streamapp-analytics {words[0]}: failed with exit code {ran.returncode}",
            _end(ran.stderr.splitlines()),
            f"read {log}; the record lies in {folder / 'record'}",
        )
    return ran.stdout


def _end(lines: Sequence[str]) -> str:
    return "\n".join(lines[-_LAST_LINES:]).strip() or "it said nothing"
