"""What the judge asks of claims: Kubernetes deletes one only where the StreamApp said so when its pod was taken.

The operator itself deletes none. A change that the user made too late to be seen before the removal excuses it.
"""

from collections.abc import Callable, Iterable
from math import inf
from typing import Any

Json = dict[str, Any]
SEEN_WITHIN = 60.0
"""Seconds in which an operator must have written what its user says, whatever befalls it: as long as a raise may take.
Who deletes the StreamApp sooner deletes what stands on the StatefulSet."""


class ClaimJudge:
    """One story's."""

    def __init__(self, app: Callable[[], Json | None], now: Callable[[], float] = lambda: 0.0) -> None:
        self._app, self._now = app, now
        self._gave_up_until = -inf
        """When the StreamApp last said that claims go with it."""
        self._could_go: dict[int, bool] = {}
        """Ordinals that were removed: whether their claims could be deleted by what the spec said then."""
        self._last_said: Json = {}
        self._said_before: Json = {}

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

    def vanished(self, claim: Json, *, is_by_operator: bool) -> str | None:
        """Say what is wrong with the end of a claim, if anything is."""
        name = claim["metadata"]["name"]
        if is_by_operator:
            return f"the claim {name} was deleted by the operator"
        if "deletionTimestamp" in claim["metadata"]:
            return None  # its user deleted it
        ordinal = int(name.rpartition("-")[2])
        allowed = self._could_go.get(ordinal, False) or self._last_said.get("whenScaled") == "Delete"
        if self._app() is None or "deletionTimestamp" in (self._app() or {"metadata": {}})["metadata"]:
            is_late = self._now() - self._gave_up_until <= SEEN_WITHIN
            allowed = allowed or is_late or self._last_said.get("whenDeleted") == "Delete"
        return None if allowed else f"the claim {name} was deleted, and the spec says {self._last_said}"
