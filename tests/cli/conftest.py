"""A cluster for commands, and the commands themselves run in this process."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from streamapp.cli.__main__ import main
from streamapp.cli.screens import watch
from tests.builders import NOW
from tests.cli.cluster import Cluster


@dataclass(frozen=True)
class Ran:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """What it wrote, as JSON."""
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Serve, with the kubeconfig in the environment and the time of the examples."""
    for variable in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    # The server speaks plain HTTP, and reading the machine's certificates is most of the time of a command.
    monkeypatch.setenv("SSL_CERT_FILE", os.devnull)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    monkeypatch.setattr(watch, "now", _now)
    with Cluster(tmp_path).running() as running:
        monkeypatch.setenv("KUBECONFIG", str(running.kubeconfig))
        yield running


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `kubectl streamapp` with these arguments."""

    def ran(*arguments: str) -> Ran:
        code = main(list(arguments))
        captured = capsys.readouterr()
        return Ran(int(code), captured.out, captured.err)

    return ran


def _now() -> datetime:
    return NOW
