"""What stands on the StreamApp while it migrates: the stage, and everything that leads back. Pure.

The annotation is written with the first step and changed with each further one, in the same request. So whoever runs
the command again reads how far it is, and what was before.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Any

from streamapp.api.names import MIGRATION

Json = dict[str, Any]
VERSION = 1
MOST_BYTES = 100_000
"""An object's annotations have 256 KiB together."""


class Protocol(Enum):
    """The group protocols of Kafka Streams, as `group.protocol` names them."""

    CLASSIC = "classic"
    STREAMS = "streams"

    @property
    def other(self) -> "Protocol":
        """The one that it is not."""
        return Protocol.STREAMS if self is Protocol.CLASSIC else Protocol.CLASSIC


class Stage(Enum):
    """How far it is: what is being waited for."""

    STOP = "stop"
    """0 replicas are desired; the template is the former one."""
    SWITCH = "switch"
    """The template is written; no pod runs."""
    START = "start"
    """The former replicas are desired."""


@dataclass(frozen=True, slots=True)
class Parked:
    """An autoscaler whose scale-ups are off meanwhile."""

    name: str
    policy: str | None
    """`spec.behavior.scaleUp.selectPolicy` as it was; None if it was not set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The annotation."""

    to: Protocol
    """The protocol that the application will have."""
    stage: Stage
    replicas: int
    """The desired replicas as they were."""
    allow_zero: bool | None
    """`spec.scaleDown.allowZero` as it was; None if it was not set."""
    patch: Json
    """The merge patch of the template that is written when all pods have stopped."""
    undo: Json
    """The merge patch that takes `patch` back."""
    autoscalers: tuple[Parked, ...] = ()
    began_at: datetime
    stage_at: datetime
    """When the stage began."""
    stopped_at: datetime | None = None
    """When the pods were told to stop, by the operator: the users wait from then on."""
    template_hash: str = ""
    """Of the StatefulSet's template before the switch; empty if it was not read."""
    is_abort: bool = False

    @property
    def text(self) -> str:
        """The annotation's value."""
        document: Json = {
            "version": VERSION,
            "to": self.to.value,
            "stage": self.stage.value,
            "replicas": self.replicas,
            "allowZero": self.allow_zero,
            "patch": self.patch,
            "undo": self.undo,
            "autoscalers": [{"name": one.name, "selectPolicy": one.policy} for one in self.autoscalers],
            "beganAt": self.began_at.isoformat(),
            "stageAt": self.stage_at.isoformat(),
            "stoppedAt": None if self.stopped_at is None else self.stopped_at.isoformat(),
            "templateHash": self.template_hash,
            "abort": self.is_abort,
        }
        return json.dumps(document, separators=(",", ":"))

    def at(self, stage: Stage, now: datetime, **changes: Any) -> "Record":
        """The record of another stage."""
        return replace(self, stage=stage, stage_at=now, **changes)

    def turned(self, stage: Stage, now: datetime) -> "Record":
        """The record of the way back, from a stage on."""
        back: Json = {"to": self.to.other, "patch": self.undo, "undo": self.patch, "is_abort": True}
        return self.at(stage, now, **back)


@dataclass(frozen=True, slots=True)
class UnreadableRecord:
    """An annotation that another version, or another hand, wrote."""

    why: str


def record_on(resource: Mapping[str, Any]) -> Record | UnreadableRecord | None:
    """The record on a StreamApp; None if it does not migrate."""
    return read_record(resource["metadata"].get("annotations") or {})


def read_record(annotations: Mapping[str, str]) -> Record | UnreadableRecord | None:
    """The record among the annotations of a StreamApp; None if it does not migrate."""
    text = annotations.get(MIGRATION)
    if text is None:
        return None
    try:
        return _read(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return UnreadableRecord(f"{type(error).__name__}: {error}")


def _read(document: Json) -> Record:
    if document["version"] != VERSION:
        raise ValueError(f"it is of version {document['version']}, and this command writes version {VERSION}")
    stopped = document.get("stoppedAt")
    return Record(
        to=Protocol(document["to"]),
        stage=Stage(document["stage"]),
        replicas=int(document["replicas"]),
        allow_zero=document["allowZero"],
        patch=dict(document["patch"]),
        undo=dict(document["undo"]),
        autoscalers=tuple(Parked(one["name"], one["selectPolicy"]) for one in document["autoscalers"]),
        began_at=datetime.fromisoformat(document["beganAt"]),
        stage_at=datetime.fromisoformat(document["stageAt"]),
        stopped_at=None if stopped is None else datetime.fromisoformat(stopped),
        template_hash=str(document["templateHash"]),
        is_abort=bool(document["abort"]),
    )


def sentence_of(record: Record | UnreadableRecord, name: str) -> tuple[str, str]:
    """What a person sees of it: what is under way, and what they can do."""
    again = f"`kubectl streamapp migrate {name}`"
    if isinstance(record, UnreadableRecord):
        return f"A migration is on record that cannot be read ({record.why}).", f"Remove the annotation {MIGRATION}."
    word = "is being aborted, back" if record.is_abort else "is under way,"
    what = f"A migration {word} to the {record.to.value} protocol: stage {record.stage.value}."
    back = "" if record.is_abort else f"; or return to the former template: `kubectl streamapp migrate {name} --abort`"
    return what, f"Continue it, if no command does: {again}{back}"
