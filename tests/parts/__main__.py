"""`python -m tests.parts`: the merge gate, the parts that are not in it, and which of those are due.

`make test`, `make test PART=…` and `make due` call it.
"""

import asyncio
import shutil
import subprocess
import sys
import time
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import click

from lab.terminal import results, show_table
from tests.parts import outcome, records
from tests.parts.plan import Plan, Stage, plan
from tests.parts.stages import ENDED, Ran, lanes, one_by_one

GATE = Path(".gate")
"""Logs and reports of the last run."""
BEAT_SECONDS = 60
"""While nothing begins or ends, a line each so often says that the run goes on."""

Sequences = Sequence[Sequence[tuple[str, Stage]]]


@click.group()
def main() -> None:
    """Run the merge gate or a part of the other tests, and list what is due."""


@main.command()
def gate() -> None:
    """Run what each merge must pass; the first failure ends it."""
    whole = plan()
    results.print(outcome.machine())
    phases = [[[(name, whole.stages[name]) for name in lane] for lane in phase.lanes] for phase in whole.phases]
    began = time.time()
    ran, is_green = _play(phases, whole.cap_minutes, stops_at_first=True)
    for command in whole.at_end:
        subprocess.run(["bash", "-c", command], check=False)
    is_green &= _few_repeated()
    _show_due(whole)
    _close("gate", ran, whole.stages, time.time() - began, is_green=is_green, minutes=whole.cap_minutes)


@main.command()
@click.argument("name")
def run(name: str) -> None:
    """Run one part to its end, and write its line into the table of runs."""
    whole = plan()
    if name not in whole.parts:
        raise click.UsageError(f"there is no part {name}; `make parts` lists them: {', '.join(sorted(whole.parts))}")
    part = whole.parts[name]
    first: dict[str, Stage] = {}
    stages: dict[str, Stage] = {}
    for at, stage in enumerate(part.stages, 1):
        needed, others = one_by_one(name if at == 1 else f"{name}-{at}", stage)
        first |= needed
        stages |= others
    phases = [[list(each.items())] for each in (first, stages) if each]
    content, began = records.WorkTree().content_of(part), time.time()
    ran, is_green = _play(phases, whole.part_minutes, stops_at_first=False)
    seconds = time.time() - began
    seed = " ".join(filter(None, (outcome.seeds(one.log) for one in ran)))
    result = records.GREEN if is_green else "red"
    today = datetime.now(UTC).date().isoformat()
    records.add(records.Run(name, content, _commit(), today, round(seconds), seed, result))
    _close(f"part {name}", ran, first | stages, seconds, is_green=is_green, minutes=whole.part_minutes)


@main.command()
@click.option("--strict", is_flag=True, help="Exit with 1 if a part is due, as a release needs it.")
def due(*, strict: bool) -> None:
    """List the parts whose files have changed since they last passed."""
    is_due = _show_due(plan())
    sys.exit(1 if strict and is_due else 0)


@main.command("list")
def list_parts() -> None:
    """List all parts: what they show, and their last run."""
    newest = {one.part: one for one in records.read()}
    rows = []
    for name, part in sorted(plan().parts.items()):
        last = newest.get(name)
        rows.append((name, part.what, f"{last.result}, {last.seconds} s, {last.date}" if last else "never run"))
    show_table(("part", "what it shows", "last run"), rows)


def _play(phases: Sequence[Sequences], minutes: int, *, stops_at_first: bool) -> tuple[list[Ran], bool]:
    shutil.rmtree(GATE, ignore_errors=True)
    GATE.mkdir()
    ran: list[Ran] = []

    async def play() -> bool:
        beat = asyncio.create_task(_beat(ran, minutes))
        try:
            async with asyncio.timeout(minutes * 60):
                for phase in phases:
                    if not await lanes(phase, GATE, ran, _say, stops_at_first=stops_at_first):
                        return False
            return True
        finally:
            beat.cancel()

    try:
        return ran, asyncio.run(play())
    except TimeoutError:
        _say(f"the time of {minutes} minutes is over")
        return ran, False


async def _beat(ran: Sequence[Ran], minutes: int) -> None:
    began = time.monotonic()
    while True:
        await asyncio.sleep(BEAT_SECONDS)
        passed = (time.monotonic() - began) / 60
        _say(f"minute {passed:.0f} of at most {minutes}: {_running({one.name for one in ran})}")


def _running(ended: Container[str]) -> str:
    """Name the stages that run, each with what it says of its progress."""
    return ", ".join(f"{log.stem} {_percent(log)}" for log in sorted(GATE.glob("*.log")) if log.stem not in ended)


def _percent(log: Path) -> str:
    with suppress(OSError, IndexError, ValueError):
        words = log.read_text(errors="replace").rsplit("%]", 1)
        return words[0].rsplit("[", 1)[1].strip() + " %" if len(words) == 2 else "runs"
    return "runs"


def _say(line: str) -> None:
    results.print(f"{time.strftime('%H:%M:%S')}  {line}", soft_wrap=True, markup=False)


def _close(
    what: str, ran: Sequence[Ran], stages: Mapping[str, Stage], seconds: float, *, is_green: bool, minutes: int
) -> None:
    """Print all logs, the table of stages and, last of all, what failed and how to repeat it; then exit."""
    # What was ended because another stage failed is to blame only where no other is: then the time was over.
    failed = [one for one in ran if one.code not in {0, ENDED}] or [one for one in ran if one.code == ENDED]
    for one in sorted(ran, key=lambda one: (one in failed, one.began)):
        results.print(f"\n──── {one.name}, {one.seconds:.0f} s, exit code {one.code}", markup=False)
        print(one.log.read_text(errors="replace"), flush=True)  # noqa: T201 (as the tools wrote it)
    show_table(("began", "seconds", "stage", "end", "tests"), outcome.table(ran))
    results.print(outcome.machine())
    if is_green:
        results.print(f"{what}: green in {seconds:.0f} s", markup=False)
        sys.exit(0)
    results.print(f"{what}: RED after {seconds:.0f} of at most {minutes * 60} s", markup=False)
    for one in failed[:1] if what == "gate" else failed:
        results.print(str(outcome.failure_of(one, stages[one.name])), soft_wrap=True, markup=False)
    sys.exit(1)


def _few_repeated() -> bool:
    """Show which stories began once more; two of them are one too many."""
    repeated = outcome.repeated(GATE)
    for line in repeated:
        results.print(f"repeated: {line}", soft_wrap=True, markup=False)
    if len(repeated) > 1:
        results.print(f"{len(repeated)} stories were repeated, and one is allowed", markup=False)
    return len(repeated) <= 1


def _show_due(whole: Plan) -> bool:
    is_due = records.due(whole.parts, records.read())
    for name, why in sorted(is_due.items()):
        results.print(f"due: make test PART={name}  ({why})", markup=False)
    return bool(is_due)


def _commit() -> str:
    asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return asked.stdout.strip() or "none"


if __name__ == "__main__":
    main()
