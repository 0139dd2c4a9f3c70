"""Runs Maven: jars of the broker and of Spark's connector from our poms, applications from their folders, the agent.

Called by `lab.build.plan` and `lab.build.launchers`. Maven works on a copy, so a project's `target/` is neither used
nor written, and its tests are not run: that is what `make test` does. Maven reaches its registry only for what is not
in `~/.m2` yet.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from lab.build.cache import Cache, content_key
from lab.build.subprocesses import Command, fetch
from lab.build.toolchains import find, java_home, needed
from lab.errors import LabError
from lab.settings import LAB, REPOSITORY, Versions
from lab.terminal import step

BROKER = LAB / "kafka" / "pom.xml"
CONNECTOR = LAB / "spark" / "pom.xml"
AGENT = REPOSITORY / "agent"
AGENT_JAR = "streamapp-agent.jar"
TIMEOUTS = ("-Daether.connector.connectTimeout=10000", "-Daether.connector.requestTimeout=60000")
"""In milliseconds, understood by Maven 3.8 and newer: without a network it then fails within seconds."""

PLUGINS = "org.apache.maven.plugins"
"""Named in full: where a plugin's short name cannot be looked up, Maven does not say why."""
QUIETLY = ("--quiet", "--batch-mode", "-Dstyle.color=never")
ADVICE = (
    r"^\[ERROR\]\s*$|Re-run Maven|To see the full stack trace|For more information about the errors|\[Help \d\] http"
)
"""What Maven says about itself at the end of every failure."""


def broker_jars(versions: Versions, cache: Cache, pom: Path = BROKER) -> Path:
    """Give the folder with the jars of the broker and of everything it needs at run time."""
    return libraries("broker-jars", "Fetch the jars of the Kafka broker", pom, versions, cache)


def connector_jars(versions: Versions, cache: Cache, pom: Path = CONNECTOR) -> Path:
    """Give the folder with the jars that Spark needs beyond its own to read Kafka."""
    return libraries("spark-kafka-jars", "Fetch the jars of Spark's Kafka connector", pom, versions, cache)


def libraries(
    name: str,
    title: str,
    pom: Path,
    versions: Versions,
    cache: Cache,
    properties: Mapping[str, str] = MappingProxyType({}),
) -> Path:
    """Give the folder with the jars that a pom needs at run time; `properties` go before its own of the same names."""

    def build(folder: Path) -> None:
        with step(title), tempfile.TemporaryDirectory(dir=folder) as workplace:
            shutil.copy(pom, workplace)
            goal = [
                f"{PLUGINS}:maven-dependency-plugin:copy-dependencies",
                "-DincludeScope=runtime",
                f"-DoutputDirectory={folder}",
            ]
            _maven([*goal, *_defined(properties)], Path(workplace), name, versions, cache)

    return cache.entry(name, content_key({"pom": pom, **properties}), build)


def package(project: Path, versions: Versions, cache: Cache) -> Path:
    """Give the folder with the project's jar and, where its pom makes one, `lib/` with the jars it needs.

    `project` holds `pom.xml` and `src`, and its pom has no parent in another folder. The names of the jars are the
    pom's choice.
    """
    name = f"{project.name}-jars"

    def build(folder: Path) -> None:
        with step(f"Package {project.name} with Maven"), tempfile.TemporaryDirectory(dir=folder) as workplace:
            copy = Path(workplace)
            shutil.copy(project / "pom.xml", copy)
            shutil.copytree(project / "src", copy / "src")
            _maven(["package", "-Dmaven.test.skip=true"], copy, name, versions, cache)
            for jar in (copy / "target").glob("*.jar"):
                shutil.move(jar, folder)
            if (copy / "target" / "lib").is_dir():
                shutil.move(copy / "target" / "lib", folder)

    return cache.entry(name, content_key({"pom": project / "pom.xml", "src": project / "src"}), build)


def agent_jar(versions: Versions, cache: Cache, project: Path = AGENT) -> Path:
    """Give the folder with the agent's jar, which holds the task assignor too.

    `project` has a pom with modules; of each its pom and its `src/main` count: a changed test makes no new image.
    """
    modules = sorted(pom.parent for pom in project.glob("*/pom.xml"))
    sources = [path for module in modules for path in (module / "pom.xml", module / "src" / "main") if path.exists()]
    inputs = {str(path.relative_to(project)): path for path in (project / "pom.xml", *sources)}

    def build(folder: Path) -> None:
        with step("Package the agent with Maven"), tempfile.TemporaryDirectory(dir=folder) as workplace:
            for name, path in inputs.items():
                copy = Path(workplace, name)
                copy.parent.mkdir(parents=True, exist_ok=True)
                if path.is_dir():
                    shutil.copytree(path, copy)
                else:
                    shutil.copy(path, copy)
            goals = ["package", "-Dmaven.test.skip=true", "--projects", "agent", "--also-make"]
            _maven(goals, Path(workplace), "agent-jar", versions, cache)
            shutil.move(Path(workplace, "agent", "target", AGENT_JAR), folder)

    return cache.entry("agent-jar", content_key(inputs), build)


def module(
    project: Path, name: str, title: str, versions: Versions, cache: Cache, properties: Mapping[str, str]
) -> Path:
    """Package one module of a project with those it needs; give the folder with all that lies in its `target`.

    `properties` go before the poms' own of the same names.
    """

    def build(folder: Path) -> None:
        with step(title), tempfile.TemporaryDirectory(dir=folder) as workplace:
            copy = Path(workplace, project.name)
            shutil.copytree(project, copy, ignore=shutil.ignore_patterns("target"))
            goals = ["package", "--projects", name, "--also-make", "-Dmaven.test.skip=true", *_defined(properties)]
            _maven(goals, copy, entry, versions, cache)
            for made in (copy / name / "target").iterdir():
                shutil.move(made, folder)

    entry = f"{project.name}-{name}"
    sources = {path.relative_to(project).as_posix(): path for path in sorted(project.rglob("*")) if _is_source(path)}
    return cache.entry(entry, content_key({**sources, **properties}), build)


def _is_source(path: Path) -> bool:
    return path.is_file() and "target" not in path.parts


def _defined(properties: Mapping[str, str]) -> list[str]:
    return [f"-D{name}={value}" for name, value in sorted(properties.items())]


def _maven(goals: list[str], folder: Path, name: str, versions: Versions, cache: Cache) -> None:
    environment = {**os.environ, "JAVA_HOME": str(java_home(versions))}
    command: Command = [find(needed(versions)["mvn"]), *QUIETLY, *TIMEOUTS, *goals]
    outcome = fetch(command, cache.log(name), folder=folder, environment=environment)
    if outcome.code != 0:
        raise LabError(
            f"{name}: Maven failed",
            outcome.why(noise=ADVICE),
            "if it names a repository, check the network and ~/.m2/settings.xml; else mend the pom or the sources",
        )
