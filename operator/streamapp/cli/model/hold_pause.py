"""What a person may order beside a number: hold, pause, resume. What each writes, and what it says was and is. Pure.

`order_commands` carries them out, on one StreamApp or on all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streamapp.api.names import HOLD
from streamapp.api.status.translate import NO_REASON

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an order for one StreamApp."""

    order: str
    namespace: str
    name: str
    was: str
    now: str
    written: bool

    @property
    def sentence(self) -> str:
        """Says it."""
        app = f"{self.namespace}/{self.name}"
        return f"{app} is {self.now}; it was {self.was}." if self.written else f"{app} is {self.now} already."

    @property
    def document(self) -> Json:
        """The same for programs."""
        return {
            "namespace": self.namespace,
            "name": self.name,
            "order": self.order,
            "was": self.was,
            "is": self.now,
            "written": self.written,
        }


@dataclass(frozen=True, slots=True)
class Hold:
    """No scale-down, whatever coverage says."""

    reason: str
    keeps_others: bool = False
    """Whether the reason that somebody gave before stands: whoever holds all must not lift what others hold."""

    word = "hold"
    consequence = "Scale-downs wait until `kubectl streamapp release NAME`; growth and rollouts go on."

    def state_of(self, resource: Mapping[str, Any]) -> str:
        """What is so now."""
        reason = _held_for(resource)
        return "not held by anybody" if reason is None else f"held ({reason})"

    def state_after(self, resource: Mapping[str, Any]) -> str:
        """What is so afterwards."""
        stands = self.keeps_others and _held_for(resource) is not None
        return self.state_of(resource) if stands else f"held ({self.reason})"

    @property
    def patch(self) -> Json:
        """What is written."""
        return {"metadata": {"annotations": {HOLD: self.reason}}}


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing is scaled, restarted or prepared; or again."""

    paused: bool

    @property
    def word(self) -> str:
        """The command."""
        return "pause" if self.paused else "resume"

    @property
    def consequence(self) -> str:
        """What comes of it."""
        if self.paused:
            return (
                "Nothing is scaled, restarted or prepared, growth included, until `kubectl streamapp resume NAME`; "
                "a step that is open is brought to its end."
            )
        return "The operator goes on from what it finds: wishes that were written meanwhile count at once."

    def state_of(self, resource: Mapping[str, Any]) -> str:
        """What is so now."""
        return "paused" if (resource.get("spec") or {}).get("paused") is True else "not paused"

    def state_after(self, _resource: Mapping[str, Any]) -> str:
        """What is so afterwards."""
        return "paused" if self.paused else "not paused"

    @property
    def patch(self) -> Json:
        """What is written."""
        return {"spec": {"paused": self.paused}}


Order = Hold | Pause


def is_so(order: Order, resource: Mapping[str, Any]) -> bool:
    """Whether there is nothing to write."""
    return order.state_of(resource) == order.state_after(resource)


def outcome_of(order: Order, before: Mapping[str, Any]) -> Outcome:
    """What comes of an order for a StreamApp, as it was read before."""
    metadata = before["metadata"]
    return Outcome(
        order=order.word,
        namespace=metadata["namespace"],
        name=metadata["name"],
        was=order.state_of(before),
        now=order.state_after(before),
        written=not is_so(order, before),
    )


def _held_for(resource: Mapping[str, Any]) -> str | None:
    reason = (resource["metadata"].get("annotations") or {}).get(HOLD)
    return None if reason is None else reason.strip() or NO_REASON
