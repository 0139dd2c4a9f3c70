"""What the agents of one trial say and are told: three processes, one secret, one announcement after the other."""

import hashlib
import json
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from lab.errors import LabError, NotYetError
from lab.matrix.processes import LOOPBACK
from streamapp.core.facts.agent_reports import AgentReport, Rebalance
from streamapp.core.facts.hold_record import Epoch
from streamapp.core.facts.ids import Ordinal, ProcessId
from streamapp.wire.agent_report import Expected, NotOurReportError, read_report
from streamapp.wire.announcement import announcement
from streamapp.wire.errors import UndecodableError

ALL_DEFAULTS = "assignor,heartbeat,leave"
TTL = timedelta(seconds=60)
RENEWAL_SECONDS = 15.0
_ANSWER_SECONDS = 3.0


@dataclass(frozen=True)
class Word:
    """One report: as the operator reads it, and as it came."""

    report: AgentReport
    said: Mapping[str, Any]

    @property
    def instance(self) -> Mapping[str, Any]:
        """The one instance in it."""
        found: Mapping[str, Any] = self.said["instances"][0]
        return found


@dataclass
class Agents:
    """All agents of one application."""

    application_id: str
    ports: Sequence[int]
    """By ordinal."""
    token: str = field(default_factory=lambda: secrets.token_hex(32))
    _counter: int = 0
    _told_at: float = 0.0
    _leaving: tuple[ProcessId, ...] = ()

    def environment(self, ordinal: int) -> dict[str, str]:
        """Give what the agent of one process is told at its start."""
        return {
            "STREAMAPP_AGENT_PORT": str(self.ports[ordinal]),
            "STREAMAPP_AGENT_TOKEN_SHA256": hashlib.sha256(self.token.encode()).hexdigest(),
            "STREAMAPP_AGENT_POD_UID": _pod_uid(ordinal),
            "STREAMAPP_AGENT_DEFAULTS": ALL_DEFAULTS,
        }

    def words(self) -> list[Word]:
        """Ask all of them; NotYetError where one does not answer, or says nothing usable."""
        return [self.reply(ordinal) for ordinal in range(len(self.ports))]

    def reply(self, ordinal: int) -> Word:
        """Ask one of them; errors as `words`."""
        asked_at = datetime.now(UTC)
        body = self._ask(ordinal, "GET", "report")
        expected = Expected(
            ordinal=Ordinal(ordinal),
            pod_uid=_pod_uid(ordinal),
            application_id=self.application_id,
            asked_at=asked_at,
        )
        try:
            return Word(read_report(body, expected).report, json.loads(body))
        except (UndecodableError, NotOurReportError) as error:
            raise NotYetError(f"agent {ordinal}: its report is of no use", str(error), "see the log") from error

    def tell(self, leaving: Iterable[ProcessId]) -> None:
        """Tell all of them who leaves, under a higher epoch; LabError where one refuses."""
        self._counter += 1
        self._leaving = tuple(leaving)
        self._tell()

    def renew(self) -> None:
        """Tell it again before it expires."""
        if time.monotonic() - self._told_at > RENEWAL_SECONDS:
            self._tell()

    def _tell(self) -> None:
        body = announcement(self._leaving, Epoch(1, self._counter), Rebalance.CONSERVATIVE, TTL)
        for ordinal in range(len(self.ports)):
            self._ask(ordinal, "PUT", "leaving", body)
        self._told_at = time.monotonic()

    def _ask(self, ordinal: int, method: str, what: str, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(  # the scheme is the next line's
            f"http://{LOOPBACK}:{self.ports[ordinal]}/streamapp/v1/{what}",
            data=body,
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
            method=method,
        )
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with direct.open(request, timeout=_ANSWER_SECONDS) as answer:
                read: bytes = answer.read()
                return read
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")[:300]
            raise LabError(
                f"agent {ordinal}: refuses to {method} {what}", f"{error.code} {said}", "see its log"
            ) from error
        except OSError as error:
            raise NotYetError(f"agent {ordinal}: does not answer", str(error), "see the process's log") from error


def _pod_uid(ordinal: int) -> str:
    return f"process-{ordinal}"
