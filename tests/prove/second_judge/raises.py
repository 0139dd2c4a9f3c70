"""Guarantee 3: how long a raise takes, from the write of `spec.replicas` to the patch of the StatefulSet."""

from dataclasses import dataclass
from typing import Any

from tests.prove.second_judge.deeds import is_valid
from tests.prove.second_judge.ledger import Listener, Write

Json = dict[str, Any]
AT_ONCE = 2.0
"""Seconds while a leader acts and the event was delivered, beside the time that the API server takes."""
CALLS = 10
"""Requests, one after the other, that a raise can wait for."""
AFTER_A_DEATH = 20.0
"""Seconds after the leader died or froze."""
AFTER_A_FAULT = 60.0
"""Seconds after the last fault, of which a lost event is the worst."""
ECHO = 15.0
"""Seconds before a raise in which a fault still counts: a request can wait for ten."""
CANCELLED = 3.0
"""Seconds more, until the status no longer shows the hold."""


@dataclass(slots=True)
class Raise:
    """One that is under way."""

    at: float
    target: int
    in_hold: bool
    is_done: bool = False
    """The replicas were there: it cancels a hold alone, or was made. What takes them away later is no part of it."""


class Raises(Listener):
    """Measures raises, and judges each by what happened meanwhile."""

    number = 3
    sentences = (
        "The operator's logic never delays a scale-up, unless the StreamApp is paused, a dry run, invalid, being "
        "deleted or in conflict with another owner.",
        "Raising the replicas cancels a hold at once.",
    )

    def __init__(self) -> None:
        self._raise: Raise | None = None

    def user_wrote(self, app: Json | None, before: Json | None) -> None:
        """A raise begins if more replicas are desired than there are, and the operator can act."""
        if app is None or before is None:
            return
        desired = int(app["spec"].get("replicas", 1))
        is_less = self._raise is not None and desired < self._raise.target
        if not is_valid(app) or is_less or desired < self.stage.current():
            self._raise = None
            return
        is_held = _is_held(before)
        is_raise = is_held and desired > int(before["spec"].get("replicas", 1))
        is_new = self._raise is None or self._raise.target != desired
        if is_new and (is_raise or desired > self.stage.current()):
            self._raise = Raise(self.stage.now, desired, is_held, is_done=desired <= self.stage.current())

    def wrote(self, write: Write) -> None:
        """A raise of the StatefulSet."""
        replicas, one = write.replicas(), self._raise
        if one is None or one.is_done or replicas is None or not write.process or replicas[1] < one.target:
            return
        if replicas[1] > replicas[0]:
            one.is_done = True
            kind, bound, since = self._circumstances(one.at)
            self.stage.ledger.figures.delays[kind].append(write.at - one.at)
            self.stage.ledger.stake(3, f"raises: {kind}")
            if write.at - since > bound:
                self._late(one, kind, f"took {write.at - one.at:.2f} s")

    def passed(self) -> None:
        """Look for a raise that is overdue, and for a hold that outlived one."""
        one = self._raise
        if one is None or self.stage.statefulset() is None:
            return
        kind, bound, since = self._circumstances(one.at)
        is_late = self.stage.now - since > bound + CANCELLED
        if self.stage.current() < one.target and not one.is_done:
            if is_late:
                self._late(one, kind, f"is not made after {self.stage.now - one.at:.2f} s")
                self._raise = None
            return
        if is_late or not one.in_hold:
            if one.in_hold:
                self._judge_cancel(one)
            self._raise = None

    def _judge_cancel(self, one: Raise) -> None:
        self.stage.ledger.stake(3, "raises that cancel a hold")
        if _is_held(self.stage.app()):
            self.stage.ledger.wrong(3, f"{one.target} are desired since {one.at:.2f} s, and the hold goes on")

    def _late(self, one: Raise, kind: str, what: str) -> None:
        self.stage.ledger.wrong(3, f"the raise to {one.target} of {one.at:.3f} s ({kind}) {what}")

    def _circumstances(self, began: float) -> tuple[str, float, float]:
        """Their name, the bound in seconds, and from when on it counts."""
        lives, ledger = self.stage.lives, self.stage.ledger
        slow = CALLS * ledger.slowness if ledger.slow_until > began - ECHO else 0.0
        gone = [start for start, end in lives.away if end > began]
        gone += [lives.gone_at] if lives.gone_at is not None else []
        if ledger.struck_at > began - ECHO and ledger.struck_at not in gone:
            return "after a fault", AFTER_A_FAULT + slow, max(began, ledger.struck_at, *gone, began)
        if gone:
            return "after a leader's death", AFTER_A_DEATH + slow, max(began, *gone)
        return "slow API server" if slow else "leader holds", AT_ONCE + slow, began


def _is_held(app: Json) -> bool:
    conditions = {one["type"]: one["status"] for one in app.get("status", {}).get("conditions", ())}
    return conditions.get("ScaleDownHeld") == "True"
