"""Processes of the matrix: each with a log of its own, ended by its id however the trial ends.

Nothing here outlives the command: the kernel ends what is left when the command is killed.
"""

import os
import re
import secrets
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError

LOOPBACK = "127.0.0.1"
LOWEST_PORT, HIGHEST_PORT = 15_000, 29_999
"""The kernel gives none of these to a connection, or to a server that asks for any: they stay free meanwhile."""
STOP_SECONDS = 20.0
_CLASS_LOADERS_SECONDS = 30
_LAST_LINES = 6
_OWN_OPTIONS = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH")
"""A developer's shell may have them; here they would decide what is tried."""
_BRANCH = re.compile(r"^[\s|]*\+-- (.*)$")


@dataclass(frozen=True)
class Process:
    """One that runs, or ran."""

    name: str
    running: subprocess.Popen[bytes]
    log: Path

    @property
    def lives(self) -> bool:
        """Whether it has not ended yet."""
        return self.running.poll() is None

    def terminate(self) -> None:
        """Send SIGTERM, as Kubernetes does, and wait for nothing."""
        self.running.send_signal(signal.SIGTERM)

    def wait(self, seconds: float) -> int:
        """Wait for its end and give the exit code; LabError with its last words if it lasts longer."""
        try:
            return self.running.wait(seconds)
        except subprocess.TimeoutExpired:
            raise LabError(
                f"{self.name}: still runs after {seconds:.0f} s", self.last_words(), f"read {self.log}"
            ) from None

    def require_life(self) -> None:
        """Raise a LabError with its last words if it has ended."""
        if not self.lives:
            raise LabError(
                f"{self.name}: ended with exit code {self.running.returncode}", self.last_words(), f"read {self.log}"
            )

    def last_words(self) -> str:
        """Give the end of its log, stack traces left out."""
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        said = [line for line in lines if not line.lstrip().startswith("at ")]
        return "\n    ".join(said[-_LAST_LINES:]) or "it said nothing"


@contextmanager
def started(
    name: str, command: Sequence[str], environment: Mapping[str, str], log: Path, folder: Path | None = None
) -> Iterator[Process]:
    """Run a process for the time of the block; at the end it gets SIGTERM, and SIGKILL if that does not help."""
    own = {key: value for key, value in os.environ.items() if key not in _OWN_OPTIONS}
    with log.open("wb") as record:
        running = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *command],
            cwd=folder,
            env={**own, **environment},
            stdin=subprocess.DEVNULL,
            stdout=record,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield Process(name, running, log)
        finally:
            running.terminate()
            try:
                running.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()


def free_ports(count: int) -> list[int]:
    """Find ports on which nobody listens, all different, for processes that will: in seconds, or in a minute."""
    found: list[int] = []
    while len(found) < count:
        # Tests that run side by side have one seed for all other chance.
        port = LOWEST_PORT + secrets.randbelow(HIGHEST_PORT - LOWEST_PORT)
        if port not in found and _is_free(port):
            found.append(port)
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("", port))
        except OSError:
            return False
        return True


def loader_of(class_name: str, process: Process, java: Path) -> str:
    """Name the class of the loader that has loaded a class in a JVM; empty where the JVM does not say."""
    try:
        told = subprocess.run(
            [java / "bin" / "jcmd", str(process.running.pid), "VM.classloaders", "show-classes=true"],
            capture_output=True,
            text=True,
            timeout=_CLASS_LOADERS_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return loader_in(told.stdout, class_name)


def loader_in(tree: str, class_name: str) -> str:
    """Find it in what `jcmd PID VM.classloaders show-classes=true` prints: loaders, and below each its classes."""
    loader = ""
    for line in tree.splitlines():
        branch = _BRANCH.match(line)
        if branch:
            # `"app", jdk.internal.loader.ClassLoaders$AppClassLoader`, the name only where there is one.
            loader = branch[1].rpartition(", ")[2].strip()
        elif line.strip(" |").removeprefix("Classes: ") == class_name:
            return loader
    return ""
