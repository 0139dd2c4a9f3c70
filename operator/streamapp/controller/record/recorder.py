"""Keeps the flight record: finds what is news in each pass, numbers it, and hands it to whoever writes.

Called by `reconcile`; put together by `process`. It awaits nothing and raises nothing: a pass is never later and never
fails because something could not be recorded. The first line is written with the first pass, so that a replica which
only stands by leaves no record.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import structlog

from streamapp.controller.record.queue import Entry, RecordQueue
from streamapp.core.actions.decision import Step
from streamapp.flightrecord.changes import FlightLog, Look
from streamapp.flightrecord.lines import ExecutedStep
from streamapp.flightrecord.schema import Mark, Record, RecorderLine, to_line
from streamapp.kube.client.kinds import Key

log = structlog.get_logger()

MOST_FAULTS = 20
"""That are told of; each once."""


@dataclass(frozen=True, slots=True)
class Name:
    """Who writes, on every line."""

    recorder: str
    """This process."""
    cluster: str = ""
    version: str = ""
    """Of the operator."""

    def mark(self, seq: int, mark: Mark, at: datetime, dropped: int = 0) -> Entry:
        """A word of the recorder about itself."""
        line = RecorderLine(
            cluster=self.cluster,
            namespace="",
            app="",
            uid="",
            recorder=self.recorder,
            ts=at,
            seq=seq,
            mark=mark,
            dropped=dropped,
            operator_version=self.version,
        )
        return Entry(seq, to_line(line))


@dataclass(slots=True)
class Recorder:
    """Keeps the record of all applications in one process."""

    name: Name
    queues: tuple[RecordQueue, ...]
    """Each gets every line."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    count_fault: Callable[[], object] = lambda: None
    """Called for each pass of which nothing could be told."""
    _logs: dict[Key, tuple[str, FlightLog]] = field(default_factory=dict)
    """With the UID of the StreamApp that each belongs to."""
    _made: dict[Key, list[ExecutedStep]] = field(default_factory=dict)
    """Steps of passes that are under way."""
    _next: int = 0
    _failed: set[str] = field(default_factory=set)
    """What went wrong in here; each is told once."""

    @classmethod
    def off(cls) -> "Recorder":
        """One that records nothing."""
        return cls(Name(""), ())

    @property
    def is_on(self) -> bool:
        """Whether anybody writes."""
        return bool(self.queues)

    def hears_of(self, key: Key) -> Callable[[Step, bool], None]:
        """Give what is to be told of the steps of one pass."""
        made = self._made[key] = []

        def hear(step: Step, is_done: bool) -> None:
            made.append(ExecutedStep(step, self.now(), is_done))

        return hear

    def record(self, key: Key, look: Look) -> None:
        """Add what is news in this pass; the steps that were made are known here."""
        made = tuple(self._made.pop(key, ()))
        if not self.is_on:
            return
        try:
            self._add(key, self._log(key, look.streamapp.metadata.uid).lines(replace(look, executed=made)))
        except Exception as error:
            # A fault in here must not end a pass. What was news in it is told anew by the next one, with all else.
            self.count_fault()
            self._logs.pop(key, None)
            kind = f"{type(error).__name__}: {error}"
            if kind not in self._failed and len(self._failed) < MOST_FAULTS:
                self._failed.add(kind)
                log.exception("flight record incomplete", app=str(key))

    def forget(self, key: Key) -> None:
        """Drop what is known of an application that is gone."""
        self._logs.pop(key, None)
        self._made.pop(key, None)

    def stop(self) -> None:
        """Add the last line, and have the writers end."""
        if self._next:
            self._put([self.name.mark(self._number(), Mark.STOPPED, self.now())])
        for queue in self.queues:
            queue.close()

    def _log(self, key: Key, uid: str) -> FlightLog:
        known = self._logs.get(key)
        if known is None or known[0] != uid:
            head: dict[str, Any] = {
                "cluster": self.name.cluster,
                "namespace": key.namespace,
                "app": key.name,
                "uid": uid,
                "recorder": self.name.recorder,
            }
            known = self._logs[key] = (uid, FlightLog(head))
        return known[1]

    def _add(self, key: Key, lines: Iterable[Record]) -> None:
        entries: list[Entry] = []
        if not self._next:
            entries.append(self.name.mark(self._number(), Mark.STARTED, self.now()))
        about = str(key).encode()
        for line in lines:
            seq = self._number()
            entries.append(Entry(seq, to_line(line.model_copy(update={"seq": seq})), about))
        self._put(entries)

    def _put(self, entries: list[Entry]) -> None:
        for queue in self.queues:
            queue.add(entries)

    def _number(self) -> int:
        number = self._next
        self._next += 1
        return number
