"""What a run came to, for the last lines of a log: a table of stages, and what to repeat where something failed."""

import os
import re
import shlex
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.parts.plan import Stage
from tests.parts.stages import ENDED, Ran

REPEATED = "repeated.txt"
"""In the folder of a run: a line for each test that began once more."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The first that went wrong."""

    stage: str
    test: str | None
    """Its node ID; None where no test is to blame, or pytest wrote no report."""
    seconds: float
    """Of the test, or of the stage."""
    command: str
    """To repeat it."""

    def __str__(self) -> str:
        what = f"stage {self.stage}" + (f", test {self.test}" if self.test else "")
        return f"{what}, {self.seconds:.1f} s\nrepeat it: {self.command}"


def failure_of(ran: Ran, stage: Stage) -> Failure:
    """Name what failed in a stage."""
    for test, seconds in failed_tests(ran.log.with_suffix(".xml")):
        runner = "python -m lab test" if stage.is_in_lab else "pytest"
        command = shlex.join(["-p", "no:randomly", "-m", stage.expression, test])
        return Failure(ran.name, test, seconds, f"uv run --frozen {runner} {command}")
    return Failure(ran.name, None, ran.seconds, last_command(ran.log) or "; ".join(stage.commands))


def failed_tests(report: Path) -> Iterable[tuple[str, float]]:
    """Give node ID and seconds of each test that failed, by pytest's report, if there is one."""
    if not report.exists():
        return
    try:
        cases = list(ET.parse(report).iter("testcase"))  # noqa: S314 (pytest wrote it)
    except ET.ParseError:
        return
    for case in cases:
        if case.find("failure") is not None or case.find("error") is not None:
            yield node_id(case.get("classname", ""), case.get("name", "")), float(case.get("time", "0"))


def node_id(class_name: str, name: str) -> str:
    """Make a node ID of the two words in pytest's report.

    >>> node_id("tests.parts.test_outcome", "test_it[1]")
    'tests/parts/test_outcome.py::test_it[1]'
    """
    words = class_name.split(".")
    at = next((at for at, word in enumerate(words, 1) if word.startswith("test_")), len(words))
    return "::".join(["/".join(words[:at]) + ".py", *words[at:], *([name] if name else [])])


def last_command(log: Path) -> str | None:
    """Give the last command that a stage began, which its log names."""
    commands = re.findall(r"^\$ (.*)$", log.read_text(errors="replace"), re.MULTILINE)
    return commands[-1] if commands else None


def seeds(log: Path) -> str:
    """Give the seeds that a log names, of a random order or of drawn stories; an empty text if nothing was drawn."""
    return " ".join(re.findall(r"(?:--randomly-seed=|worlds' time, seed )(\d+)", log.read_text(errors="replace")))


def tests_run(log: Path) -> str:
    """Give the closing line of pytest in a log, or an empty text."""
    closing = re.compile(r"^=+ (.*\b(?:passed|failed|error).* in [\d.]+s.*?) =+$", re.MULTILINE)
    lines = closing.findall(log.read_text(errors="replace"))
    return re.sub(r" in [\d.]+s.*", "", lines[-1]) if lines else ""


def repeated(folder: Path) -> list[str]:
    """Give what each test that began once more had waited for in vain; stories write it as it happens."""
    path = folder / REPEATED
    return path.read_text().splitlines() if path.exists() else []


def table(ran: Sequence[Ran]) -> Iterable[Sequence[str]]:
    """Give a row for each stage: when it began, its seconds, its name, how it ended, its tests."""
    for one in sorted(ran, key=lambda one: one.began):
        ended = {0: "passed", ENDED: "ended early"}.get(one.code, f"FAILED ({one.code})")
        clock = time.strftime("%H:%M:%S", time.localtime(one.began))
        yield clock, f"{one.seconds:.0f}", one.name, ended, tests_run(one.log)


def machine() -> str:
    """Say in one line what the machine had at this moment, for who asks later why it was slow."""
    load = " ".join(f"{one:.2f}" for one in os.getloadavg())
    free = shutil.disk_usage(".").free / 2**30
    memory = re.search(r"MemAvailable: *(\d+)", Path("/proc/meminfo").read_text())
    gibibytes = int(memory[1]) / 2**20 if memory else float("nan")
    return f"{os.cpu_count()} cores, load {load}, {gibibytes:.1f} GiB of memory and {free:.0f} GiB of disk free"
