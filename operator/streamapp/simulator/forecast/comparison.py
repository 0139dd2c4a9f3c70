"""A forecast of one change, and what was seen of the change when it was over."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from streamapp.core.facts.ids import TaskId
from streamapp.simulator.forecast.outcome import Outcome


class Result(Enum):
    """How a forecast ended."""

    WITHIN = "within"
    """The time was within the range."""
    OUTSIDE = "outside"
    NO_TIME = "no time"
    """The forecast had no time, since sizes of changelogs were not known."""
    SUPERSEDED = "superseded"
    """The desired replicas changed again before the change was over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What was predicted of one change, before anything of it was seen."""

    made_at: datetime
    opened_at: datetime
    """When the desired replicas changed."""
    from_replicas: int
    to_replicas: int
    outcome: Outcome
    owners: Mapping[TaskId, int]
    """The ordinal of each stateful task before the change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A forecast beside what was seen."""

    forecast: Forecast
    closed_at: datetime
    result: Result
    seconds: float | None = None
    """From the change of the desired replicas until members and tasks were as they stayed; None: superseded."""
    moves: int | None = None
    """Stateful tasks that ended on another pod."""
    wrong: tuple[TaskId, ...] = ()
    """Stateful tasks that ended on a pod that was predicted in no way."""

    @property
    def error(self) -> float | None:
        """The time that was seen, as a multiple of the predicted median."""
        spread = self.forecast.outcome.seconds
        if spread is None or self.seconds is None or spread.p50 <= 0:
            return None
        return self.seconds / spread.p50

    @property
    def pause(self) -> float | None:
        """Seconds of one step beside its rebalances; None also if these alone were predicted to take longer."""
        spread, outcome = self.forecast.outcome.seconds, self.forecast.outcome
        if spread is None or self.seconds is None:
            return None
        rounds = spread.p50 - outcome.pause
        return (self.seconds - rounds) / outcome.removals if self.seconds > rounds else None


def superseded(forecast: Forecast, at: datetime) -> Finished:
    """A change that another one ended."""
    return Finished(forecast=forecast, closed_at=at, result=Result.SUPERSEDED)


def compared(forecast: Forecast, at: datetime, last_change: datetime, owners: Mapping[TaskId, int]) -> Finished:
    """A change that is over.

    Args:
        forecast: What was predicted.
        at: When it was seen to be over.
        last_change: When members and tasks were first seen as they stayed.
        owners: The ordinal of each stateful task.
    """
    seconds = max(0.0, (last_change - forecast.opened_at).total_seconds())
    before, places = forecast.owners, forecast.outcome.places
    spread = forecast.outcome.seconds
    result = Result.NO_TIME
    if spread is not None:
        result = Result.WITHIN if spread.p10 <= seconds <= spread.p90 else Result.OUTSIDE
    return Finished(
        forecast=forecast,
        closed_at=at,
        result=result,
        seconds=seconds,
        moves=sum(owners.get(task) != ordinal for task, ordinal in before.items()),
        wrong=tuple(sorted(task for task in before if owners.get(task) not in places.get(task, ()))),
    )
