"""One StreamApp at one time: its state, the condition behind the state, and whether its status can be trusted.

Made from the object as the API server gives it, and used by everything that shows a StreamApp. Pure. Only this module
distinguishes the states of the command line. Control characters are removed from every text.
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
from streamapp.api.v1alpha1.status import (
    ConditionStatus,
    ConvergenceStatus,
    GroupProtocol,
    ScaleDownStatus,
    StreamAppStatus,
)
from streamapp.api.validation.parse import InvalidStreamApp, StreamApp, parse
from streamapp.cli.model.migration_record import Record, UnreadableRecord, read_record
from streamapp.cli.text.sanitize import plain
from streamapp.core.actions.decision import Answer
from streamapp.core.reasons import Reason

ANSWERED_WITHIN = timedelta(seconds=30)
"""A running operator answers a changed spec within seconds."""
RENEWED_WITHIN = timedelta(minutes=10)
"""During a change, the lag or the estimate differs after five minutes at the latest."""


class AppState(Enum):
    """The state of a StreamApp; the value is its word on a screen."""

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
    """The status does not answer the present spec."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why the status may be wrong, and what to do about it."""

    what: str
    next_step: str


@dataclass(frozen=True, slots=True)
class Never:
    """The lag does not decrease."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppView:
    """A StreamApp at one time."""

    streamapp: StreamApp | InvalidStreamApp
    now: datetime
    status_written_at: datetime | None
    """When the operator last wrote the status."""
    spec_written_at: datetime
    """When anything else of the resource was last written."""

    @property
    def name(self) -> str:
        """`namespace/name`."""
        return f"{self.streamapp.metadata.namespace}/{self.streamapp.metadata.name}"

    @property
    def status(self) -> StreamAppStatus:
        """The status of the resource."""
        return self.streamapp.status

    @property
    def is_answered(self) -> bool:
        """Whether the operator has ever written the status."""
        return self.status.observed_generation is not None

    @property
    def is_of_this_spec(self) -> bool:
        """Whether the status answers the present spec."""
        return self.is_answered and not self._is_older_than_the_spec

    @property
    def age(self) -> timedelta:
        """The time since its creation."""
        return self.now - self.streamapp.metadata.creation_timestamp

    @property
    def application_id(self) -> str | None:
        """`application.id` of Kafka Streams; None if the spec is invalid."""
        return self.streamapp.spec.application_id if isinstance(self.streamapp, StreamApp) else None

    @property
    def is_dry_run(self) -> bool:
        """Whether the operator only decides and changes nothing."""
        return isinstance(self.streamapp, StreamApp) and self.streamapp.spec.dry_run

    @property
    def is_of_streams_protocol(self) -> bool:
        """Whether the group has the streams protocol, as the operator last wrote."""
        return self.status.group_protocol is GroupProtocol.STREAMS

    @property
    def user_hold(self) -> str | None:
        """The reason of a user's hold (`streamapp.dev/hold`); None if there is no such hold."""
        reason = self.streamapp.metadata.annotations.get(HOLD)
        return None if reason is None else reason.strip() or NO_REASON

    @property
    def migration(self) -> Record | UnreadableRecord | None:
        """The change of the group protocol that is under way; None if there is none."""
        return read_record(self.streamapp.metadata.annotations)

    @property
    def overridden_hold(self) -> str | None:
        """The ID of the operator's hold that a user has overridden; None if there is none."""
        hold_id = self.streamapp.metadata.annotations.get(OVERRIDE, "").strip().partition(" ")[0]
        return hold_id or None

    @property
    def faults(self) -> tuple[str, ...]:
        """The errors in the spec, if the status does not report them."""
        main = self.main_condition
        if isinstance(self.streamapp, StreamApp) or (main is not None and main.reason == Reason.InvalidSpec.name):
            return ()
        return tuple(map(str, self.streamapp.faults))

    def condition(self, kind: str) -> ConditionStatus | None:
        """The condition of this type; None if the status has none."""
        return next((condition for condition in self.status.conditions if condition.type == kind), None)

    def answer(self, kind: str) -> Answer:
        """The status of a condition; Unknown if the condition is missing."""
        condition = self.condition(kind)
        return Answer.UNKNOWN if condition is None else condition.status

    @property
    def state(self) -> AppState:
        """The first state that applies, the most urgent first."""
        if self.streamapp.metadata.deletion_timestamp is not None:
            return AppState.DELETING
        if not self.is_answered or self._is_older_than_the_spec:
            return AppState.UNANSWERED
        return self._answered_state()

    def _answered_state(self) -> AppState:
        hold = self.condition("ScaleDownHeld")
        cases = (
            (self.answer("Stalled") is Answer.TRUE, AppState.STALLED),
            (hold is not None and hold.reason == Reason.Paused.name, AppState.PAUSED),
            (self.answer("ScaleDownHeld") is Answer.TRUE, AppState.HELD),
            (self.answer("Reconciling") is Answer.TRUE, AppState.CHANGING),
            (self.answer("Ready") is not Answer.TRUE, AppState.NOT_READY),
            (self.answer("Converged") is Answer.FALSE, AppState.CONVERGING),
            (self.answer("Converged") is Answer.UNKNOWN, AppState.UNKNOWN),
        )
        return next((state for applies, state in cases if applies), AppState.SETTLED)

    @property
    def main_condition(self) -> ConditionStatus | None:
        """The condition behind the state; None if the status has none."""
        kind = {
            AppState.STALLED: "Stalled",
            AppState.HELD: "ScaleDownHeld",
            AppState.PAUSED: "ScaleDownHeld",
            AppState.CHANGING: "Reconciling",
            AppState.NOT_READY: "Ready",
            AppState.CONVERGING: "Converged",
            AppState.UNKNOWN: "Converged",
            AppState.SETTLED: "Converged",
        }.get(self.state)
        return None if kind is None else self.condition(kind)

    @property
    def root_cause(self) -> ConditionStatus | None:
        """The condition that the others follow from, if one is known; it is said before them."""
        known = ((condition, Reason.__members__.get(condition.reason)) for condition in self.problem_conditions)
        return next((condition for condition, reason in known if reason is not None and reason.row.is_root_cause), None)

    @property
    def problem_conditions(self) -> tuple[ConditionStatus, ...]:
        """The other conditions that need attention."""
        main = self.main_condition
        others = (condition for condition in self.status.conditions if condition != main)
        return tuple(other for other in others if not is_sound(other.type, other.status, other.reason))

    @property
    def is_overdue(self) -> bool:
        """Whether a running operator would have answered by now."""
        return self.state is AppState.UNANSWERED and self.now - self.spec_written_at >= ANSWERED_WITHIN

    @property
    def doubt(self) -> Doubt | None:
        """Why the status may be wrong; None if there is no sign of that."""
        look = "Check that the operator runs and watches this namespace, and read its log."
        step = look if self.is_overdue else "Check again in a few seconds."
        if not self.is_answered:
            never = "The operator has never answered: the StreamApp has no status."
            return Doubt(never if self.is_overdue else "The operator has not answered yet.", step)
        if self._is_older_than_the_spec:
            what = (
                f"The status is older than the spec: the status is for generation {self.status.observed_generation}, "
                f"and the spec has generation {self.streamapp.metadata.generation}."
            )
            return Doubt(what, step)
        return self._stale(look)

    def _stale(self, look: str) -> Doubt | None:
        changes = self.state in {AppState.HELD, AppState.CHANGING, AppState.CONVERGING}
        if self.status_written_at is None or not changes or self.now - self.status_written_at <= RENEWED_WITHIN:
            return None
        minutes = int((self.now - self.status_written_at) / timedelta(minutes=1))
        what = f"The status may be stale: a change is in progress, and the last write was {minutes} min ago."
        return Doubt(what, look)

    @property
    def _is_older_than_the_spec(self) -> bool:
        observed = self.status.observed_generation
        return observed is not None and observed < self.streamapp.metadata.generation

    def left(self, part: ConvergenceStatus | ScaleDownStatus | None) -> timedelta | Never | None:
        """The time left until the estimated completion; None if there is no estimate."""
        if part is None:
            return None
        if part.estimated_completion_time is not None:
            # A clock that is behind the cluster's does not lengthen the estimate.
            now = self.now if self.status_written_at is None else max(self.now, self.status_written_at)
            return max(timedelta(0), part.estimated_completion_time - now)
        return Never() if part.lag_falling is False else None


def view_of(resource: Mapping[str, Any], now: datetime) -> AppView:
    """The view of a StreamApp.

    Args:
        resource: The whole object, as the API server gives it in JSON.
        now: The time, aware of its zone.

    Raises:
        pydantic.ValidationError: The object lacks the metadata that every API server sets.
    """
    clean = _without_controls(resource)
    streamapp = parse(clean)
    return AppView(
        streamapp=streamapp,
        now=now,
        status_written_at=told_at(clean),
        spec_written_at=asked_at(clean) or streamapp.metadata.creation_timestamp,
    )


def _without_controls(value: Any) -> Any:
    """A copy without the control characters that would steer a terminal."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, Mapping):
        return {key: _without_controls(item) for key, item in value.items()}
    return [_without_controls(item) for item in value] if isinstance(value, list) else value
