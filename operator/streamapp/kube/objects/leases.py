"""The Lease for which the operator's replicas stand: reading it, making it, and writing it on exactly one version.

Called by the controller's elector. Nothing here knows a clock: `renewTime` is written for people to read, and never
compared with anything.
"""

from dataclasses import dataclass
from datetime import datetime
from math import ceil

from streamapp.kube.client.client import Json, KubeClient
from streamapp.kube.client.errors import ConflictError, NotFoundError
from streamapp.kube.client.kinds import LEASES, Key


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSpec:
    """What a Lease says."""

    holder: str
    """Empty if there is no holder."""
    seconds: float
    """How long others have to see it stand still before they take it; whole seconds once it was written."""
    transitions: int
    """How often it has changed hands."""
    acquired_at: str
    renewed_at: str
    """When the holder last wrote it, by the holder's wall clock."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A Lease as it was read."""

    uid: str
    version: str
    says: LeaseSpec


def stamp(now: datetime) -> str:
    """Give a time as a Lease has it."""
    return now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def find(client: KubeClient, key: Key) -> Lease | None:
    """Read it; None where there is none."""
    document = await client.find(LEASES, key.namespace, key.name)
    return None if document is None else _read(document)


async def create(client: KubeClient, key: Key, says: LeaseSpec) -> Lease:
    """Make it; ConflictError where there is one by now, NotFoundError where there is no such namespace."""
    metadata = {"namespace": key.namespace, "name": key.name}
    return _read(await client.create(LEASES, {"metadata": metadata, "spec": _spec(says)}))


async def write(client: KubeClient, key: Key, on: Lease, says: LeaseSpec) -> Lease:
    """Write it on exactly the version that was read; ConflictError, and nothing written, where it is another one."""
    metadata = {"namespace": key.namespace, "name": key.name, "uid": on.uid, "resourceVersion": on.version}
    try:
        return _read(await client.apply(LEASES, {"metadata": metadata, "spec": _spec(says)}))
    except NotFoundError as error:
        raise ConflictError(error.what, error.why, "it is read again") from error


def _spec(says: LeaseSpec) -> Json:
    return {
        "holderIdentity": says.holder,
        "leaseDurationSeconds": ceil(says.seconds),
        "leaseTransitions": says.transitions,
        "acquireTime": says.acquired_at,
        "renewTime": says.renewed_at,
    }


def _read(document: Json) -> Lease:
    spec: Json = document.get("spec") or {}
    says = LeaseSpec(
        holder=spec.get("holderIdentity") or "",
        seconds=float(spec.get("leaseDurationSeconds") or 0),
        transitions=int(spec.get("leaseTransitions") or 0),
        acquired_at=spec.get("acquireTime") or "",
        renewed_at=spec.get("renewTime") or "",
    )
    return Lease(document["metadata"]["uid"], document["metadata"]["resourceVersion"], says)
