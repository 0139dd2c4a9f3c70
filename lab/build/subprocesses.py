"""Runs foreign tools for the builders: every line goes into a log file, the last ones into the error.

It decides nothing about what a failure means: a builder gets an `ToolResult` and turns it into a LabError of its own,
because only it knows the object and the next step. A tool never outlives the process that started it, else a killed
`lab up` would leave a compiler behind that writes into a folder which the next one removes. Each runs in a process
group of its own, because some end theirs when they are ended: mmdebstrap would take our caller along.
"""

import os
import re
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from lab.terminal import progress

Command = Sequence[str | Path]
"""A program and its arguments."""
ERROR_LINES = 12
"""Lines of output that an error repeats: enough for a compiler's message, short enough to be read."""
TAIL_LINES = 5 * ERROR_LINES
"""Lines of output to choose those from: some tools end with advice on themselves."""
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""What tools colour their lines with, some of them into a file too."""


TRIES = 3
PAUSE_SECONDS = 5.0
BROKEN_OFF = re.compile(
    r"connection (?:was )?(?:reset|closed|timed out)|timed? ?out|unexpected eof|premature end|\b50[0234]\b",
    re.IGNORECASE,
)
"""In the words of apt, Go, Maven and uv: a registry was reached, and did not send all of it."""


@dataclass(frozen=True)
class ToolResult:
    """How a tool ended."""

    code: int
    """The exit code; 0 is success, a negative number the signal that ended it."""
    last_lines: tuple[str, ...]
    """The last lines of output and errors, mixed as they came."""
    log: Path
    """Where all lines are."""

    def why(self, noise: str = r"^\s*$") -> str:
        """Say it in the words of the tool, for the middle part of a LabError, without lines in which `noise` is."""
        lines = [line for line in self.last_lines if not re.search(noise, line)]
        said = "\n    ".join(lines[-ERROR_LINES:]) or f"it ended with exit code {self.code} and said nothing"
        return f"{said}\n    (all of it: {self.log})"


def run(
    command: Command,
    log: Path,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    each_line: Callable[[str], None] | None = None,
) -> ToolResult:
    """Run a command to its end in `folder`, with nothing to read.

    `environment` is the whole environment of the command, by default ours. `each_line` sees every line of output as
    it comes, without its end. The program has to exist: builders ask `lab.build.toolchains` for it first.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("w") as record,
        subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", "--", *command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            process_group=0,
        ) as process,
    ):
        try:
            last = _follow(process.stdout or (), record, each_line)
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            raise
    return ToolResult(process.returncode, last, log)


def fetch(
    command: Command, log: Path, *, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> ToolResult:
    """Run a command that loads from a registry, as `run`; where the network broke off, again after a pause.

    Only words of a connection that was there and failed count: without a network, or with a wrong name, one try is
    enough. Each further try is shown.
    """
    outcome = run(command, log, folder=folder, environment=environment)
    for number in range(2, TRIES + 1):
        broken = next((line for line in outcome.last_lines if BROKEN_OFF.search(line)), None)
        if outcome.code == 0 or broken is None:
            break
        progress.print(f"  try {number} of {TRIES}, since the network broke off: {broken.strip()}", markup=False)
        time.sleep(PAUSE_SECONDS)
        outcome = run(command, log, folder=folder, environment=environment)
    return outcome


def _follow(output: Iterable[str], record: TextIO, each_line: Callable[[str], None] | None) -> tuple[str, ...]:
    """Write what a tool says into its log as it says it; give the last lines."""
    last: deque[str] = deque(maxlen=TAIL_LINES)
    for raw in output:
        record.write(raw)
        record.flush()
        line = COLOUR.sub("", raw).rstrip()
        if line:
            last.append(line)
        if each_line is not None:
            each_line(line)
    return tuple(last)
