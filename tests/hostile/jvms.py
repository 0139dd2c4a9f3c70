"""Runs an application in a JVM with the agent, and in one without it."""

import asyncio
import hashlib
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Self

from lab.build import launchers, maven
from lab.build.cache import Cache
from lab.build.toolchains import java_home
from lab.matrix.processes import free_ports
from lab.settings import Settings
from streamapp.agents.answers import AgentAddress, AnnouncementOutcome
from streamapp.agents.client import AgentClient
from streamapp.agents.tls import AgentTls  # noqa: TC001 (a type beside the client that uses it)
from streamapp.core.facts.agent_reports import AgentReport, AgentSilent, Rebalance
from streamapp.core.facts.hold_record import Epoch
from streamapp.core.facts.ids import Ordinal, ProcessId
from streamapp.wire.announcement import announcement

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
    """The folder with the application, for a class path and as a module."""
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
    sources = [str(path) for path in HOST.rglob("*.java")]
    compiler = [str(jdk / "bin" / "javac"), "--release", "11", "-nowarn", "-p", str(libraries), "-d", str(folder)]
    subprocess.run([*compiler, *sources], check=True, timeout=PATIENCE_SECONDS)
    return Parts(agent, libraries, folder, jdk, cache)


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


def command(parts: Parts, state: Path, options: Sequence[str], java: Path | None = None) -> list[str]:
    """Give the command line of the application; `options` are the JVM's, agents among them."""
    path = f"{parts.host}:{parts.libraries}/*"
    return [str((java or parts.jdk) / "bin" / "java"), *QUIET, *options, "-cp", path, "host.Host", f"state.dir={state}"]


def module_command(parts: Parts, state: Path, options: Sequence[str], java: Path | None = None) -> list[str]:
    """Give the same with the application on the module path."""
    path = f"{parts.host}:{parts.libraries}"
    return [
        str((java or parts.jdk) / "bin" / "java"),
        *QUIET,
        *options,
        "-p",
        path,
        "-m",
        "host/host.Host",
        f"state.dir={state}",
    ]


def agent(parts: Parts) -> str:
    """Give the option that brings the agent."""
    return f"-javaagent:{parts.agent}"


def run(
    command: Sequence[str],
    words: str = "",
    port: int | None = None,
    extra: Mapping[str, str] = MappingProxyType({}),
) -> ExitedJvm:
    """Run a JVM to its end, with these words on its standard input."""
    began = time.monotonic()
    variables = {**environment(port or free_ports(1)[0]), **extra}
    ran = subprocess.run(
        command, input=words, env=variables, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    return ExitedJvm(ran.returncode, ran.stdout, ran.stderr, time.monotonic() - began)


class RunningJvm:
    """A JVM that runs: it takes words, and its agent answers the operator's own client. Leaving it ends the JVM."""

    def __init__(self, command: Sequence[str], extra: Mapping[str, str] = MappingProxyType({})) -> None:
        """Start it."""
        (self.port,) = free_ports(1)
        self.tls: AgentTls | None = None
        """What is expected of its agent; None: plain HTTP."""
        self._process = subprocess.Popen(
            command,
            env={**environment(self.port), **extra},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill what still runs."""
        self._process.kill()
        self._process.communicate()

    def tell(self, word: str) -> str:
        """Say a word to the application and give its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()
        return self.line()

    def line(self) -> str:
        """Give the next line of the application."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def end(self) -> tuple[int, str, str]:
        """Let the application end; give its exit code, and the rest of what it printed."""
        out, err = self._process.communicate("", timeout=PATIENCE_SECONDS)
        return self._process.returncode, out, err

    def kill(self) -> str:
        """Kill it; give what it printed as errors."""
        self._process.kill()
        return self._process.communicate()[1]

    def address(self) -> AgentAddress:
        """Give where its agent is."""
        return AgentAddress(
            ordinal=Ordinal(0), pod="host-0", pod_uid="uid-1", address="127.0.0.1", port=self.port, tls=self.tls
        )

    def ask(self) -> AgentReport | AgentSilent:
        """Ask the agent once, as the operator does."""

        async def once() -> AgentReport | AgentSilent:
            client = AgentClient()
            try:
                (reading,) = await client.read([self.address()], "host", TOKEN)
            finally:
                await client.close()
            return reading.reply

        return asyncio.run(once())

    def report(self) -> AgentReport:
        """Ask until the agent reports; it begins with the first instance."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            reply = self.ask()
            if isinstance(reply, AgentReport):
                return reply
            if time.monotonic() > end or self._process.poll() is not None:
                raise AssertionError((reply.why, self.kill()))
            time.sleep(0.2)

    def announce(self, process_ids: Sequence[ProcessId]) -> AnnouncementOutcome:
        """Tell the agent which processes leave."""
        content = announcement(process_ids, Epoch(lease=1, counter=1), Rebalance.CONSERVATIVE, timedelta(seconds=50))

        async def once() -> AnnouncementOutcome:
            client = AgentClient()
            try:
                (result,) = await client.announce([self.address()], content, TOKEN)
            finally:
                await client.close()
            return result.outcome

        return asyncio.run(once())
