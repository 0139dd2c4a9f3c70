"""Runs Helm in a session: the pinned one, whatever the machine has."""

import json
import subprocess
from pathlib import Path
from typing import Any

from lab.build.cache import Cache
from lab.build.chart_tools import build_helm
from lab.clusters.cluster import Session
from lab.errors import LabError
from lab.settings import Settings


class Helm:
    """Helm, bound to a session; every failure becomes a `LabError` with its own words."""

    def __init__(self, session: Session, settings: Settings | None = None) -> None:
        chosen = settings or Settings.from_environment()
        self._program = build_helm(chosen.versions, Cache(chosen.cache)) / "helm"
        self._session = session

    def install(self, release: str, chart: Path, namespace: str, values: dict[str, Any], *more: str) -> None:
        """Install a chart or upgrade its release, and wait until all of it is there.

        A definition that came by kubectl before becomes the release's own.
        """
        taken = ("--take-ownership", "--force-conflicts", "--wait", "--timeout=180s")
        command = ("upgrade", "--install", release, str(chart), f"--namespace={namespace}", *taken, "--values=-", *more)
        self.run(*command, stdin=json.dumps(values))

    def uninstall(self, release: str, namespace: str) -> str:
        """Remove a release but what it keeps, wait until that is gone, and give what Helm says."""
        return self.run("uninstall", release, f"--namespace={namespace}", "--wait", "--timeout=180s")

    def run(self, *arguments: str, stdin: str | None = None, timeout_seconds: float = 240) -> str:
        """Run Helm and give its standard output."""
        try:
            ran = self._session.run(str(self._program), *arguments, stdin=stdin, timeout_seconds=timeout_seconds)
        except subprocess.TimeoutExpired as error:
            raise LabError(
                f"helm {' '.join(arguments)}: no answer",
                f"nothing within {timeout_seconds:.0f} s",
                "look at `python -m lab status`",
            ) from error
        if ran.returncode:
            raise LabError(
                f"helm {' '.join(arguments)}: failed",
                f"{ran.stderr.strip()}\n{ran.stdout.strip()}".strip(),
                "look at `python -m lab exec -- kubectl get events -A`",
            )
        return ran.stdout
