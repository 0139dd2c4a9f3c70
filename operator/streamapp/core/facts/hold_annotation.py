"""The hold record as text: one JSON object in the annotation, readable with kubectl, written and read by us alone.

Pure both ways. Reading is strict: a record that is not exactly what this version writes is unreadable, since half of it
understood would be worse than none. So what a later version adds to a hold stands beside the record, in an annotation
that earlier versions do not know: their next write of the record removes it.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from streamapp.core.facts.containers import MemberKey, ObservedMembers
from streamapp.core.facts.hold_record import (
    Epoch,
    Forced,
    ForcedBy,
    Hold,
    HoldRecord,
    OpenStep,
    Progress,
    RaisedStandbys,
    RaiseState,
    RecordUnreadable,
)
from streamapp.core.facts.ids import Ordinal
from streamapp.core.reasons import Reason

VERSION = 1

MOST_DIGITS = 19
"""Of a number: as many as 64 bits can have."""

LIMIT_BYTES = 64 * 1024
"""All annotations of an object together may have 256 KiB; a quarter of it is ours."""

Json = dict[str, Any]


def encode(record: HoldRecord) -> str:
    """The annotation's text: compact, with sorted keys, equal for equal records."""
    body: Json = {"version": VERSION, "epoch": [record.epoch.lease, record.epoch.counter]}
    if record.hold is not None:
        body["hold"] = _hold_to_json(record.hold)
    if record.step is not None:
        body["step"] = _step_to_json(record.step)
    if record.standbys is not None:
        body["standbys"] = _standbys_to_json(record.standbys)
    return json.dumps(body, separators=(",", ":"), sort_keys=True)


def fits(record: HoldRecord) -> bool:
    """Tell whether the text stays within our share of the annotations."""
    return len(encode(record).encode()) <= LIMIT_BYTES


@lru_cache(maxsize=64)  # each pass reads the record of the pass before
def decode(text: str) -> HoldRecord | RecordUnreadable:
    """Read the annotation's text; whatever `encode` could not have written is unreadable."""
    try:
        record = _record_from_json(json.loads(text, parse_int=_int))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        return RecordUnreadable(f"{type(error).__name__}: {error}")
    if encode(record) != text:
        return RecordUnreadable("it says more, or other, than this version writes")
    return record


def encode_generation(record: HoldRecord) -> str | None:
    """The text beside the record: the hold's ID, and the generation of the StreamApp; None if there is none."""
    hold = record.hold
    return None if hold is None or hold.generation is None else f"{hold.id} {hold.generation}"


def with_generation(record: HoldRecord | RecordUnreadable, text: str | None) -> HoldRecord | RecordUnreadable:
    """Give the record with the generation that stands beside it; without one if that is of another hold, or no text."""
    if not isinstance(record, HoldRecord) or record.hold is None or text is None:
        return record
    hold_id, _, number = text.rpartition(" ")
    if hold_id != record.hold.id or not number.isdecimal() or len(number) > MOST_DIGITS:
        return record
    return replace(record, hold=replace(record.hold, generation=int(number)))


def _record_from_json(body: Json) -> HoldRecord:
    if body["version"] != VERSION:
        raise ValueError(f"version {body['version']!r}, known is {VERSION}")
    lease, counter = body["epoch"]
    return HoldRecord(
        epoch=Epoch(lease=int(lease), counter=int(counter)),
        hold=_hold_from_json(body["hold"]) if "hold" in body else None,
        step=_step_from_json(body["step"]) if "step" in body else None,
        standbys=_standbys_from_json(body["standbys"]) if "standbys" in body else None,
    )


def _standbys_to_json(raised: RaisedStandbys) -> Json:
    body: Json = {
        "before": raised.before,
        "insteadOf": raised.instead_of,
        "isSecond": raised.is_second,
        "to": raised.to,
        "at": raised.at.isoformat(),
        "state": raised.state.value,
    }
    of_version = {"lease": raised.lease, "cluster": raised.cluster}  # earlier versions wrote neither
    return body | {name: value for name, value in of_version.items() if value is not None}


def _standbys_from_json(body: Json) -> RaisedStandbys:
    return RaisedStandbys(
        before=None if body["before"] is None else int(body["before"]),
        instead_of=int(body["insteadOf"]),
        is_second=body["isSecond"] is True,
        to=int(body["to"]),
        at=_time(body["at"]),
        state=RaiseState(body["state"]),
        lease=int(body["lease"]) if "lease" in body else None,
        cluster=str(body["cluster"]) if "cluster" in body else None,
    )


def _hold_to_json(hold: Hold) -> Json:
    return {
        "id": hold.id,
        "from": hold.from_replicas,
        "target": hold.target,
        "granted": hold.granted,
        "since": hold.since.isoformat(),
        "reason": hold.reason.name,
        "progress": _progress_to_json(hold.progress),
        **_forced_to_json(hold.forced),
        **({"fellFar": True} if hold.dropped_by_half else {}),
        **({} if hold.gave_up_at is None else {"gaveUpAt": hold.gave_up_at}),
    }


def _hold_from_json(body: Json) -> Hold:
    return Hold(
        id=str(body["id"]),
        from_replicas=int(body["from"]),
        target=int(body["target"]),
        granted=int(body["granted"]),
        since=_time(body["since"]),
        reason=Reason[body["reason"]],
        progress=_progress_from_json(body["progress"]),
        forced=_forced_from_json(body),
        dropped_by_half=body.get("fellFar", False) is True,
        gave_up_at=int(body["gaveUpAt"]) if "gaveUpAt" in body else None,
    )


def _progress_to_json(progress: Progress) -> Json:
    body: Json = {"lastProgress": progress.improved_at.isoformat(), "waited": progress.waited.total_seconds()}
    if progress.best is not None:
        body["best"] = progress.best
    if progress.counted_at is not None:
        body["countedAt"] = progress.counted_at.isoformat()
    return body


def _progress_from_json(body: Json) -> Progress:
    return Progress(
        best=int(body["best"]) if "best" in body else None,
        improved_at=_time(body["lastProgress"]),
        waited=timedelta(seconds=float(body["waited"])),
        counted_at=_time(body["countedAt"]) if "countedAt" in body else None,
    )


def _step_to_json(step: OpenStep) -> Json:
    return {
        "holdId": step.hold_id,
        "from": step.from_replicas,
        "to": step.to_replicas,
        "grantedAt": step.granted_at.isoformat(),
        "reason": step.reason.name,
        "captures": [_capture_to_json(capture) for capture in step.observed],
        **_forced_to_json(step.forced),
    }


def _step_from_json(body: Json) -> OpenStep:
    return OpenStep(
        hold_id=str(body["holdId"]),
        from_replicas=int(body["from"]),
        to_replicas=int(body["to"]),
        granted_at=_time(body["grantedAt"]),
        reason=Reason[body["reason"]],
        observed=tuple(_capture_from_json(capture) for capture in body["captures"]),
        forced=_forced_from_json(body),
    )


def _capture_to_json(capture: ObservedMembers) -> Json:
    return {
        "ordinal": capture.ordinal,
        "pod": capture.pod_uid,
        "container": capture.container_id,
        "seenAt": capture.seen_at.isoformat(),
        "members": [[key.id] if key.instance_id is None else [key.id, key.instance_id] for key in capture.members],
    }


def _capture_from_json(body: Json) -> ObservedMembers:
    return ObservedMembers(
        ordinal=Ordinal(int(body["ordinal"])),
        pod_uid=str(body["pod"]),
        container_id=str(body["container"]),
        seen_at=_time(body["seenAt"]),
        members=tuple(MemberKey(*(str(part) for part in parts)) for parts in body["members"]),
    )


def _forced_to_json(forced: Forced | None) -> Json:
    return {} if forced is None else {"forced": {"by": forced.by.value, "why": forced.why}}


def _forced_from_json(body: Mapping[str, Any]) -> Forced | None:
    forced = body.get("forced")
    return None if forced is None else Forced(ForcedBy(forced["by"]), str(forced["why"]))


def _int(text: str) -> int:
    """Numbers are counted on from here: one that is nearly too long to be read would be too long to be written."""
    if len(text) > MOST_DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(f"{text} has no zone")
    return time
