"""Answers what happened to an application, from the files of the flight record: `GET …/history?since=…`.

Called by `http.routes`. A thread reads the files, for some seconds at most: one reader at a time, the newest files
first, up to limits of lines and time. The answer says if it is not complete.
"""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from streamapp.api.http.messages import NO_RECORD
from streamapp.controller.record.files import every_file, is_of_samples, whole_lines
from streamapp.kube.client.kinds import Key

MOST_LINES = 1_000
"""In one answer; the newest ones."""
LONGEST_SECONDS = 2.0
"""That files are read for one answer."""
PATIENCE_SECONDS = 5.0
"""For a disk."""
_NOTABLE = ("scale", "decision", "step", "stepClosed", "forecast", "forecastClosed")
_MARKS = tuple(f'"kind":"{kind}"'.encode() for kind in _NOTABLE)
_AT_ONCE = 500
"""Lines between two pauses, in which the event loop can run."""
_CHANGES = ("verdict", "reason", "desired", "granted", "actual", "ready", "holdId", "target", "converged")
"""A decision line is returned only if one of these changed, or an estimate begins or ends: during a hold every pass
writes a line."""

Line = dict[str, Any]
Files = list[tuple[float, Path]]
"""As `files.every_file` gives them."""


@dataclass(frozen=True, slots=True)
class HistoryAnswer:
    """An HTTP status with its body: JSON, or one sentence where it is no success."""

    status: int
    body: str


_NO_RECORD = HistoryAnswer(404, f"{NO_RECORD}: STREAMAPP_RECORD_FOLDER names no folder")


@dataclass(frozen=True, slots=True)
class RecordExcerpt:
    """What was read."""

    lines: list[Line]
    is_whole: bool
    begins_at: str | None
    """Time of the oldest line of any application; None where there is none yet."""


class RecordHistory:
    """Reads the flight record for HTTP requests."""

    def __init__(self, folder: Path | None, leads: Callable[[], bool]) -> None:
        self._folder = folder
        self._leads = leads
        self._is_reading = False

    async def about(self, key: Key, since: str) -> HistoryAnswer:
        """What happened with one StreamApp since a time (ISO 8601 with its zone; empty: ever)."""
        refusal = self._refusal()
        if refusal is not None or self._folder is None:
            return refusal or _NO_RECORD
        try:
            after = _time(since)
        except ValueError:
            return HistoryAnswer(400, f"since={since!r} is no time: give it like 2026-11-21T12:00:00Z")
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                read = await self._read(self._folder, key, after)
        except TimeoutError:
            return HistoryAnswer(503, f"the disk of the flight record has not answered for {PATIENCE_SECONDS:g} s")
        except OSError as error:
            return HistoryAnswer(503, f"the flight record cannot be read: {error}")
        document = {"v": 1, "namespace": key.namespace, "app": key.name, "isWhole": read.is_whole, "lines": read.lines}
        return HistoryAnswer(
            200, json.dumps(document | ({} if read.begins_at is None else {"beginsAt": read.begins_at}))
        )

    def _refusal(self) -> HistoryAnswer | None:
        if not self._leads():
            return HistoryAnswer(503, "this replica of the operator does not lead: ask the holder of the Lease")
        if self._is_reading:
            return HistoryAnswer(
                503, "another request is reading the flight record, or its disk does not answer: try again"
            )
        return None

    async def _read(self, folder: Path, key: Key, since: datetime) -> RecordExcerpt:
        """Read in a thread that the end of the process does not wait for."""
        loop = asyncio.get_running_loop()
        result: asyncio.Future[RecordExcerpt] = loop.create_future()

        def finish(outcome: RecordExcerpt | Exception) -> None:
            self._is_reading = False
            if result.cancelled():
                return
            if isinstance(outcome, Exception):
                result.set_exception(outcome)
            else:
                result.set_result(outcome)

        def read() -> None:
            outcome: RecordExcerpt | Exception
            try:
                files = every_file(folder)
                outcome = RecordExcerpt(*notable(files, key, since), beginning(files))
            except Exception as error:  # noqa: BLE001 (returned to the caller)
                outcome = error
            if not loop.is_closed():
                loop.call_soon_threadsafe(finish, outcome)

        self._is_reading = True
        threading.Thread(target=read, name="flight record reader", daemon=True).start()
        return await result


def beginning(files: Files) -> str | None:
    """The time of the oldest line; the record has nothing before it."""
    for _, path in files:
        with suppress(FileNotFoundError):
            for text in whole_lines(path):
                return str(json.loads(text)["ts"])
    return None


def notable(files: Files, key: Key, since: datetime) -> tuple[list[Line], bool]:
    """The notable lines, oldest first, and whether these are all notable lines since that time."""
    began, history = time.monotonic(), list[Line]()
    is_whole = True
    for at, path in reversed(files):
        if at < since.timestamp():
            break
        if is_of_samples(path):
            continue
        if len(history) >= MOST_LINES or time.monotonic() - began > LONGEST_SECONDS:
            is_whole = False
            break
        lines = list(_of_one_file(path, key, since, began))
        if lines and lines[-1] is None:
            is_whole = False
        # Only changes count: a hold that stands for an hour would leave no room for what came before it.
        history += _changes([line for line in lines if line is not None])
    history.sort(key=lambda line: (line["ts"], line["seq"]))
    changes = list(_changes(history))
    return changes[-MOST_LINES:], is_whole and len(changes) <= MOST_LINES


def _of_one_file(path: Path, key: Key, since: datetime, began: float) -> Iterator[Line | None]:
    """The lines of one application; None at the end where there was no time for all of them."""
    about = f'"namespace":"{key.namespace}","app":"{key.name}",'.encode()
    try:
        for number, text in enumerate(whole_lines(path)):
            if number % _AT_ONCE == _AT_ONCE - 1:
                time.sleep(0.0005)  # lets the event loop go on
                if time.monotonic() - began > LONGEST_SECONDS:
                    yield None
                    return
            if about in text and any(mark in text for mark in _MARKS):
                line = json.loads(text)
                if _time(line["ts"]) >= since:
                    yield line
    except FileNotFoundError:
        return  # finished or removed meanwhile


def _changes(lines: list[Line]) -> Iterator[Line]:
    before: object = None
    for line in lines:
        if line["kind"] == "decision":
            decided = (*(line.get(name) for name in _CHANGES), line.get("etaSeconds") is None)
            if decided == before:
                continue
            before = decided
        yield line


def _time(text: str) -> datetime:
    if not text:
        return datetime(1970, 1, 1, tzinfo=UTC)
    parsed = datetime.fromisoformat(text)
    if parsed.tzinfo is None:
        raise ValueError("it has no zone")
    return parsed
