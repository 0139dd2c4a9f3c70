"""Keeps the flight record: finds what is new in each pass, numbers the lines, and queues them for the writers.

Called by `reconcile.reconciler`; created by `record.setup`. It awaits nothing and raises nothing: recording never
delays a pass and never makes it fail. The first line is written in the first pass, so that a standby replica leaves no
record.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import structlog

from streamapp.controller.record.queue import QueuedLine, RecordQueue
from streamapp.core.actions.decision import Step
from streamapp.flightrecord.changes import FlightLog, Look
from streamapp.flightrecord.lines import ExecutedStep
from streamapp.flightrecord.schema import Mark, Record, RecorderLine, SamplesLine, to_line
from streamapp.kube.client.kinds import Key

log = structlog.get_logger()

MOST_FAULTS = 20
"""Faults that are logged; each once."""


@dataclass(frozen=True, slots=True)
class RecorderIdentity:
    """Who writes, on every line."""

    recorder: str
    """This process."""
    cluster: str = ""
    version: str = ""
    """Of the operator."""

    def mark(self, seq: int, mark: Mark, at: datetime, dropped: int = 0, term: int | None = None) -> QueuedLine:
        """A line of the recorder about itself."""
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
            term=term,
            operator_version=self.version,
        )
        return QueuedLine(seq, to_line(line))


@dataclass(slots=True)
class PassRecorder:
    """Keeps the record of all applications in one process."""

    name: RecorderIdentity
    queues: tuple[RecordQueue, ...]
    """Each gets every line."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    term: Callable[[], int | None] = lambda: None
    """How often the Lease has changed hands; None without a Lease. Asked at the first line, when this process leads."""
    count_fault: Callable[[], object] = lambda: None
    """Called for each pass that could not be recorded."""
    _logs: dict[Key, tuple[str, FlightLog]] = field(default_factory=dict)
    """With the UID of the StreamApp that each belongs to."""
    _steps: dict[Key, list[ExecutedStep]] = field(default_factory=dict)
    """Steps that are not recorded yet, of a pass that is under way or of passes that failed after a step."""
    _next: int = 0
    _failed: set[str] = field(default_factory=set)
    """Faults of the recorder; each is logged once."""

    @classmethod
    def off(cls) -> "PassRecorder":
        """One that records nothing."""
        return cls(RecorderIdentity(""), ())

    @property
    def is_on(self) -> bool:
        """Whether there is a writer."""
        return bool(self.queues)

    def step_observer(self, key: Key) -> Callable[[Step, bool], None]:
        """Return the observer of the steps of one pass."""

        def observe(step: Step, is_done: bool) -> None:
            if self.is_on:
                self._steps.setdefault(key, []).append(ExecutedStep(step, self.now(), is_done))

        return observe

    def record(self, key: Key, look: Look) -> None:
        """Add what is news in this pass; the steps that were made are known here."""
        made = tuple(self._steps.pop(key, ()))
        if not self.is_on:
            return
        try:
            self._add(key, self._log(key, look.streamapp.metadata.uid).lines(replace(look, executed=made)))
        except Exception as error:
            # A fault in here must not end a pass. The next pass records all facts again.
            self.count_fault()
            self._logs.pop(key, None)
            kind = f"{type(error).__name__}: {error}"
            if kind not in self._failed and len(self._failed) < MOST_FAULTS:
                self._failed.add(kind)
                log.exception("flight record incomplete", app=str(key))

    def forget(self, key: Key) -> None:
        """Drop what is known of an application that is gone."""
        self._logs.pop(key, None)
        self._steps.pop(key, None)

    def stop(self) -> None:
        """Add the last line, and have the writers end."""
        if self._next:
            self._put([self.name.mark(self._number(), Mark.STOPPED, self.now())])
        for queue in self.queues:
            queue.close()

    def _log(self, key: Key, uid: str) -> FlightLog:
        entry = self._logs.get(key)
        if entry is None or entry[0] != uid:
            head: dict[str, Any] = {
                "cluster": self.name.cluster,
                "namespace": key.namespace,
                "app": key.name,
                "uid": uid,
                "recorder": self.name.recorder,
            }
            entry = self._logs[key] = (uid, FlightLog(head))
        return entry[1]

    def _add(self, key: Key, lines: Iterable[Record]) -> None:
        entries: list[QueuedLine] = []
        if not self._next:
            entries.append(self.name.mark(self._number(), Mark.STARTED, self.now(), term=self.term()))
        about = str(key).encode()
        for line in lines:
            seq = self._number()
            text = to_line(line.model_copy(update={"seq": seq}))
            entries.append(QueuedLine(seq, text, about, isinstance(line, SamplesLine)))
        self._put(entries)

    def _put(self, entries: list[QueuedLine]) -> None:
        for queue in self.queues:
            queue.add(entries)

    def _number(self) -> int:
        number = self._next
        self._next += 1
        return number
