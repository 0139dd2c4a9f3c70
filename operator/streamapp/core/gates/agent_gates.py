"""What is asked of the agents: do they agree with the brokers, have all heard who leaves, and was that gone by?

`agents_agree` guards every judgement that rests on agents; the others guard learners on demand. The announcement is
known from what agents repeat of it and from nothing else, so nobody has to remember what was sent.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from streamapp.core.evidence.learner_source import is_set
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.agent_reports import AgentReport, AnnouncementState, AssignorRun, Rebalance
from streamapp.core.facts.group import Applied, GroupDescription, GroupReading, Member
from streamapp.core.facts.hold_record import Epoch
from streamapp.core.facts.ids import Ordinal, ProcessId, TaskId
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.gates.case import GateInput
from streamapp.core.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class InEffect:
    """The announcement that every agent has."""

    epoch: Epoch
    process_ids: frozenset[ProcessId]
    rebalance: Rebalance | None


def heard_by_all(reports: Collection[AgentReport], now: datetime) -> InEffect | None:
    """The one announcement that all of them have and that has not expired on any; None: there is no such."""
    kinds = {(one.heard.epoch, one.heard.process_ids, one.heard.rebalance) for one in reports if is_set(one, now)}
    if len(kinds) != 1 or not all(is_set(one, now) for one in reports):
        return None
    epoch, process_ids, rebalance = kinds.pop()
    return None if epoch is None else InEffect(epoch=epoch, process_ids=process_ids, rebalance=rebalance)


def last_round(reports: Iterable[AgentReport]) -> AssignorRun | None:
    """The newest assignment that any of these JVMs made, as the group's leader."""
    rounds = [report.round for report in reports if report.round is not None]
    return max(rounds, key=lambda one: one.made_at, default=None)


def agents_agree(case: GateInput) -> Refusal | None:
    """Each agent sees exactly the tasks of its pod that the brokers show, and no copy behind what the brokers knew."""
    placement = case.placement()
    if case.view is None:
        return None
    if isinstance(placement, Refusal):
        return placement
    for ordinal, report in sorted(case.view.reports.items()):
        given = [one.assignment for one in placement.members(ordinal) if one.assignment is not None]
        active = frozenset[TaskId]().union(*(one.active for one in given))
        standby = frozenset[TaskId]().union(*(one.standby for one in given))
        tasks = report.tasks or ()
        odd = active ^ {task.id for task in tasks if task.is_active}
        odd |= standby ^ {task.id for task in tasks if not task.is_active}
        if odd:
            return Refusal(Reason.AgentsDisagree, f"ordinal {ordinal}, task {min(odd)}", needs_rebalance=False)
    return _went_back(case)


def _went_back(case: GateInput) -> Refusal | None:
    """Tell whether a standby is behind a position that its member reported to the brokers earlier (Kafka 4.4).

    The brokers' word is up to a minute old, so it can only be lower. If it is higher, the copy was lost in between, or
    the two sources do not mean the same copy.
    """
    task_set = case.task_set()
    if case.view is None or isinstance(task_set, Refusal):
        return None
    for ordinal, report in sorted(case.view.reports.items()):
        standbys = {task.id: task.positions for task in report.tasks or () if not task.is_active}
        for task, known in sorted(_known_to_brokers(case, ordinal, report.as_of).items()):
            position = _sum(task_set, task, standbys.get(task, {}))
            if position is not None and position < known:
                detail = f"task {task} on ordinal {ordinal}: {position} by its agent, {known} by the brokers before"
                return Refusal(Reason.PositionsDisagree, detail, needs_rebalance=False)
    return None


def _known_to_brokers(case: GateInput, ordinal: Ordinal, before: datetime) -> dict[TaskId, int]:
    """The furthest that members of one pod reported of their standbys, as read while this container ran and before."""
    placement, pod = case.placement(), case.snapshot.workload.pod(ordinal)
    since = None if pod is None else pod.container.known_since
    if isinstance(placement, Refusal) or since is None:
        return {}
    here = {member.id for member in placement.members(ordinal)}
    furthest: dict[TaskId, int] = {}
    for reading in case.snapshot.readings:
        if since <= reading.ended_at <= before:
            for member in _streams_members(reading):
                if member.id in here:
                    furthest |= {task: max(known, furthest.get(task, 0)) for task, known in _of_standbys(member)}
    return furthest


def _streams_members(reading: GroupReading) -> Iterable[Member]:
    """The members, if the brokers assign: in a classic group offsets are of the last join, and are the evidence."""
    group = reading.group
    return group.members if isinstance(group, GroupDescription) and group.streams is not None else ()


def _of_standbys(member: Member) -> Iterable[tuple[TaskId, int]]:
    if member.subscription is None or member.assignment is None or not member.subscription.offsets:
        return
    for task in member.assignment.standby:
        reported = member.subscription.offsets.get(task)
        if isinstance(reported, Applied):
            yield task, reported.offset_sum


def _sum(task_set: TaskSet, task: TaskId, positions: Mapping[str, int]) -> int | None:
    """The sum over the changelogs of the task; None if a position is missing, which coverage asks about."""
    by_changelog = task_set[task].by_changelog(positions) if task in task_set.stateful_ids else None
    return None if by_changelog is None else sum(by_changelog.values())


def announcement_is_heard(case: GateInput) -> Refusal | None:
    """Every agent has the same announcement, and it names every process that goes."""
    if case.view is None:
        return Refusal(Reason.AgentSilent, needs_rebalance=False)
    reports = case.view.reports
    in_effect = heard_by_all(tuple(reports.values()), case.snapshot.now)
    if in_effect is None:
        deaf = [ordinal for ordinal, one in sorted(reports.items()) if not is_set(one, case.snapshot.now)]
        detail = f"ordinal {deaf[0]}" if deaf else "they have heard different ones"
        return Refusal(Reason.AnnouncementPending, detail, needs_rebalance=False)
    for ordinal in case.candidate.ordinals:
        report = reports.get(ordinal)
        if report is not None and report.process_id not in in_effect.process_ids:
            return Refusal(Reason.AnnouncementPending, f"ordinal {ordinal} is not named yet", needs_rebalance=False)
    return None


def announcement_is_followed(case: GateInput) -> Refusal | None:
    """The last assignment rests on that announcement."""
    reports = () if case.view is None else tuple(case.view.reports.values())
    in_effect, made = heard_by_all(reports, case.snapshot.now), last_round(reports)
    if in_effect is None:
        return announcement_is_heard(case) or Refusal(Reason.AnnouncementPending, needs_rebalance=False)
    if made is None or made.state is not AnnouncementState.SET or made.epoch != in_effect.epoch:
        return Refusal(Reason.AnnouncementNotFollowed)
    if made.fell_back:
        return Refusal(Reason.AnnouncementNotFollowed, f"The assignor kept to the owners before: {made.fell_back}")
    return None


def only_watches(case: GateInput) -> bool:
    """Tell whether a follow-up that is scheduled moves nothing: by it the leader only looks who still leaves."""
    reports = () if case.view is None else tuple(case.view.reports.values())
    made, in_effect = last_round(reports), heard_by_all(reports, case.snapshot.now)
    if made is None or in_effect is None or not all(report.is_ours for report in reports):
        return False
    return made.follow_up_is_watch and made.epoch == in_effect.epoch and not made.fell_back


def holds_no_task(case: GateInput, ordinal: Ordinal) -> bool:
    """Tell whether the agent of a pod, if it has to have one, sees no task there, active or standby."""
    pod = case.snapshot.workload.pod(ordinal)
    report = None if case.view is None else case.view.reports.get(ordinal)
    if report is None:
        return pod is None or not pod.is_running
    return report.tasks == ()
