"""The entries of the operator's flight record: `entries_of_record`. Pure.

A hold and a step are one entry each, and the decisions within a hold are details of the hold's entry.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import zip_longest

from streamapp.api.http.messages import Recorded
from streamapp.api.status.conditions import said
from streamapp.cli.model.history.entries import HistoryEntry, is_notable
from streamapp.cli.model.history.of_forecasts import forecast_entries
from streamapp.cli.text import durations
from streamapp.cli.text.sanitize import plain
from streamapp.core.reasons import Reason

MOST_REASONS = 3
"""Reasons that the entry of a hold names, the longest first."""
SAME = timedelta(seconds=10)
"""The most between the grant of a step and the time of its grant in the line about the closed step."""
_STALLED = "Stalled"
_FAILED = "FAILED"
_OVERRIDDEN = "OverriddenBy"
_SHOWN_STEPS = frozenset(
    {"CreateStatefulSet", "GrantReplicas", "RestartPod", "WriteTemplate", "TriggerRebalance", "SetStandbys", "Evict"}
)
"""Steps that change the application; the others are the operator's bookkeeping, shown only if they fail."""
_DETAIL_STEPS = frozenset({"TriggerRebalance"})
"""Steps that only serve a change with an entry of its own."""


def entries_of_record(lines: Iterable[Recorded], uid: str, now: datetime) -> Iterator[HistoryEntry]:
    """The entries of the StreamApp with this UID, without those of an earlier one of its name."""
    own = sorted((line for line in lines if line.uid == uid), key=lambda line: (line.ts, line.seq))
    decisions = [line for line in own if line.kind == "decision"]
    closed = [line for line in own if line.kind == "stepClosed"]
    yield from _replicas([line for line in own if line.kind == "scale"])
    yield from _leaders(own)
    yield from map(_hold_entry, _holds(decisions, now))
    yield from _decisions(decisions)
    yield from (_closed(line, decisions) for line in closed)
    yield from forecast_entries(own)
    for line in own:
        is_shown = line.step in _SHOWN_STEPS and not any(_is_grant_of(line, step) for step in closed)
        if line.kind == "step" and (is_shown or line.outcome == _FAILED):
            yield _step(line)


def _replicas(lines: Sequence[Recorded]) -> Iterator[HistoryEntry]:
    """Each change of the desired replicas once; every start of the operator records the present number again."""
    before: int | None = None
    for line in lines:
        if line.new_replicas is None or line.new_replicas == before:
            continue
        old = before if line.old_replicas is None else line.old_replicas
        first = f"Desired replicas are {line.new_replicas} when the record begins."
        message = first if old is None else f"Desired replicas changed from {old} to {line.new_replicas}."
        before = line.new_replicas
        manager = plain(line.manager)
        by = f"{manager} ({line.actor})" if line.actor in {"HPA", "KEDA"} else manager
        yield HistoryEntry(at=line.ts, what="Replicas", message=message, by=by)


def _leaders(lines: Sequence[Recorded]) -> Iterator[HistoryEntry]:
    """Each process of the operator that continued the record of another one."""
    known: set[str] = set()
    for line in lines:
        if line.recorder and line.recorder not in known:
            if known:
                message = plain(f"The operator's pod {line.recorder.partition('_')[0]} became leader.")
                yield HistoryEntry(at=line.ts, what="Leader", message=message, by="operator")
            known.add(line.recorder)


@dataclass(slots=True)
class RecordedHold:
    """One hold from its beginning to its end."""

    hold_id: str
    at: datetime
    """The beginning."""
    course: str
    """`3 to 2`; empty if the record does not say."""
    spent: dict[str, timedelta] = field(default_factory=lambda: defaultdict(timedelta))
    """The time for each reason, as far as it is on record."""
    ended: datetime | None = None
    """None while the hold lasts."""
    until: datetime | None = None
    """The last time at which the hold is known."""

    @property
    def sentence(self) -> str:
        """The message of the entry."""
        length = durations.fine(max((self.ended or self.until or self.at) - self.at, timedelta(0)))
        what = "held" if not self.course else f"{self.course}: held"
        so_far = "" if self.ended is not None else " so far"
        return f"{what} for {length}{so_far}, hold {self.hold_id}{self._reasons()}"

    def _reasons(self) -> str:
        order = sorted(self.spent.items(), key=lambda item: (-item[1], item[0]))
        named = [f"{name} {durations.fine(spent)}" for name, spent in order[:MOST_REASONS] if spent > timedelta(0)]
        named = named or [name for name, _ in order[:1]]
        more = len(order) - max(len(named), 1)
        return f": {', '.join(named)}{f' and {more} more' if more > 0 and named else ''}" if named else ""


def _holds(decisions: Sequence[Recorded], now: datetime) -> Iterator[RecordedHold]:
    """Each hold, from decisions in the order of time; a decision lasts until the next one, of any process."""
    holds: dict[str, RecordedHold] = {}
    following = (line.ts for line in decisions[1:])
    for line, next_at in zip_longest(decisions, following):
        for other in holds.values():
            if other.ended is None and other.hold_id != line.hold_id:
                other.ended = line.ts
        if not line.hold_id:
            continue
        hold = holds.get(line.hold_id)
        if hold is None:
            course = "" if line.target is None or line.granted is None else f"{line.granted} to {line.target}"
            hold = holds[line.hold_id] = RecordedHold(line.hold_id, line.hold_since or line.ts, course)
        until = max(next_at or now, line.ts)
        hold.ended, hold.until = None, until
        hold.spent[line.reason] += until - line.ts
    yield from holds.values()


def _hold_entry(hold: RecordedHold) -> HistoryEntry:
    return HistoryEntry(at=hold.at, until=hold.until, what="Hold", message=plain(hold.sentence), by="operator")


def _decisions(lines: Sequence[Recorded]) -> Iterator[HistoryEntry]:
    """Each decision that differs from the one before, and the beginning of each hold."""
    before: object = None
    holds = set[str]()
    for line in lines:
        if line.hold_id and line.hold_id not in holds:
            holds.add(line.hold_id)
            yield _hold_began(line)
        decided = (line.verdict, line.reason, line.desired, line.target, line.hold_id)
        if decided != before:
            yield _decision(line)
        before = decided


def _hold_began(line: Recorded) -> HistoryEntry:
    at = line.hold_since or line.ts
    course = "" if line.target is None else f" {line.granted} to {line.target}"
    message = plain(f"The scale-down{course} began, hold {line.hold_id}.")
    return HistoryEntry(at=at, what="HoldBegan", message=message, by="operator", is_detail=True)


def _decision(line: Recorded) -> HistoryEntry:
    is_warning = line.verdict == _STALLED
    numbers = f"Desired {line.desired}, current {line.granted} ({line.actual} running, {line.ready} ready)."
    return HistoryEntry(
        at=line.ts,
        what=plain(line.reason),
        message=f"{_why(line.reason, line.detail, with_next_step=is_warning)} {numbers}".strip(),
        by="operator",
        is_warning=is_warning,
        is_detail=not is_notable(line.reason) or bool(line.hold_id),
    )


def _why(name: str, detail: str, *, with_next_step: bool = False) -> str:
    """The sentence of a reason; the detail alone if this version does not know the reason."""
    if name not in Reason.__members__:
        return plain(detail if not detail or detail.endswith(".") else f"{detail}.")
    return plain(said(Reason[name], detail, with_next_step=with_next_step))


def _step(line: Recorded) -> HistoryEntry:
    failed = line.outcome == _FAILED
    about = ""
    if line.to_replicas is not None:
        about = f"{line.to_replicas} replicas" if line.from_replicas is None else _course(line)
    elif line.ordinal is not None:
        about = f"pod {line.ordinal}"
    why = _why(line.reason, "")
    parts = [part for part in (about, "failed, the operator tries again" if failed else "", why) if part]
    return HistoryEntry(
        at=line.ts,
        what=plain(line.step),
        message=": ".join(parts),
        by="operator",
        is_warning=failed,
        is_detail=line.step in _DETAIL_STEPS,
    )


def _closed(line: Recorded, decisions: Sequence[Recorded]) -> HistoryEntry:
    held = _span(line.held_seconds)
    parts = [
        f"held for {held or 'an unknown time'}",
        f"took {_span(line.took_seconds) or 'an unknown time'}",
        f"downtime {_downtime(line)}",
        *([f"hold {line.hold_id}"] if line.hold_id else []),
        *([f"overridden by {line.forced_by}{_override_reason(line, decisions)}"] if line.forced_by else []),
    ]
    return HistoryEntry(
        at=line.granted_at or line.ts,
        what="Step",
        message=plain(f"{_course(line)}: {', '.join(parts)}"),
        by="operator",
        is_warning=bool(line.forced_by),
    )


def _override_reason(step: Recorded, decisions: Sequence[Recorded]) -> str:
    """The detail of the last decision to override before the step closed."""
    for line in reversed(decisions):
        if line.ts <= step.ts and line.reason.startswith(_OVERRIDDEN) and line.detail:
            return f": {line.detail}"
    return ""


def _is_grant_of(line: Recorded, closed: Recorded) -> bool:
    """Whether a line is the grant of a closed step, which has an entry of its own."""
    at = closed.granted_at or closed.ts
    return line.to_replicas is not None and _course(line) == _course(closed) and abs(line.ts - at) <= SAME


def _course(line: Recorded) -> str:
    return f"{line.from_replicas} to {line.to_replicas}"


def _downtime(line: Recorded) -> str:
    """As `phrases.downtime_text`."""
    if line.worst_gap_seconds is None:
        return "unknown"
    worst, error = line.worst_gap_seconds, line.gap_error_seconds
    return f"{_span(worst - error)} to {_span(worst)}" if error else f"{_span(worst)}"


def _span(seconds: float | None) -> str | None:
    return None if seconds is None else durations.fine(timedelta(seconds=max(0.0, seconds)))
