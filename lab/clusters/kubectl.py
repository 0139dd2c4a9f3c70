"""Runs kubectl in a session: the one way in which the lab talks to an API server."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab.clusters.cluster import Session
from lab.errors import LabError, NotYetError


class Kubectl:
    """kubectl, bound to a session; every failure becomes a `LabError` with its own words."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def session(self) -> Session:
        """The session it runs in."""
        return self._session

    def run(self, *arguments: str, stdin: str | None = None, timeout_seconds: float = 120) -> str:
        """Run kubectl and give its standard output."""
        try:
            ran = self._session.run("kubectl", *arguments, stdin=stdin, timeout_seconds=timeout_seconds)
        except subprocess.TimeoutExpired as error:
            raise NotYetError(
                f"kubectl {' '.join(arguments)}: no answer",
                f"nothing within {timeout_seconds:.0f} s",
                "look at `python -m lab status`",
            ) from error
        except FileNotFoundError as error:
            raise LabError("kubectl: not found", str(error), "install kubectl and try again") from error
        if ran.returncode:
            raise NotYetError(
                f"kubectl {' '.join(arguments)}: failed",
                ran.stderr.strip() or f"exit code {ran.returncode}",
                "look at `python -m lab status` and `python -m lab exec -- kubectl get events -A`",
            )
        return ran.stdout

    def json(self, *arguments: str) -> Any:
        """Run kubectl with `--output=json` and give what it printed."""
        return json.loads(self.run(*arguments, "--output=json"))

    def apply(self, manifest: Path | str) -> None:
        """Apply a file or a folder, or text given as it is."""
        if isinstance(manifest, Path):
            self.run("apply", "--filename", str(manifest))
        else:
            self.run("apply", "--filename=-", stdin=manifest)

    def wait_for_rollout(self, namespace: str, workload: str, timeout_seconds: int = 180) -> None:
        """Wait until every replica of a workload is ready."""
        self.run(
            *("rollout", "status", "--namespace", namespace, workload, f"--timeout={timeout_seconds}s"),
            timeout_seconds=timeout_seconds + 30,
        )


def wait_until(what: str, holds: Callable[[], bool], timeout_seconds: float, interval_seconds: float = 0.3) -> None:
    """Ask again and again until `holds`; a NotYetError from it counts as no, and is the cause if time runs out."""
    cause = "it did not become true"
    deadline = time.monotonic() + timeout_seconds
    while time.monotonic() < deadline:
        try:
            if holds():
                return
        except NotYetError as error:
            cause = error.why
        time.sleep(interval_seconds)
    raise LabError(f"{what}: not within {timeout_seconds:.0f} s", cause, "look at `python -m lab status`")
