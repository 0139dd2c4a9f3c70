"""What the judge asks of claims: Kubernetes deletes one only where the StreamApp said so when its pod was taken.

The operator itself deletes none. A change that the user made too late to be seen before the removal excuses it.
"""

from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import Any

from streamapp.api.names import NEW_VOLUME, PROCESS_ID, RESTART
from streamapp.api.v1alpha1.quantities import parse_quantity

Json = dict[str, Any]
JUDGEMENT = 10.0
"""Seconds that a judgement may be old when it is sent, however slow the server is or was when it answered."""
SEEN_WITHIN = 60.0
"""Seconds in which an operator must have written what its user says, whatever befalls it: as long as a raise may take.
Who deletes the StreamApp sooner deletes what stands on the StatefulSet."""


class ClaimJudge:
    """One story's."""

    def __init__(self, app: Callable[[], Json | None], now: Callable[[], float] = lambda: 0.0) -> None:
        self._app, self._now = app, now
        self._gave_up_until = -inf
        """When the StreamApp last said that claims go with it."""
        self._deleted_at: dict[int, float] = {}
        """By ordinal: when somebody deleted the claim, which its pod keeps."""
        self._lost_at: dict[int, float] = {}
        """By ordinal: since when the claim has lost its volume."""
        self._could_go: dict[int, bool] = {}
        """Ordinals that were removed: whether their claims could be deleted by what the spec said then."""
        self._last_said: Json = {}
        self._said_before: Json = {}

    def changed(self, plural: str, body: Json | None) -> None:
        """Remember what the StreamApp says of claims, and which of them somebody deletes."""
        if plural == "streamapps" and body:
            self.said(body)
        if plural == "persistentvolumeclaims" and body:
            self._marked(body)

    def said(self, app: Json) -> None:
        """Remember what the StreamApp says; it counts also when the StreamApp is gone."""
        said = app["spec"].get("state", {}).get("retention", {})
        if self._last_said.get("whenDeleted") == "Delete":
            self._gave_up_until = self._now()
        if said != self._last_said:
            self._said_before, self._last_said = self._last_said, said

    def removed(self, ordinals: Iterable[int], *, is_late: bool) -> None:
        """Note a removal; `is_late`: what the user has said just now could not be seen any more."""
        said = (self._last_said, self._said_before) if is_late else (self._last_said,)
        could_go = any(one.get("whenScaled") == "Delete" for one in said)
        self._could_go.update(dict.fromkeys(ordinals, could_go))

    def _marked(self, claim: Json) -> None:
        if "deletionTimestamp" in claim["metadata"]:
            self._deleted_at.setdefault(_ordinal(claim), self._now())
        else:
            self._deleted_at.pop(_ordinal(claim), None)
        if claim.get("status", {}).get("phase") == "Lost":
            self._lost_at.setdefault(_ordinal(claim), self._now())
        else:
            self._lost_at.pop(_ordinal(claim), None)

    def lost_beside(self, going: Iterable[int]) -> str | None:
        """Say what is wrong with a write that lets pods go while somebody else has lost his volume, if anything is.

        The state of a pod that stays lies nowhere then: its next container finds none.
        """
        staying = self._lost_at.keys() - {*going}
        lost = sorted(one for one in staying if self._now() - self._lost_at[one] > JUDGEMENT)
        return f"although the volumes of {lost} are lost" if lost else None

    def taken(self, pod: Json) -> str | None:
        """Say what is wrong if the operator deletes a pod: it is all that keeps a claim that is being deleted."""
        metadata = (self._app() or {"metadata": {}})["metadata"]
        asked = metadata.get("annotations", {}).get(RESTART, "")
        since = self._deleted_at.get(_ordinal(pod))
        if since is None or f"{pod['metadata']['uid']} {NEW_VOLUME}" in asked or self._now() - since <= JUDGEMENT:
            return None
        return f"whose claim is being deleted since {self._now() - since:.0f} s, and nobody gave it up"

    def vanished(self, claim: Json, *, is_by_operator: bool) -> str | None:
        """Say what is wrong with the end of a claim, if anything is."""
        name = claim["metadata"]["name"]
        self._deleted_at.pop(_ordinal(claim), None)
        self._lost_at.pop(_ordinal(claim), None)
        if is_by_operator:
            return f"the claim {name} was deleted by the operator"
        if "deletionTimestamp" in claim["metadata"]:
            return None  # its user deleted it
        allowed = self._could_go.get(_ordinal(claim), False) or self._last_said.get("whenScaled") == "Delete"
        if self._app() is None or "deletionTimestamp" in (self._app() or {"metadata": {}})["metadata"]:
            is_late = self._now() - self._gave_up_until <= SEEN_WITHIN
            allowed = allowed or is_late or self._last_said.get("whenDeleted") == "Delete"
        return None if allowed else f"the claim {name} was deleted, and the spec says {self._last_said}"


def recorded(claim: Json) -> str | None:
    """The process ID that a claim has on record."""
    found: str | None = claim["metadata"].get("annotations", {}).get(PROCESS_ID)
    return found


def misrecorded(claim: Json, before: Json, true: str) -> Iterator[tuple[int, str]]:
    """Guarantee 5: what is recorded is what lies on the volume, and is never replaced.

    Args:
        claim: As the operator writes it.
        before: As it was.
        true: The process ID that lies on the volume.

    Yields:
        The number of a guarantee that the write breaks, and how.
    """
    name, was, now = claim["metadata"]["name"], recorded(before), recorded(claim)
    if _storage(claim) < _storage(before):
        yield 4, f"{name} asks for less storage than before"
    if now != was and (was is not None or now != true):
        yield 5, f"{name} is recorded as {now}; it was {was} and is {true}"


def _storage(claim: Json) -> int:
    return int(parse_quantity(claim["spec"].get("resources", {}).get("requests", {}).get("storage", "0")))


def _ordinal(live: Json) -> int:
    return int(live["metadata"]["name"].rpartition("-")[2])
