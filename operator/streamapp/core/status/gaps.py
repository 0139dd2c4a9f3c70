"""The gap of a step, as far as it can be seen from outside: how long no member had a task running.

Between two looks nobody saw anything, so a gap is a range: at least what was seen, at most what the looks leave open.
Called by the controller with what it saw from before a step until it was closed.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from streamapp.core.facts.agent_reports import AgentReport, TaskState
from streamapp.core.facts.ids import Ordinal, TaskId


@dataclass(frozen=True, slots=True)
class RunningSeen:
    """Where each task was seen running at one time; a task that is in neither place ran nowhere."""

    at: datetime
    by_task: Mapping[TaskId, Ordinal]
    unproven: frozenset[TaskId] = frozenset()
    """Tasks that a member which lives was given, but that it has not yet said to run: it tells so one join later.

    Of agents: tasks that a running pod may run whose agent was not heard.
    """
    until: datetime | None = None
    """When the last of the agents looked that were asked for it, of which `at` is the first; None: `at`."""

    @property
    def size(self) -> int:
        """How many tasks it holds, to bound what is kept."""
        return len(self.by_task) + len(self.unproven)

    def shows_as(self, other: "RunningSeen") -> bool:
        """Tell whether another look shows the same tasks in the same places."""
        return self.by_task == other.by_task and self.unproven == other.unproven


@dataclass(frozen=True, slots=True)
class Gap:
    """The longest time without a task, as a range."""

    at_least: timedelta
    at_most: timedelta

    @property
    def error(self) -> timedelta:
        """The width of the range."""
        return self.at_most - self.at_least


@dataclass(frozen=True, slots=True)
class GapUnknown:
    """A task ran at no look before or after, so that its gap has no end that was seen."""

    task: TaskId


def worst_gap(looks: Sequence[RunningSeen], tasks: Collection[TaskId]) -> Gap | GapUnknown:
    """The gap of the task that was away longest.

    Args:
        looks: In any order; the first must be from before the step, the last from after it.
        tasks: The task universe.
    """
    ordered = sorted(looks, key=lambda look: look.at)
    worst = Gap(timedelta(0), timedelta(0))
    for task in sorted(tasks):
        gap = _gap(ordered, task)
        if isinstance(gap, GapUnknown):
            return gap
        worst = max(worst, gap, key=lambda one: (one.at_most, one.at_least))
    return worst


def seen_by_agents(
    reports: Mapping[Ordinal, AgentReport], tasks: frozenset[TaskId], *, is_complete: bool
) -> RunningSeen:
    """Where agents see tasks run; brokers do not show it in a group of the streams protocol.

    Args:
        reports: A fresh report of each pod that has one; at least one.
        tasks: The task universe.
        is_complete: Every pod that runs is among them.
    """
    by_task = {
        task.id: ordinal
        for ordinal, report in reports.items()
        for task in report.tasks or ()
        if task.is_active and task.state is TaskState.RUNNING
    }
    looked = [report.as_of for report in reports.values()]
    is_told = is_complete and all(report.tasks is not None for report in reports.values())
    unproven = frozenset[TaskId]() if is_told else tasks - by_task.keys()
    return RunningSeen(min(looked), by_task, unproven, max(looked))


def _gap(looks: Sequence[RunningSeen], task: TaskId) -> Gap | GapUnknown:
    worst = Gap(timedelta(0), timedelta(0))
    last_running: RunningSeen | None = None
    between: list[RunningSeen] = []
    for look in looks:
        if task not in look.by_task:
            between.append(look)
            continue
        if last_running is None:
            if between:
                return GapUnknown(task)
        elif between or look.by_task[task] != last_running.by_task[task]:
            gap = Gap(_seen_away(between, task), (look.until or look.at) - last_running.at)
            worst = max(worst, gap, key=lambda one: (one.at_most, one.at_least))
        last_running, between = look, []
    return GapUnknown(task) if between or last_running is None else worst


def _seen_away(looks: Sequence[RunningSeen], task: TaskId) -> timedelta:
    """The longest time in which every look showed that the task ran nowhere; where it may have run, nothing counts."""
    longest, since = timedelta(0), None
    for look in looks:
        if task in look.unproven:
            since = None
            continue
        since = look.at if since is None else since
        longest = max(longest, look.at - since)
    return longest
