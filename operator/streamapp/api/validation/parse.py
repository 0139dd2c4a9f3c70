"""Reads a StreamApp as the API server gives it: into models, or into sentences about what is wrong with it.

Called by the controller's gatherer and the command line. It never raises for what a user wrote: an object may be older
than the schema, or the schema may be missing its rules.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from streamapp.api.v1alpha1.metadata import MOST_NAME, NAME_MESSAGE, NAME_PATTERN, Metadata
from streamapp.api.v1alpha1.spec import StreamAppSpec
from streamapp.api.v1alpha1.status import StreamAppStatus
from streamapp.api.validation.conflicts import conflicts
from streamapp.api.validation.faults import Fault, faults_of


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamApp:
    """A resource that says what it should."""

    metadata: Metadata
    spec: StreamAppSpec
    status: StreamAppStatus

    @property
    def replicas(self) -> int:
        """Return the desired replicas."""
        return self.spec.replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidStreamApp:
    """A resource whose spec cannot be followed; it is reported as Stalled and nothing is changed for it."""

    metadata: Metadata
    replicas: int
    """Desired replicas, or the last replicas of the StatefulSet if the spec cannot be read."""
    status: StreamAppStatus
    faults: tuple[Fault, ...]
    """At least one."""
    keeps_claims: tuple[str, ...] = ()
    """`whenScaled`, `whenDeleted`: where the spec says `Retain`, or nothing. No fault elsewhere must cost claims."""

    @property
    def sentence(self) -> str:
        """All of them, as one text."""
        return "; ".join(map(str, self.faults))


@dataclass(frozen=True, slots=True)
class Parsed:
    """A resource as the API server gave it, and as it was read."""

    resource: Mapping[str, Any]
    streamapp: StreamApp | InvalidStreamApp


def parse(resource: Mapping[str, Any], before: Parsed | None = None) -> StreamApp | InvalidStreamApp:
    """Read one object.

    Fields that are unknown are left out of account: the API server has pruned what its schema does not know, so they
    are those of a newer schema, which comes before a newer operator.

    Args:
        resource: The object.
        before: An earlier version of it; a spec or a status that is the same there is not read again.

    Raises:
        pydantic.ValidationError: There is no metadata as every API server gives it: this is no Kubernetes object.
    """
    metadata = Metadata.model_validate(resource.get("metadata"))
    is_same_status = before is not None and before.resource.get("status") == resource.get("status")
    status = before.streamapp.status if before is not None and is_same_status else _status(resource.get("status"))
    raw = resource.get("spec")
    if before is not None and isinstance(before.streamapp, StreamApp):
        known = before.streamapp
        # The version first: `1` and `true` are equal here, and in a pod template one of them is a mistake.
        if _version(known.metadata) == _version(metadata) and before.resource.get("spec") == raw:
            return StreamApp(metadata=metadata, spec=known.spec, status=status)
    try:
        spec = StreamAppSpec.model_validate(raw, extra="ignore")
    except ValidationError as error:
        faults, replicas = (*_name(metadata), *faults_of(error, "spec")), _replicas(raw, status)
    else:
        faults, replicas = (*_name(metadata), *conflicts(metadata.name, spec)), spec.replicas
        if not faults:
            return StreamApp(metadata=metadata, spec=spec, status=status)
    return InvalidStreamApp(
        metadata=metadata, replicas=replicas, status=status, faults=faults, keeps_claims=_keeps_claims(raw)
    )


def _version(metadata: Metadata) -> tuple[str, str, int]:
    """Which spec an object of the API server has: one that was made anew begins to count from 1."""
    return metadata.name, metadata.uid, metadata.generation


def _name(metadata: Metadata) -> tuple[Fault, ...]:
    if len(metadata.name) <= MOST_NAME and re.fullmatch(NAME_PATTERN, metadata.name, re.ASCII):
        return ()
    field, _, sentence = NAME_MESSAGE.partition(" ")
    return (Fault(field, sentence),)


def _replicas(spec: object, status: StreamAppStatus) -> int:
    replicas = spec.get("replicas") if isinstance(spec, Mapping) else None
    if isinstance(replicas, int) and not isinstance(replicas, bool) and replicas >= 0:
        return replicas
    return status.stateful_set_replicas or 0


def _keeps_claims(raw: object) -> tuple[str, ...]:
    """What of the retention policy keeps claims; nothing where no policy can be read, and in a dry run."""
    spec = raw if isinstance(raw, Mapping) else {}
    state = spec.get("state")
    retention = state.get("retention", {}) if isinstance(state, Mapping) and not spec.get("dryRun") else None
    if not isinstance(retention, Mapping):
        return ()
    return tuple(when for when in ("whenScaled", "whenDeleted") if retention.get(when, "Retain") == "Retain")


def _status(raw: object) -> StreamAppStatus:
    """Read what an operator of any version has written; what this one cannot read it writes anew."""
    fields = dict(raw) if isinstance(raw, Mapping) else {}
    try:
        return StreamAppStatus.model_validate(fields, extra="ignore")
    except ValidationError as error:
        for details in error.errors(include_url=False):
            fields.pop(str(details["loc"][0]), None)
        return StreamAppStatus.model_validate(fields, extra="ignore")
