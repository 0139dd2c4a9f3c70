"""What the operator's flight record adds to a history: `entries_of_record`, and `without_doubles`. Pure.

The record tells more than the status and Events do, and each step and change for itself: where two tell the same, its
word is taken.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from streamapp.api.http.messages import Recorded
from streamapp.api.status.conditions import said
from streamapp.cli.model.held import Held, holds_of
from streamapp.cli.model.history import Entry, Source, granted, hold, is_notable, reason
from streamapp.cli.text import durations
from streamapp.cli.text.sanitize import plain
from streamapp.core.reasons import Reason

SAME = timedelta(seconds=10)
"""So far apart may be what two sources say of one thing: one truncates its times, another saw it a moment later."""
_STALLED = "Stalled"
_FAILED = "FAILED"
_TOLD = frozenset({"CreateStatefulSet", "GrantReplicas", "RestartPod", "WriteTemplate", "TriggerRebalance", "Evict"})
"""Steps that change something for an application; others are the operator's bookkeeping, told where they fail."""


_INNER = frozenset({"TriggerRebalance"})
"""Of these what only serves a change that is told anyway."""


def entries_of_record(lines: Iterable[Recorded], uid: str, now: datetime) -> Iterator[Entry]:
    """Give what the record tells of the StreamApp with this UID, and not of one of its name that there was before."""
    own = sorted((line for line in lines if line.uid == uid), key=lambda line: (line.ts, line.seq))
    yield from _wishes([line for line in own if line.kind == "scale"])
    yield from _leaders(own)
    yield from map(_held, holds_of([line for line in own if line.kind == "decision"], now))
    yield from _decisions([line for line in own if line.kind == "decision"])
    closed = [line for line in own if line.kind == "stepClosed"]
    yield from map(_closed, closed)
    for line in own:
        is_told = line.step in _TOLD and not any(_granted(line, one) for one in closed)
        if line.kind == "step" and (is_told or line.outcome == _FAILED):
            yield _step(line)


def without_doubles(recorded: Sequence[Entry], others: Iterable[Entry]) -> Iterator[Entry]:
    """Give all of them, but what both tell only once: as the record has it, unless only the other one says why."""
    chosen, told_better = list(recorded), list[Entry]()
    for other in others:
        place = next((place for place, one in enumerate(chosen) if _is_same(one, other)), None)
        if place is None:
            told_better.append(other)
        elif other.is_warning:
            # Of an override the status has the reason, of a warning the Event may have the next step.
            is_status = other.source is Source.STATUS
            longer = max(chosen[place].told, other.told, key=len)
            chosen[place] = other if is_status else replace(chosen[place], is_warning=True, told=longer)
    yield from chosen
    yield from told_better


def _is_same(one: Entry, other: Entry) -> bool:
    return any(about == also and abs(at - then) <= SAME for about, at in one.known_as for also, then in other.known_as)


def _granted(line: Recorded, closed: Recorded) -> bool:
    """Tell whether this is the grant of a step that is told as a whole."""
    at = closed.granted_at or closed.ts
    return line.to_replicas is not None and _course(line) == _course(closed) and abs(line.ts - at) <= SAME


def _wishes(lines: Sequence[Recorded]) -> Iterator[Entry]:
    """Each change once; every start of the operator tells again what it finds."""
    before: int | None = None
    for line in lines:
        if line.new_replicas is None or line.new_replicas == before:
            continue
        old = before if line.old_replicas is None else line.old_replicas
        first = f"The operator found that {line.new_replicas} replicas are wished for."
        told = first if old is None else f"The wish went from {old} to {line.new_replicas}."
        before = line.new_replicas
        manager = plain(line.manager)
        by = f"{manager} ({line.actor})" if line.actor in {"HPA", "KEDA"} else manager
        known = ((("wish", manager, line.new_replicas), line.ts),)
        yield Entry(at=line.ts, source=Source.RECORD, what="Wish", told=told, by=by, known_as=known)


def _decisions(lines: Sequence[Recorded]) -> Iterator[Entry]:
    """Each time that it was another, and the beginning of each hold; pods that come and go make no entry."""
    before: object = None
    holds = set[str]()
    for line in lines:
        if line.hold_id and line.hold_id not in holds:
            holds.add(line.hold_id)
            yield _hold(line)
        decided = (line.verdict, line.reason, line.desired, line.target, line.hold_id)
        if decided != before:
            yield _decision(line)
        before = decided


def _hold(line: Recorded) -> Entry:
    at = line.hold_since or line.ts
    target = "" if line.target is None else f" {line.granted} to {line.target}"
    told = plain(f"The scale-down{target} began as hold {line.hold_id}.")
    return Entry(at=at, source=Source.RECORD, what="HoldBegan", told=told, by="operator", is_detail=True)


def _held(one: Held) -> Entry:
    """A hold as a whole."""
    known = ((hold(one.hold_id), one.at), (reason("HoldBegan"), one.at))
    told = plain(one.told)
    return Entry(
        at=one.at,
        until=one.until,
        source=Source.RECORD,
        what="Hold",
        told=told,
        by="operator",
        known_as=known,
    )


def _leaders(lines: Sequence[Recorded]) -> Iterator[Entry]:
    """Each process of the operator that went on with the record of another one."""
    known: set[str] = set()
    for line in lines:
        if line.recorder and line.recorder not in known:
            if known:
                told = plain(f"The operator's pod {line.recorder.partition('_')[0]} leads from here on.")
                yield Entry(at=line.ts, source=Source.RECORD, what="Leader", told=told, by="operator")
            known.add(line.recorder)


def _decision(line: Recorded) -> Entry:
    is_warning = line.verdict == _STALLED
    numbers = f"Wished for {line.desired}, granted {line.granted}, {line.ready} of {line.actual} pods ready."
    return Entry(
        at=line.ts,
        source=Source.RECORD,
        what=plain(line.reason),
        told=f"{_why(line.reason, line.detail, with_next_step=is_warning)} {numbers}".strip(),
        by="operator",
        is_warning=is_warning,
        is_detail=not is_notable(line.reason) or bool(line.hold_id),
        known_as=((reason(line.reason), line.ts),),
    )


def _why(name: str, detail: str, *, with_next_step: bool = False) -> str:
    """The sentence of a reason; of one that this version does not know, the particulars alone."""
    if name not in Reason.__members__:
        return plain(detail if not detail or detail.endswith(".") else f"{detail}.")
    return plain(said(Reason[name], detail, with_next_step=with_next_step))


def _step(line: Recorded) -> Entry:
    failed = line.outcome == _FAILED
    about = ""
    if line.to_replicas is not None:
        about = f"{line.to_replicas} replicas" if line.from_replicas is None else _course(line)
    elif line.ordinal is not None:
        about = f"pod {line.ordinal}"
    why = _why(line.reason, "")
    parts = [part for part in (about, "failed, and is tried again" if failed else "", why) if part]
    return Entry(
        at=line.ts,
        source=Source.RECORD,
        what=plain(line.step),
        told=": ".join(parts),
        by="operator",
        is_warning=failed,
        is_detail=line.step in _INNER,
        known_as=((reason(line.reason), line.ts),),
    )


def _closed(line: Recorded) -> Entry:
    at = line.granted_at or line.ts
    held = _span(line.held_seconds)
    parts = [
        "not known for how long held" if held is None else f"held for {held}",
        f"took {_span(line.took_seconds) or 'not known how long'}",
        f"worst gap {_gap(line)}",
        *([f"hold {line.hold_id}"] if line.hold_id else []),
        *([f"overridden by {line.forced_by}"] if line.forced_by else []),
    ]
    return Entry(
        at=at,
        source=Source.RECORD,
        what="Step",
        told=plain(f"{_course(line)}: {', '.join(parts)}"),
        by="operator",
        is_warning=bool(line.forced_by),
        known_as=((granted(line.from_replicas, line.to_replicas), at), (reason("StepClosed"), line.ts)),
    )


def _course(line: Recorded) -> str:
    return f"{line.from_replicas} to {line.to_replicas}"


def _gap(line: Recorded) -> str:
    """As `scale_down_screen.gap_text` has it."""
    if line.worst_gap_seconds is None:
        return "not seen"
    worst, error = line.worst_gap_seconds, line.gap_error_seconds
    return f"{_span(worst - error)} to {_span(worst)}" if error else f"{_span(worst)}"


def _span(seconds: float | None) -> str | None:
    return None if seconds is None else durations.fine(timedelta(seconds=max(0.0, seconds)))
