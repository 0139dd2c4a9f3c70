"""Counts the downtime of tasks against the objective of each application: in metrics, and by month for the status.

Called by `reconciler` in each pass with what the record gets. It decides nothing, and a fault in it ends no pass. The
sums of a month go on from the status, so that they survive a change of the leader.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, timedelta

import structlog

from streamapp.api.objective import budget_seconds
from streamapp.api.v1alpha1.status import CauseStatus, DowntimeStatus
from streamapp.api.validation.parse import InvalidStreamApp, StreamApp
from streamapp.controller.metrics import Metrics
from streamapp.core.facts.tasks import TaskSet
from streamapp.flightrecord.changes import Look
from streamapp.flightrecord.outages import Cause, Outage, OutageLog
from streamapp.kube.client.kinds import Key

log = structlog.get_logger()

_NO_TIME = timedelta(0)
MOST_TASK_NAME = 32


@dataclass(slots=True)
class _Account:
    """One application."""

    uid: str
    """Of the StreamApp; another UID under the same name is another application."""
    log: OutageLog
    month: DowntimeStatus | None
    """As the status shows it; None until the first downtime."""


class DowntimeLedger:
    """Of one process."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._accounts: dict[Key, _Account] = {}
        self._has_failed = False

    def note(self, key: Key, look: Look) -> DowntimeStatus | None:
        """Count what this pass adds; give the sums of the month for the status."""
        account = self._account(key, look.streamapp)
        try:
            self._count(key, account, look)
        except Exception:
            # The next pass begins anew: what is counted serves people, and must stop nothing.
            account.log = OutageLog(follows=True)
            if not self._has_failed:
                self._has_failed = True
                log.exception("downtime not counted", app=str(key))
        return account.month

    def forget(self, key: Key) -> None:
        """Drop what is known of an application that is gone; `Metrics.forget` removes its series."""
        self._accounts.pop(key, None)

    def _account(self, key: Key, streamapp: StreamApp | InvalidStreamApp) -> _Account:
        found = self._accounts.get(key)
        if found is None or found.uid != streamapp.metadata.uid:
            status = streamapp.status
            outages = OutageLog(follows=status.observed_generation is not None)
            found = _Account(streamapp.metadata.uid, outages, status.downtime)
            self._accounts[key] = found
            self._begin(key)
        return found

    def _begin(self, key: Key) -> None:
        """Prometheus sees no rise where a series begins: each begins at 0."""
        labels = (key.namespace, key.name)
        for cause in Cause:
            self._metrics.downtime.labels(*labels, cause.value)
        for metric in (self._metrics.task_seconds, self._metrics.downtime_seen, self._metrics.long_downtimes):
            metric.labels(*labels)

    def _count(self, key: Key, account: _Account, look: Look) -> None:
        metrics, labels = self._metrics, (key.namespace, key.name)
        looked = account.log.look(look)
        metrics.task_seconds.labels(*labels).inc(looked.task_seconds)
        if not isinstance(look.streamapp, StreamApp):
            return
        objective = look.streamapp.spec.objective
        metrics.downtime_budget.labels(*labels).set(objective.budget)
        for outage in looked.outages:
            metrics.downtime.labels(*labels, outage.cause.value).inc(outage.at_most.total_seconds())
            metrics.downtime_seen.labels(*labels).inc(outage.at_least.total_seconds())
            if objective.longest_downtime is not None and outage.at_most > objective.longest_downtime:
                metrics.long_downtimes.labels(*labels).inc()
        task_set = look.snapshot.task_set
        tasks = len(task_set.tasks) if isinstance(task_set, TaskSet) else None
        account.month = with_outages(account.month, looked.outages, tasks, objective.availability)


def with_outages(
    month: DowntimeStatus | None, outages: Iterable[Outage], tasks: int | None, availability: str
) -> DowntimeStatus | None:
    """Add outages to the sums of their month; those of an older month than the one at hand are not told any more.

    Args:
        month: The sums so far.
        outages: New ones.
        tasks: How many tasks the application has; None if they are unknown.
        availability: Of the objective, a percentage.
    """
    for outage in sorted(outages, key=lambda one: one.ended):
        name = outage.ended.astimezone(UTC).strftime("%Y-%m")
        if month is None or name > month.month:
            month = _empty(name, outage)
        if name == month.month:
            month = _with(month, outage)
            month = month.model_copy(update={"budget_used": _used(month, tasks, availability)})
    return month


def _empty(name: str, outage: Outage) -> DowntimeStatus:
    return DowntimeStatus(
        month=name,
        count=0,
        at_least=_NO_TIME,
        at_most=_NO_TIME,
        longest=_NO_TIME,
        longest_task=outage.task[:MOST_TASK_NAME],
    )


def _with(month: DowntimeStatus, outage: Outage) -> DowntimeStatus:
    causes = {one.cause: one.at_most for one in month.by_cause}
    causes[outage.cause.value] = causes.get(outage.cause.value, _NO_TIME) + outage.at_most
    ordered = sorted(causes.items(), key=lambda one: (-one[1], one[0]))
    changes = {
        "count": month.count + 1,
        "at_least": month.at_least + outage.at_least,
        "at_most": month.at_most + outage.at_most,
        "by_cause": tuple(CauseStatus(cause=cause, at_most=at_most) for cause, at_most in ordered),
    }
    if outage.at_most > month.longest:
        changes |= {"longest": outage.at_most, "longest_task": outage.task[:MOST_TASK_NAME]}
    return month.model_copy(update=changes)


def _used(month: DowntimeStatus, tasks: int | None, availability: str) -> str | None:
    """The used part of the month's budget, as a percentage; None where the tasks are unknown."""
    if not tasks:
        return None
    used = month.at_most.total_seconds() / budget_seconds(availability, tasks, month.month)
    return f"{100 * used:.1f}%"
