"""What happened with a StreamApp, in the order of time: `entries_of_status` and `entries_of_events`. Pure.

Each source gives entries of its own, and `in_order` puts them together; `recorded` has one more, and takes out what two
sources tell. Nothing is made up: what a source does not say is left out.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from streamapp.api.managed_fields import Author, authors_of
from streamapp.api.names import GROUP, HOLD, KIND, OVERRIDE
from streamapp.api.v1alpha1.status import LastStep
from streamapp.cli.model.app_view import View
from streamapp.cli.model.phrases import gap_text
from streamapp.cli.text import durations
from streamapp.cli.text.sanitize import plain
from streamapp.core.reasons import Reason
from streamapp.core.status.events import reasons_of_event

Json = dict[str, Any]


class Source(Enum):
    """Who tells it; the value is the word for it."""

    STATUS = "status"
    EVENT = "event"
    WRITER = "writer"
    """The API server's book of who wrote which field."""
    RECORD = "record"
    """The operator's flight record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing that happened."""

    at: datetime
    source: Source
    what: str
    """In one word: the reason of an Event, `Step`, `HoldBegan`, `Wish`."""
    told: str
    """A sentence."""
    by: str
    until: datetime | None = None
    """The end of what lasted."""
    is_warning: bool = False
    is_detail: bool = False
    """Part of what another entry tells as a whole, or of the operator's inner life: told where all is asked for."""
    known_as: tuple[tuple[object, datetime], ...] = ()
    """What it is about, and when that was, for another source that tells the same."""

    @property
    def document(self) -> Json:
        """The same for programs."""
        return {
            "at": self.at.isoformat(),
            "source": self.source.value,
            "what": self.what,
            "message": self.told,
            "by": self.by,
            "warning": self.is_warning,
            "folded": self.is_folded,
        }

    @property
    def is_folded(self) -> bool:
        """Whether a person sees it only where all is asked for; what went wrong is seen always."""
        return self.is_detail and not self.is_warning


def reason(name: str) -> object:
    """The key of what happened for a reason."""
    return "reason", name


def hold(hold_id: str) -> object:
    """The key of a hold's beginning."""
    return "hold", hold_id


def granted(from_replicas: int | None, to_replicas: int | None) -> object:
    """The key of a step that was granted."""
    return "granted", from_replicas, to_replicas


def is_notable(name: str) -> bool:
    """Tell whether a reason of the operator's is about the course of a scale-down, or a refusal, and no inner state."""
    return name not in Reason.__members__ or Reason[name].row.is_milestone


def _reasons(event: str) -> list[str]:
    """Return the names of the reasons that an Event of the operator stands for."""
    return sorted(one.name for one in reasons_of_event(event)) or [event]


def in_order(entries: Iterable[Entry], since: datetime | None) -> tuple[Entry, ...]:
    """The newest last; those that were over before `since` are left out."""
    kept = [one for one in entries if since is None or (one.until or one.at) >= since]
    return tuple(sorted(kept, key=lambda one: one.at))


def entries_of_status(view: View) -> Iterator[Entry]:
    """The finished steps, the scale-down that goes on, and when it was made."""
    made = view.found.metadata.creation_timestamp
    yield Entry(at=made, source=Source.STATUS, what="Created", told="The StreamApp was made.", by="")
    for step in view.status.last_steps:
        forced = step.forced is not None
        yield Entry(
            at=step.at,
            source=Source.STATUS,
            what="Step",
            told=_of_step(step),
            by="operator",
            is_warning=forced,
            known_as=((granted(step.from_, step.to), step.at),),
        )
    going = view.status.scale_down
    if going is not None and going.since is not None:
        course = (
            f"to {going.target}"
            if view.status.stateful_set_replicas is None
            else f"{view.status.stateful_set_replicas} to {going.target}"
        )
        named = "" if going.hold_id is None else f" as hold {going.hold_id}"
        told = f"The scale-down {course} that goes on began{named}."
        known = () if going.hold_id is None else ((hold(going.hold_id), going.since),)
        yield Entry(at=going.since, source=Source.STATUS, what="HoldBegan", told=told, by="operator", known_as=known)


def _of_step(step: LastStep) -> str:
    held = (
        "not known for how long held"
        if step.held_duration is None
        else f"held for {durations.fine(step.held_duration)}"
    )
    gap = "worst gap not seen" if step.downtime_max is None else f"worst gap {gap_text(step)}"
    forced = "" if step.forced is None else f"; overridden by {step.forced.by.value}: {step.forced.reason}"
    return f"{step.from_} to {step.to}: {held}, took {durations.fine(step.duration)}, {gap}{forced}"


def entries_of_writers(resource: Mapping[str, Any], view: View) -> Iterator[Entry]:
    """Who wrote the wish, a hold, a release or the pause last; of each writer only the last time is on record."""
    annotations = ("metadata", "annotations")
    for author in authors_of(resource, "spec", "replicas"):
        yield from _written(author, "Wish", "wrote the wish; as it stands it is {}", str(view.found.replicas))
    for author in authors_of(resource, *annotations, HOLD)[:1]:
        yield from _written(author, "Held", "held every scale-down: {}", view.user_hold or "")
    for author in authors_of(resource, *annotations, OVERRIDE)[:1]:
        yield from _written(author, "Released", "released hold {}", view.user_release or "")
    for author in authors_of(resource, "spec", "paused")[:1]:
        paused = (resource.get("spec") or {}).get("paused") is True
        if paused:
            yield from _written(author, "Paused", "paused it{}", "")


def _written(author: Author, what: str, sentence: str, value: str) -> Iterator[Entry]:
    if author.at is None:
        return
    through = f" through {author.subresource}" if author.subresource else ""
    manager = plain(author.manager)
    told = f"Somebody {sentence.format(value)}."
    known = ((("wish", manager, int(value)), author.at),) if what == "Wish" else ()
    by = f"{manager}{through}"
    yield Entry(at=author.at, source=Source.WRITER, what=what, told=told, by=by, known_as=known)


def entries_of_events(events: Iterable[Mapping[str, Any]], view: View) -> Iterator[Entry]:
    """The Events (`events.k8s.io/v1`) about this StreamApp, and not about one of its name that there was before."""
    for event in events:
        about = event.get("regarding") or {}
        group = str(about.get("apiVersion", "")).partition("/")[0]
        is_own = about.get("uid") in {None, "", view.found.metadata.uid}
        at = _time_of(event)
        if (group, about.get("kind"), about.get("name")) != (GROUP, KIND, view.found.metadata.name):
            continue
        if is_own and at is not None:
            by, what = _teller(event), plain(str(event.get("reason", "")))
            yield Entry(
                at=at,
                source=Source.EVENT,
                what=what,
                told=f"{plain(str(event.get('note', '')))}{_times(event)}",
                by=by,
                known_as=tuple((reason(name), at) for name in _reasons(what)) if by == "operator" else (),
                is_warning=event.get("type") == "Warning",
                is_detail=by == "operator" and not any(map(is_notable, _reasons(what))),
            )


def _teller(event: Mapping[str, Any]) -> str:
    controller = plain(str(event.get("reportingController") or ""))
    return "operator" if controller == f"{GROUP}/operator" else controller


def _times(event: Mapping[str, Any]) -> str:
    series = event.get("series") or {}
    count = series.get("count") or event.get("deprecatedCount") or 1
    return f" ({count} times)" if isinstance(count, int) and count > 1 else ""


def _time_of(event: Mapping[str, Any]) -> datetime | None:
    """When it happened, the last time if it did more than once."""
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
