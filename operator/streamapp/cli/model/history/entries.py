"""The history of a StreamApp as entries, and the entries of its Events: `entries_of_events`. Pure.

`from_record` gives entries from the operator's flight record. A history has one source, never both.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from streamapp.api.names import GROUP, KIND
from streamapp.cli.model.app_view import AppView
from streamapp.cli.text.sanitize import plain
from streamapp.core.reasons import Reason
from streamapp.core.status.events import reasons_of_event

Json = dict[str, Any]


class HistorySource(Enum):
    """Where the entries come from; the value is the key in JSON."""

    RECORD = "record"
    """The operator's flight record."""
    EVENTS = "events"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One thing that happened."""

    at: datetime
    what: str
    """One word: the reason of an Event, `Step`, `HoldBegan`, `Replicas`."""
    message: str
    by: str
    until: datetime | None = None
    """The end, if it lasted."""
    is_warning: bool = False
    is_detail: bool = False
    """Part of another entry, or internal to the operator: shown with `--all`."""

    @property
    def document(self) -> Json:
        """The entry for programs."""
        return {
            "at": self.at.isoformat(),
            "what": self.what,
            "message": self.message,
            "by": self.by,
            "warning": self.is_warning,
            "folded": self.is_folded,
        }

    @property
    def is_folded(self) -> bool:
        """Whether a person sees the entry only with `--all`; warnings always show."""
        return self.is_detail and not self.is_warning


def is_notable(name: str) -> bool:
    """Whether a reason is about the course of a scale-down or a refusal, rather than an internal state."""
    return name not in Reason.__members__ or Reason[name].row.is_milestone


def in_order(entries: Iterable[HistoryEntry], since: datetime | None) -> tuple[HistoryEntry, ...]:
    """The entries by time, the newest last, without those that ended before `since`."""
    kept = [entry for entry in entries if since is None or (entry.until or entry.at) >= since]
    return tuple(sorted(kept, key=lambda entry: entry.at))


def entries_of_events(events: Iterable[Mapping[str, Any]], view: AppView) -> Iterator[HistoryEntry]:
    """The Events (`events.k8s.io/v1`) about this StreamApp, without those of an earlier one of this name."""
    for event in events:
        about = event.get("regarding") or {}
        group = str(about.get("apiVersion", "")).partition("/")[0]
        is_own = about.get("uid") in {None, "", view.streamapp.metadata.uid}
        at = _time_of(event)
        if (group, about.get("kind"), about.get("name")) != (GROUP, KIND, view.streamapp.metadata.name):
            continue
        if is_own and at is not None:
            by, what = _reporter(event), plain(str(event.get("reason", "")))
            yield HistoryEntry(
                at=at,
                what=what,
                message=f"{plain(str(event.get('note', '')))}{_times(event)}",
                by=by,
                is_warning=event.get("type") == "Warning",
                is_detail=by == "operator" and not any(map(is_notable, _reasons(what))),
            )


def _reasons(event: str) -> list[str]:
    """The names of the reasons that an Event of the operator stands for."""
    return sorted(reason.name for reason in reasons_of_event(event)) or [event]


def _reporter(event: Mapping[str, Any]) -> str:
    controller = plain(str(event.get("reportingController") or ""))
    return "operator" if controller == f"{GROUP}/operator" else controller


def _times(event: Mapping[str, Any]) -> str:
    series = event.get("series") or {}
    count = series.get("count") or event.get("deprecatedCount") or 1
    return f" ({count} times)" if isinstance(count, int) and count > 1 else ""


def _time_of(event: Mapping[str, Any]) -> datetime | None:
    """The time of an Event, or of its last repetition."""
    series, metadata = event.get("series") or {}, event.get("metadata") or {}
    for text in (
        series.get("lastObservedTime"),
        event.get("eventTime"),
        event.get("deprecatedLastTimestamp"),
        metadata.get("creationTimestamp"),
    ):
        if isinstance(text, str):
            try:
                time = datetime.fromisoformat(text)
            except ValueError:
                continue
            return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return None
