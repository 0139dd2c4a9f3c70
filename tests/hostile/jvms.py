"""Runs an application in a JVM with the agent, and in one without it."""

import hashlib
import os
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from lab.build import launchers, maven
from lab.build.cache import Cache
from lab.build.toolchains import java_home
from lab.settings import Settings

TOKEN = "0123456789abcdef"
QUIET = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")
PATIENCE_SECONDS = 120
HOST = Path(__file__).parent / "host"


@dataclass(frozen=True)
class Parts:
    """What was built for the tests."""

    agent: Path
    """The agent's jar."""
    libraries: Path
    """The folder with the jars of Kafka Streams."""
    host: Path
    """The folder with the class of the application."""
    jdk: Path
    """The machine's Java, with a compiler and all modules."""
    cache: Cache

    def java(self, version: str) -> Path:
        """Give the folder of a Java of that version, the machine's own if it is that one."""
        return self.jdk if version == "17" else launchers.other_java(version, self.cache)


@dataclass(frozen=True)
class ExitedJvm:
    """How a JVM ended, and what it printed."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def seen(self) -> tuple[int, str, str]:
        """What a user of the application can compare."""
        return self.code, self.out, self.err


def build(folder: Path) -> Parts:
    """Build the agent as the lab does, and compile the application into the folder."""
    settings = Settings.from_environment()
    cache = Cache(settings.cache)
    agent = maven.agent_jar(settings.versions, cache) / maven.AGENT_JAR
    libraries = maven.package(launchers.COUNTER, settings.versions, cache) / "lib"
    jdk = java_home(settings.versions)
    sources = [str(path) for path in HOST.glob("*.java")]
    compiler = [str(jdk / "bin" / "javac"), "--release", "11", "-cp", f"{libraries}/*", "-d", str(folder)]
    subprocess.run([*compiler, *sources], check=True, timeout=PATIENCE_SECONDS)
    return Parts(agent, libraries, folder, jdk, cache)


def free_port() -> int:
    """Give a port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def environment(port: int, defaults: str = "assignor,heartbeat,leave") -> dict[str, str]:
    """Give what the operator's pod template gives the agent, beside our own environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("STREAMAPP_", "JAVA", "JDK_"))}
    return {
        **kept,
        "STREAMAPP_AGENT_PORT": str(port),
        "STREAMAPP_AGENT_TOKEN_SHA256": hashlib.sha256(TOKEN.encode()).hexdigest(),
        "STREAMAPP_AGENT_POD_UID": "uid-1",
        "STREAMAPP_AGENT_DEFAULTS": defaults,
    }


def command(parts: Parts, state: Path, java: Path, before: Sequence[str]) -> list[str]:
    """Give the command line of the application; `before` are options of the JVM, agents among them."""
    path = f"{parts.host}:{parts.libraries}/*"
    return [str(java / "bin" / "java"), *QUIET, *before, "-cp", path, "Host", f"state.dir={state}"]


def run(
    command: Sequence[str],
    words: str = "",
    port: int | None = None,
    extra: Mapping[str, str] = MappingProxyType({}),
) -> ExitedJvm:
    """Run a JVM to its end, with these words on its standard input."""
    began = time.monotonic()
    variables = {**environment(port or free_port()), **extra}
    ran = subprocess.run(
        command, input=words, env=variables, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    return ExitedJvm(ran.returncode, ran.stdout, ran.stderr, time.monotonic() - began)
