"""One process of the producer, as the operator sees it: its start, questions and answers, its last words, its end.

Used by `producer`, from one event loop. Whatever the process does, each question has a deadline, and what it writes to
standard error is bounded and freed of secrets.
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterable

from streamapp.kafka.producer.frames import LENGTH, Setup, encode_setup, framed

COMMAND = (sys.executable, "-P", "-m", "streamapp.kafka.producer")
END_SECONDS = 1.0
"""For the end of an idle process after its input was closed; then it is killed."""
MOST_WORDS = 2000
"""Characters of its last words."""
MOST_ANSWER = 64 * 1024 * 1024
_ENVIRONMENT = ("LANG", "LD_LIBRARY_PATH", "PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHOME", "PYTHONPATH", "TZ")
"""No more reaches it: a proxy's address, say, would lead requests for tokens elsewhere."""


class ChildEndedError(Exception):
    """The process has ended, by itself or by the kernel."""


class ChildProcess:
    """Created by `start`; whoever starts one also ends it."""

    def __init__(self, process: Process, secrets: Iterable[str]) -> None:
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ValueError("a process without pipes")
        self._process = process
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        self._secrets = sorted({one for one in secrets if len(one) > 3}, key=len, reverse=True)
        self._words = ""
        self._is_asked = False
        self._reading = asyncio.create_task(self._read_words(), name="words of the producer")

    @classmethod
    async def start(cls, setup: Setup, secrets: Iterable[str]) -> "ChildProcess":
        """Start one and give it its setup; OSError where no process can be started."""
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            start_new_session=True,  # a signal to the operator's group is not for it
        )
        child = cls(process, secrets)
        child._write(encode_setup(setup))
        return child

    @property
    def number(self) -> int:
        """Its process ID."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it is gone."""
        return self._process.returncode is not None

    async def ask(self, body: bytes, deadline_seconds: float) -> bytes:
        """Send a frame and give the answer; ChildEndedError or TimeoutError, after which it can only be ended."""
        if self._is_asked:
            raise ChildEndedError
        self._is_asked = True
        async with asyncio.timeout(deadline_seconds):
            try:
                self._write(body)
                await self._stdin.drain()
                (length,) = LENGTH.unpack(await self._stdout.readexactly(LENGTH.size))
                if length > MOST_ANSWER:
                    raise ChildEndedError
                answer = await self._stdout.readexactly(length)
            except (asyncio.IncompleteReadError, OSError) as error:
                self._is_asked = False
                raise ChildEndedError from error
        self._is_asked = False
        return answer

    async def end(self) -> None:
        """Have it end: one that is idle or ending by itself, within a bound; one that owes an answer at once."""
        self._stdin.close()
        if not self._is_asked:
            try:
                async with asyncio.timeout(END_SECONDS):
                    await self._process.wait()
            except TimeoutError:
                pass
        if not self.has_ended:
            self._process.kill()
        await self._process.wait()
        await asyncio.wait([self._reading])  # cancelled where all tasks are, at the end of the operator

    async def cause(self) -> str:
        """Say how it ended, and its last words; killed first if it lives."""
        await self.end()
        code = self._process.returncode or 0
        how = f"it ended by {signal.Signals(-code).name}" if code < 0 else f"it ended with exit code {code}"
        words = " ".join(self._words.split())
        return f"{how}; its last words: {words}" if words else how

    def without_secrets(self, text: str) -> str:
        """Give a text in which no secret stands."""
        for secret in self._secrets:
            text = text.replace(secret, "(secret)")
        return text

    def _write(self, body: bytes) -> None:
        self._stdin.write(framed(body))

    async def _read_words(self) -> None:
        """Keep the last whole lines, so that no part of a secret is left at the cut."""
        rest = ""
        while chunk := await self._stderr.read(4096):
            *lines, rest = (rest + chunk.decode(errors="replace"))[-4 * MOST_WORDS :].split("\n")
            self._keep(lines)
        self._keep([rest])

    def _keep(self, lines: Iterable[str]) -> None:
        text = self._words + "".join(f"{self.without_secrets(line)}\n" for line in lines if line)
        self._words = text if len(text) <= MOST_WORDS else text[-MOST_WORDS:].partition("\n")[2]
