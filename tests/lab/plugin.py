"""`kubectl streamapp` as a user runs it: through kubectl, with the plugin on the PATH, and no terminal to ask on."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl
from lab.errors import LabError


@dataclass(frozen=True)
class Ran:
    """What a command came to."""

    code: int
    out: str
    err: str


def run_kubectl(session: Session, *arguments: str, timeout_seconds: float = 200) -> Ran:
    """Run kubectl, and show what it says."""
    environment = dict(session.environment)
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    ran = subprocess.run(
        (*session.prefix, "kubectl", *arguments),
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_seconds,
    )
    print(f"$ kubectl {' '.join(arguments)}\n{ran.stdout}{ran.stderr}[{ran.returncode}]\n")  # noqa: T201
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def refusal(kubectl: Kubectl, *command: str, stdin: str | None = None) -> str:
    """Run what must fail; give the words of the refusal."""
    with pytest.raises(LabError) as refused:
        kubectl.run(*command, stdin=stdin)
    return refused.value.why
