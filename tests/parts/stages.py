"""Runs stages: side by side in lanes, each with a log of its own, until one fails or the time is over.

Whatever the end, no process of a stage is left: each stage is a session of its own, which is ended as a whole.
"""

import asyncio
import os
import shlex
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.parts.plan import Stage

GRACE_SECONDS = 90
"""The lab takes itself down when it is interrupted."""

NOT_IN_TIME = r"LabError: .*: not within \d+ s"
"""What `lab.clusters.kubectl.wait_until` says, and nothing else does."""

Said = Callable[[str], object]
YIELD = """renice -n 19 $$ >/dev/null
[ ! -w /proc/self/autogroup ] || echo 19 >/proc/self/autogroup
"""
"""A session of its own shares the machine with others as a whole, whatever its processes' priority; so both are set."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a stage ended."""

    name: str
    began: float
    """Unix time."""
    seconds: float
    code: int
    """The exit code; a stage that was ended has none of its own and gets `ENDED`."""
    log: Path


ENDED = 130


def script(stage: Stage, report: Path, *, stops_at_first: bool) -> str:
    """What bash runs: the commands, then the tests.

    Args:
        stage: The stage.
        report: Where pytest writes what each test took (JUnit's XML).
        stops_at_first: Whether the first test that fails ends the stage.
    """
    lines = list(stage.commands)
    if stage.tests:
        lines.append(shlex.join(_pytest(stage, report, stops_at_first=stops_at_first)))
    shown = "\n".join(f"echo {shlex.quote('$ ' + line)}\n{line}" for line in lines)
    return YIELD + shown if stage.yields else shown


def _pytest(stage: Stage, report: Path, *, stops_at_first: bool) -> list[str]:
    words = ["uv", "run", "--frozen", *(("python", "-m", "lab", "test") if stage.is_in_lab else ("pytest",))]
    if stage.keeps_lab:
        words.append("--keep")
    if not stage.is_random:
        words += ["-p", "no:randomly"]
    if stage.workers > 1:
        words += ["--numprocesses", str(stage.workers), "--dist", "loadfile" if stage.by_file else "worksteal"]
    words += ["--durations=25", "--durations-min=1", f"--junit-xml={report}", "-m", stage.expression]
    if stops_at_first:
        words.append("--maxfail=1")
    words += ["--reruns=1", f"--only-rerun={NOT_IN_TIME}"] if stage.repeats else ["-p", "no:rerunfailures"]
    for place in stage.without:
        words.append(f"--ignore-glob=*/{place}")
    return [*words, *files_of(stage)]


def files_of(stage: Stage) -> list[str]:
    """Its files and folders, with stars resolved.

    Raises:
        ValueError: One of them is not there.
    """
    found: list[str] = []
    for place in stage.tests:
        names = sorted(str(path) for path in Path().glob(place))
        if not names:
            raise ValueError(f"the plan names {place}, and no such file is there: correct tests/parts/plan.toml")
        found += names
    return found


def one_by_one(name: str, stage: Stage) -> tuple[dict[str, Stage], dict[str, Stage]]:
    """Give each file of tests in the lab a stage and a lab of its own, so that no file costs or helps another one.

    Returns:
        What must end well before the others begin, and those others.
    """
    if not stage.is_in_lab:
        return {}, {name: stage}
    first = {f"{name}-build": Stage(commands=stage.commands, environment=stage.environment)} if stage.commands else {}
    return first, {
        Path(file).stem.removeprefix("test_").replace("_", "-"): stage.model_copy(
            update={"tests": (file,), "commands": ()}
        )
        for file in files_of(stage)
    }


async def lanes(
    sequences: Sequence[Sequence[tuple[str, Stage]]], folder: Path, ran: list[Ran], said: Said, *, stops_at_first: bool
) -> bool:
    """Run lanes side by side, and the stages of a lane one after the other, until one fails.

    Args:
        sequences: The stages of each lane, with their names.
        folder: Where logs and reports go.
        ran: Receives each stage as it ends.
        said: Receives a line about each beginning and end.
        stops_at_first: Whether the first failure ends all of them; otherwise each stage of each lane is run.

    Returns:
        Whether all stages ended well.
    """
    tasks = [asyncio.create_task(_lane(each, folder, ran, said, stops_at_first=stops_at_first)) for each in sequences]
    try:
        for task in asyncio.as_completed(tasks):
            if not await task and stops_at_first:
                return False
        return all(task.result() for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _lane(
    stages: Sequence[tuple[str, Stage]], folder: Path, ran: list[Ran], said: Said, *, stops_at_first: bool
) -> bool:
    is_well = True
    for name, stage in stages:
        log = folder / f"{name}.log"
        said(f"{name} begins, its output is in {log}")
        one = await _stage(name, stage, log, ran, stops_at_first=stops_at_first)
        said(f"{name} {'ended well' if one.code == 0 else f'FAILED ({one.code})'} after {one.seconds:.0f} s")
        is_well &= one.code == 0
        if not is_well and stops_at_first:
            break
    return is_well


async def _stage(name: str, stage: Stage, log: Path, ran: list[Ran], *, stops_at_first: bool) -> Ran:
    began, code = time.time(), ENDED
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            "bash", "-euo", "pipefail", "-c", script(stage, log.with_suffix(".xml"), stops_at_first=stops_at_first),
            stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, **stage.environment}, start_new_session=True,
        )  # fmt: skip
        try:
            code = await process.wait()
        finally:
            await _end(process)
            ran.append(Ran(name, began, time.time() - began, code, log))
    return ran[-1]


async def _end(process: asyncio.subprocess.Process) -> None:
    """Interrupt all that is left of a stage, and kill what stays."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await process.wait()
        os.killpg(process.pid, signal.SIGKILL)
