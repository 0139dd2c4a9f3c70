"""The real assignors in a JVM: one process for all cases, and one case a line."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.settings import REPOSITORY
from tests.model.answers import Answer, comparable
from tests.model.cases import Case

KAFKA = REPOSITORY / "agent" / "agent" / "target" / "kafka"
CLASSES = REPOSITORY / "agent" / "assignor" / "target"


@dataclass(frozen=True, slots=True)
class Reference:
    """A running JVM with one assignor of one version."""

    process: subprocess.Popen[str]

    def answer(self, case: Case) -> Answer:
        """Ask; RuntimeError if the JVM has ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(case) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the JVM ended with {self.process.wait()} on {json.dumps(case)}")
        return comparable(json.loads(line))


def jars(part: str, version: str) -> Path:
    """Where the class path of a Kafka release lies; FileNotFoundError if it was not fetched."""
    folder = KAFKA / f"{part}-{version}"
    for needed in (folder, CLASSES / "test-classes"):
        if not needed.is_dir():
            raise FileNotFoundError(f"{needed} is missing; `make test PART=model` fetches and compiles what it needs")
    return folder


@contextmanager
def running(kind: str, part: str, version: str) -> Iterator[Reference]:
    """Start the JVM of an assignor, and end it."""
    paths = [str(CLASSES / "test-classes"), str(CLASSES / "classes"), f"{jars(part, version)}/*"]
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    command = ["java", "-XX:+UseSerialGC", "-Xmx512m", quiet, "-cp", ":".join(paths)]
    process = subprocess.Popen(
        [*command, "dev.streamapp.assignor.reference.ReferenceMain", kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield Reference(process)
