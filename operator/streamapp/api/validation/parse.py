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

    @property
    def sentence(self) -> str:
        """All of them, as one text."""
        return "; ".join(map(str, self.faults))


def parse(resource: Mapping[str, Any]) -> StreamApp | InvalidStreamApp:
    """Read one object.

    Fields that are unknown are left out of account: the API server has pruned what its schema does not know, so they
    are those of a newer schema, which comes before a newer operator.

    Raises:
        pydantic.ValidationError: There is no metadata as every API server gives it: this is no Kubernetes object.
    """
    metadata = Metadata.model_validate(resource.get("metadata"))
    status = _status(resource.get("status"))
    raw = resource.get("spec")
    try:
        spec = StreamAppSpec.model_validate(raw, extra="ignore")
    except ValidationError as error:
        faults = (*_name(metadata), *faults_of(error, "spec"))
        return InvalidStreamApp(metadata=metadata, replicas=_replicas(raw, status), status=status, faults=faults)
    faults = (*_name(metadata), *conflicts(metadata.name, spec))
    if faults:
        return InvalidStreamApp(metadata=metadata, replicas=spec.replicas, status=status, faults=faults)
    return StreamApp(metadata=metadata, spec=spec, status=status)


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


def _status(raw: object) -> StreamAppStatus:
    """Read what an operator of any version has written; what this one cannot read it writes anew."""
    fields = dict(raw) if isinstance(raw, Mapping) else {}
    try:
        return StreamAppStatus.model_validate(fields, extra="ignore")
    except ValidationError as error:
        for details in error.errors(include_url=False):
            fields.pop(str(details["loc"][0]), None)
        return StreamAppStatus.model_validate(fields, extra="ignore")
