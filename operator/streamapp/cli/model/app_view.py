"""One StreamApp as it stands at one time: which state it is in, what says so, and whether its status can be trusted.

Made from the object as the API server gives it, used by everything that shows one. Pure; the only place where the
states of the command line are told apart. Text of others loses what would steer a terminal.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from streamapp.api.managed_fields import asked_at, told_at
from streamapp.api.names import HOLD, OVERRIDE
from streamapp.api.status.conditions import is_sound
from streamapp.api.status.translate import NO_REASON
from streamapp.api.v1alpha1.status import ConditionStatus, ConvergenceStatus, ScaleDownStatus, StreamAppStatus
from streamapp.api.validation.parse import InvalidStreamApp, StreamApp, parse
from streamapp.cli.text.sanitize import plain
from streamapp.core.actions.decision import Answer
from streamapp.core.reasons import Reason

ANSWERED_WITHIN = timedelta(seconds=30)
"""An operator that runs answers a changed spec within seconds."""
RENEWED_WITHIN = timedelta(minutes=10)
"""While something goes on, lag or ETA differ at the next nudge, which comes after five minutes at the latest."""


class State(Enum):
    """What a person wants to know first; the value is the word for it."""

    SETTLED = "settled"
    CONVERGING = "converging"
    CHANGING = "changing"
    HELD = "held"
    PAUSED = "paused"
    DELETING = "deleting"
    UNKNOWN = "unknown"
    NOT_READY = "not ready"
    STALLED = "stalled"
    UNANSWERED = "unanswered"
    """The operator has not said anything about this spec."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why the status may not be how things are, and what to do about it."""

    what: str
    next_step: str


@dataclass(frozen=True, slots=True)
class Never:
    """It does not come nearer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A StreamApp at one time."""

    found: StreamApp | InvalidStreamApp
    now: datetime
    told_at: datetime | None
    """When the operator last wrote the status."""
    asked_at: datetime
    """When somebody last wrote the rest of it."""

    @property
    def name(self) -> str:
        """With its namespace."""
        return f"{self.found.metadata.namespace}/{self.found.metadata.name}"

    @property
    def status(self) -> StreamAppStatus:
        """What the operator said."""
        return self.found.status

    @property
    def is_answered(self) -> bool:
        """Whether the operator has ever said anything."""
        return self.status.observed_generation is not None

    @property
    def is_of_this_spec(self) -> bool:
        """Whether the status answers the spec as it is now."""
        return self.is_answered and not self._is_older_than_the_spec

    @property
    def age(self) -> timedelta:
        """Since it was made."""
        return self.now - self.found.metadata.creation_timestamp

    @property
    def application_id(self) -> str | None:
        """Of the Kafka Streams application; None where the spec cannot be read."""
        return self.found.spec.application_id if isinstance(self.found, StreamApp) else None

    @property
    def is_dry_run(self) -> bool:
        """Whether everything is only decided."""
        return isinstance(self.found, StreamApp) and self.found.spec.dry_run

    @property
    def user_hold(self) -> str | None:
        """Why somebody forbade every scale-down (`streamapp.dev/hold`); None where nobody did."""
        reason = self.found.metadata.annotations.get(HOLD)
        return None if reason is None else reason.strip() or NO_REASON

    @property
    def user_release(self) -> str | None:
        """The hold that somebody released (`streamapp.dev/override`); None where nobody did."""
        hold_id = self.found.metadata.annotations.get(OVERRIDE, "").strip().partition(" ")[0]
        return hold_id or None

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with the spec, where the operator has not said so."""
        told = self.told_by
        if isinstance(self.found, StreamApp) or (told is not None and told.reason == Reason.InvalidSpec.name):
            return ()
        return tuple(map(str, self.found.faults))

    def condition(self, kind: str) -> ConditionStatus | None:
        """One condition, if it is there."""
        return next((one for one in self.status.conditions if one.type == kind), None)

    def answer(self, kind: str) -> Answer:
        """What a condition says; Unknown where it is not there."""
        found = self.condition(kind)
        return Answer.UNKNOWN if found is None else found.status

    @property
    def state(self) -> State:
        """Which it is in: the first that applies, what keeps a person busiest first."""
        if self.found.metadata.deletion_timestamp is not None:
            return State.DELETING
        if not self.is_answered or self._is_older_than_the_spec:
            return State.UNANSWERED
        return self._answered_state()

    def _answered_state(self) -> State:
        verdict = self.condition("ScaleDownHeld")
        cases = (
            (self.answer("Stalled") is Answer.TRUE, State.STALLED),
            (verdict is not None and verdict.reason == Reason.Paused.name, State.PAUSED),
            (self.answer("ScaleDownHeld") is Answer.TRUE, State.HELD),
            (self.answer("Reconciling") is Answer.TRUE, State.CHANGING),
            (self.answer("Ready") is not Answer.TRUE, State.NOT_READY),
            (self.answer("Converged") is Answer.FALSE, State.CONVERGING),
            (self.answer("Converged") is Answer.UNKNOWN, State.UNKNOWN),
        )
        return next((state for applies, state in cases if applies), State.SETTLED)

    @property
    def told_by(self) -> ConditionStatus | None:
        """The condition that says why it is in its state; None where the operator has not said."""
        kind = {
            State.STALLED: "Stalled",
            State.HELD: "ScaleDownHeld",
            State.PAUSED: "ScaleDownHeld",
            State.CHANGING: "Reconciling",
            State.NOT_READY: "Ready",
            State.CONVERGING: "Converged",
            State.UNKNOWN: "Converged",
            State.SETTLED: "Converged",
        }.get(self.state)
        return None if kind is None else self.condition(kind)

    @property
    def to_look_at(self) -> tuple[ConditionStatus, ...]:
        """The other conditions that ask for something."""
        said = self.told_by
        others = (one for one in self.status.conditions if one != said)
        return tuple(one for one in others if not is_sound(one.type, one.status, one.reason))

    @property
    def is_forgotten(self) -> bool:
        """Whether an operator that runs would have answered long since."""
        return self.state is State.UNANSWERED and self.now - self.asked_at >= ANSWERED_WITHIN

    @property
    def doubt(self) -> Doubt | None:
        """Why the status may not be how things are; None where nothing speaks against it."""
        look = "See that the operator runs and watches this namespace, and look at its log."
        step = look if self.is_forgotten else "Look again in a few seconds."
        if not self.is_answered:
            never = "The operator has never answered: the StreamApp has no status."
            return Doubt(never if self.is_forgotten else "The operator has not answered yet.", step)
        if self._is_older_than_the_spec:
            what = (
                f"The status is older than the spec: it answers generation {self.status.observed_generation}, "
                f"and the spec is at {self.found.metadata.generation}."
            )
            return Doubt(what, step)
        return self._stale(look)

    def _stale(self, look: str) -> Doubt | None:
        goes_on = self.state in {State.HELD, State.CHANGING, State.CONVERGING}
        if self.told_at is None or not goes_on or self.now - self.told_at <= RENEWED_WITHIN:
            return None
        minutes = int((self.now - self.told_at) / timedelta(minutes=1))
        return Doubt(f"The status may be stale: something goes on, but it was last written {minutes} min ago.", look)

    @property
    def _is_older_than_the_spec(self) -> bool:
        observed = self.status.observed_generation
        return observed is not None and observed < self.found.metadata.generation

    def left(self, part: ConvergenceStatus | ScaleDownStatus | None) -> timedelta | Never | None:
        """How much time is left until the estimated completion; None if there is no estimate."""
        if part is None:
            return None
        if part.estimated_completion_time is not None:
            # A clock that is behind the cluster's does not lengthen the estimate.
            now = self.now if self.told_at is None else max(self.now, self.told_at)
            return max(timedelta(0), part.estimated_completion_time - now)
        return Never() if part.lag_falling is False else None


def view_of(resource: Mapping[str, Any], now: datetime) -> View:
    """Look at a StreamApp.

    Args:
        resource: The whole object, as the API server gives it in JSON.
        now: The time, aware of its zone.

    Raises:
        pydantic.ValidationError: There is no metadata as every API server gives it.
    """
    clean = _without_controls(resource)
    found = parse(clean)
    created = found.metadata.creation_timestamp
    return View(found=found, now=now, told_at=told_at(clean), asked_at=asked_at(clean) or created)


def _without_controls(value: Any) -> Any:
    """The same without what would steer a terminal."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, Mapping):
        return {key: _without_controls(one) for key, one in value.items()}
    return [_without_controls(one) for one in value] if isinstance(value, list) else value
