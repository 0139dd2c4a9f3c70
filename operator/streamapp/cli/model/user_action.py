"""The switches of a user beside the replicas: hold, pause, resume. What each writes, and the state before and after.

Pure; `commands.user_action` applies them to one StreamApp or to all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streamapp.api.names import HOLD
from streamapp.api.status.translate import NO_REASON

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The effect of an action on one StreamApp."""

    action: str
    namespace: str
    name: str
    before: str
    after: str
    written: bool

    @property
    def sentence(self) -> str:
        """For a person."""
        app = f"{self.namespace}/{self.name}"
        if not self.written:
            return f"{app} is already {self.after}."
        return f"{app} is now {self.after}. Before, it was {self.before}."

    @property
    def document(self) -> Json:
        """For programs."""
        return {
            "namespace": self.namespace,
            "name": self.name,
            "action": self.action,
            "was": self.before,
            "is": self.after,
            "written": self.written,
        }


@dataclass(frozen=True, slots=True)
class HoldAction:
    """Blocks every scale-down, whatever the coverage."""

    reason: str
    keeps_others: bool = False
    """Whether an earlier reason stays: a hold of all StreamApps must not replace the hold of another user."""

    word = "hold"
    effect = "Scale-downs wait until `kubectl streamapp unhold NAME`. Scale-ups and rollouts continue."

    def state_of(self, resource: Mapping[str, Any]) -> str:
        """The state before the action."""
        reason = _hold_reason(resource)
        return "not held by a user" if reason is None else f"held ({reason})"

    def state_after(self, resource: Mapping[str, Any]) -> str:
        """The state after the action."""
        stays = self.keeps_others and _hold_reason(resource) is not None
        return self.state_of(resource) if stays else f"held ({self.reason})"

    @property
    def patch(self) -> Json:
        """The merge patch."""
        return {"metadata": {"annotations": {HOLD: self.reason}}}


@dataclass(frozen=True, slots=True)
class PauseAction:
    """Stops all changes, or allows them again."""

    paused: bool

    @property
    def word(self) -> str:
        """The command."""
        return "pause" if self.paused else "resume"

    @property
    def effect(self) -> str:
        """What the operator does from now on."""
        if self.paused:
            return (
                "The operator scales, restarts and prepares nothing, and does not scale up either, until "
                "`kubectl streamapp resume NAME`. It finishes a step that is open."
            )
        return "The operator continues from the present state, with the present desired replicas."

    def state_of(self, resource: Mapping[str, Any]) -> str:
        """The state before the action."""
        return "paused" if (resource.get("spec") or {}).get("paused") is True else "not paused"

    def state_after(self, _resource: Mapping[str, Any]) -> str:
        """The state after the action."""
        return "paused" if self.paused else "not paused"

    @property
    def patch(self) -> Json:
        """The merge patch."""
        return {"spec": {"paused": self.paused}}


UserAction = HoldAction | PauseAction


def is_done(action: UserAction, resource: Mapping[str, Any]) -> bool:
    """Whether there is nothing to write."""
    return action.state_of(resource) == action.state_after(resource)


def result_of(action: UserAction, before: Mapping[str, Any]) -> ActionResult:
    """The effect of an action on a StreamApp, as read before the write."""
    metadata = before["metadata"]
    return ActionResult(
        action=action.word,
        namespace=metadata["namespace"],
        name=metadata["name"],
        before=action.state_of(before),
        after=action.state_after(before),
        written=not is_done(action, before),
    )


def _hold_reason(resource: Mapping[str, Any]) -> str | None:
    reason = (resource["metadata"].get("annotations") or {}).get(HOLD)
    return None if reason is None else reason.strip() or NO_REASON
