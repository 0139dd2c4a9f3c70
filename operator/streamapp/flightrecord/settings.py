"""Makes lines of the flight record about the settings of an application, and of the clients in its pods."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from streamapp.api.validation.parse import StreamApp
from streamapp.core.facts.agent_reports import AgentReport
from streamapp.core.facts.group import GroupDescription
from streamapp.core.facts.policy import LearnerSource, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TaskSet
from streamapp.flightrecord import layout
from streamapp.flightrecord.lines import Head
from streamapp.flightrecord.schema import ConfigLine

T = TypeVar("T")


@dataclass(slots=True)
class ConfigLog:
    """The last line of one application."""

    _last: ConfigLine | None = None
    _task_set: TaskSet | None = None
    """The source of the tasks in that line."""

    @property
    def application_recovery_lag(self) -> int | None:
        """The application's own `acceptable.recovery.lag`, by the last line."""
        return None if self._last is None else self._last.application_recovery_lag

    def tell_again(self) -> None:
        """Write a line in the next pass: nobody knows what was in force meanwhile."""
        self._last = self._task_set = None

    def lines(
        self,
        head: Head,
        streamapp: StreamApp,
        snapshot: Snapshot,
        policy: ScalingPolicy,
        source: object,
        reports: Collection[AgentReport],
    ) -> Iterator[ConfigLine]:
        """Give a line if something changed; an unknown value keeps its last known value.

        Args:
            head: Fields that all lines share.
            streamapp: The StreamApp.
            snapshot: The facts of this pass.
            policy: What the user allows.
            source: Where copies come from, if that is known.
            reports: Fresh agent reports.
        """
        before = self._last
        line = ConfigLine(
            **head,
            seq=0,
            ts=snapshot.now,
            **_of_streamapp(streamapp, snapshot, policy),
            **self._tasks(snapshot),
            threads=_threads(snapshot) or (None if before is None else before.threads),
            learner_source=source.value
            if isinstance(source, LearnerSource)
            else ("" if before is None else before.learner_source),
            **_of_clients(reports, before),
        )
        if before is None or line.model_copy(update={"ts": before.ts}) != before:
            self._last = line
            yield line

    def _tasks(self, snapshot: Snapshot) -> dict[str, Any]:
        """A rebalance changes no tasks: those of one task set are told the same."""
        before, task_set = self._last, snapshot.task_set
        tasks, stateful = (None, ()) if before is None else (before.tasks, before.stateful_tasks)
        if isinstance(task_set, TaskSet) and task_set is not self._task_set:
            tasks, stateful = len(task_set.tasks), tuple(str(task.id) for task in task_set.stateful)
            self._task_set = task_set
        return {"tasks": tasks, "stateful_tasks": stateful}


def _of_streamapp(streamapp: StreamApp, snapshot: Snapshot, policy: ScalingPolicy) -> dict[str, Any]:
    return {
        "generation": snapshot.app.generation,
        "application_id": streamapp.spec.application_id,
        "image": str(streamapp.spec.application_container.get("image", "")),
        "acceptable_recovery_lag": policy.acceptable_recovery_lag,
        "stabilization_seconds": policy.stabilization_window.total_seconds(),
        "timeout_seconds": policy.timeout.total_seconds(),
        "scale_down_policy": policy.scale_down.value,
        "availability": float(streamapp.spec.objective.availability),
        "paused": snapshot.app.paused,
        "dry_run": snapshot.app.dry_run,
    }


def _of_clients(reports: Collection[AgentReport], before: ConfigLine | None) -> dict[str, Any]:
    """What agents tell of the clients in the pods; what none of them tells stays as it was."""
    settings = [report.settings for report in reports]
    found: dict[str, Any] = {
        "application_recovery_lag": _told((one.recovery_lag for one in reports if (one.recovery_lag or 0) >= 0), min),
        "standby_replicas": _told((one.standby_replicas for one in reports), max),
        "heartbeat_seconds": _seconds(_told((one.heartbeat for one in settings), max)),
        "session_timeout_seconds": _seconds(_told((one.session_timeout for one in settings), max)),
        "leaves_on_close": _told((one.leaves_on_close for one in settings), all),
        "is_static": _told((one.is_static for one in settings), any),
        "streams_versions": tuple(sorted({one.kafka_version for one in settings if one.kafka_version})) or None,
    }
    if before is not None:
        found = {name: getattr(before, name) if value is None else value for name, value in found.items()}
    return {name: value for name, value in found.items() if value is not None}


def _told(values: Iterable[T | None], chosen: Callable[[list[T]], T]) -> T | None:
    told = [value for value in values if value is not None]
    return chosen(told) if told else None


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()


def _threads(snapshot: Snapshot) -> int | None:
    latest = snapshot.latest
    if latest is None or not layout.shows_layout(latest) or not isinstance(latest.group, GroupDescription):
        return None
    return len(latest.group.members)
