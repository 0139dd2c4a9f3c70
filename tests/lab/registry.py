"""A registry of images on the lab's own loopback address, from which its containerd pulls without TLS."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import yaml

from lab.clusters.cluster import Session
from lab.clusters.kubectl import wait_until
from lab.errors import NotYetError
from lab.settings import Settings
from tests.lab.release_files import registry_program

ADDRESS = "localhost:5000"


@contextmanager
def registry(session: Session, place: Path) -> Iterator[None]:
    """Serve a registry that is empty at first and keeps its images below `place`, until the block ends."""
    settings = {
        "version": 0.1,
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(place / "images")}},
        "http": {"addr": ADDRESS.replace("localhost", "127.0.0.1")},
    }
    (place / "registry.yaml").write_text(yaml.safe_dump(settings))
    command = (str(registry_program(Settings.from_environment())), "serve", str(place / "registry.yaml"))
    with (place / "log").open("w") as log:
        served = subprocess.Popen(command, env={**os.environ, **session.environment}, stdout=log, stderr=log)
        try:
            wait_until("the registry answers", _answers, 30)
            yield
        finally:
            served.terminate()
            served.wait(30)


def _answers() -> bool:
    try:
        with urlopen(f"http://{ADDRESS}/v2/", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError as error:
        raise NotYetError("registry: no answer", str(error), "read its log") from error
