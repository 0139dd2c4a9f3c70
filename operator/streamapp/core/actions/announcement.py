"""Which processes leave, as the agents are told: level-triggered, from what they say they have heard.

Nothing is remembered of what was sent. An epoch that every agent has with the wanted content is renewed; any other
content needs a higher one, told to all. A running pod whose agent does not report is told whenever another is: an agent
takes an announcement also while its report is slow, and the leader of the group may be among them. Whoever leaves
stays named until its pod is gone, and never is everybody named.
Called by `plan`; agents let an announcement expire, so that one of an operator that died is forgotten by itself.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from streamapp.core.actions.decision import Announce
from streamapp.core.evidence.agent_views import has_lost_one
from streamapp.core.evidence.capacity.container_memory import MemoryNeed, declared_need
from streamapp.core.evidence.capacity.disk_space import RoomUnknown, room_for_learners
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.learner_source import (
    announced_pods,
    is_another_assignor_at_work,
    is_on_demand,
    is_set,
    limit_in_doubt,
)
from streamapp.core.facts.agent_reports import MOST_LEAVING, AgentReport, AnnouncementState
from streamapp.core.facts.hold_record import NO_EPOCH, Epoch
from streamapp.core.facts.ids import Ordinal, ProcessId
from streamapp.core.facts.policy import LearnerSource, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.gates.drain_gates import pods_without_copies
from streamapp.core.reasons import Reason

SLACK = timedelta(seconds=1)
"""A pass that is to renew comes so much after half of the time is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """Whom the decision wants to be drained."""

    from_ordinal: int | None = None
    """Every pod from this one on."""
    restart: Ordinal | None = None
    """The one that is to restart next: while it waits nobody else is named, since it may need their room.

    Others are if a user asks for it, and there is no room for its tasks.
    """


def announcement(evidence: Evidence, leaving: Leaving) -> Announce | None:
    """What is to be told now, to whom; None: everybody has heard it, for long enough."""
    snapshot, policy = evidence.snapshot, evidence.policy
    agents = evidence.fresh_reports if policy.agent else {}
    if not agents:
        return None
    wanted = named(evidence, leaving)
    highest = max((one.heard.epoch for one in agents.values() if one.heard.epoch is not None), default=None)
    behind = _behind(agents, wanted, highest, evidence)
    if not behind:
        return None
    is_news = highest is None or not _is_told(agents.values(), wanted, highest, evidence)
    epoch = _next(highest or NO_EPOCH, snapshot) if is_news or highest is None else highest
    has_heard = any(_has(one, wanted, snapshot.now, policy) for one in behind.values())
    silent = {pod.ordinal for pod in snapshot.workload.pods if pod.is_running} - agents.keys()
    return Announce(
        to=tuple(sorted({*(agents if is_news else behind), *silent})),
        process_ids=tuple(sorted(wanted)),
        epoch=epoch,
        rebalance=policy.rebalance,
        ttl=_lifetime(wanted, evidence),
        reason=_why(wanted, is_renewal=not is_news and has_heard),
    )


def named(evidence: Evidence, leaving: Leaving) -> frozenset[ProcessId]:
    """The processes that are to be named; nobody where learners cannot come on demand, or nobody would stay."""
    snapshot = evidence.snapshot
    processes = _processes(evidence)
    statefulset = snapshot.workload.statefulset
    granted = 0 if statefulset is None else statefulset.replicas
    told = frozenset[ProcessId]().union(*(one.heard.process_ids for one in evidence.fresh_reports.values()))
    gone_soon = {
        pod.ordinal
        for pod in snapshot.workload.pods
        if pod.ordinal >= granted or (pod.terminating and processes.get(pod.ordinal) in told)
    }
    ordinals = gone_soon | _within_the_budget(evidence, drained_now(evidence, leaving))
    # The highest first, which leave first; the others are named when these are gone.
    known = [process for ordinal in sorted(ordinals, reverse=True) if (process := processes.get(ordinal)) is not None]
    found = frozenset(known[:MOST_LEAVING])
    stay = {processes.get(pod.ordinal) for pod in snapshot.workload.pods if pod.is_running} - {None}
    return found if stay - found else frozenset()


def wanted_to_leave(evidence: Evidence, leaving: Leaving) -> frozenset[Ordinal]:
    """The pods that the decision wants to be drained, whether or not learners can come for them."""
    return frozenset(_to_be_drained(evidence, leaving, _processes(evidence)))


def drained_now(evidence: Evidence, leaving: Leaving) -> frozenset[Ordinal]:
    """Those for which learners can come, if the cluster's budget allows it."""
    drained = wanted_to_leave(evidence, leaving) if _can_drain(evidence) else frozenset[Ordinal]()
    return drained if _has_room(evidence, drained) else frozenset()


def _within_the_budget(evidence: Evidence, drained: frozenset[Ordinal]) -> frozenset[Ordinal]:
    """Without a place only the pods that agents know already, and others from the top that need no learners."""
    if evidence.snapshot.place.is_free:
        return drained
    known = announced_pods(evidence)
    highest = max(pods_without_copies(evidence, drained) - known, default=-1)
    return frozenset(ordinal for ordinal in drained if ordinal > highest or ordinal in known)


def soonest(evidence: Evidence) -> timedelta | None:
    """When the next announcement is due at the latest; None where none is in effect."""
    snapshot, policy = evidence.snapshot, evidence.policy
    if not policy.agent:
        return None
    left = [
        max(
            timedelta(0),
            one.as_of + one.heard.expires_in - _lifetime(one.heard.process_ids, evidence) / 2 - snapshot.now,
        )
        for one in evidence.fresh_reports.values()
        if is_set(one, snapshot.now) and one.heard.expires_in is not None
    ]
    return min(left) + SLACK if left else None


def _can_drain(evidence: Evidence) -> bool:
    """Begun only where our assignor is at work everywhere; an agent that falls silent does not call it off at once.

    It does when it has forgotten the announcement itself: to go on would keep follow-ups scheduled for ever, and with
    them every other rule from ending the hold, an override by the user among them.
    """
    snapshot, policy = evidence.snapshot, evidence.policy
    if is_on_demand(evidence):
        return True
    if policy.source in {LearnerSource.STANDBYS, LearnerSource.NONE} or is_another_assignor_at_work(evidence):
        return False
    has_begun = any(is_set(one, snapshot.now) for one in evidence.fresh_reports.values())
    return has_begun and not has_lost_one(snapshot, policy.timing) and limit_in_doubt(evidence) is None


def _has_room(evidence: Evidence, drained: Collection[Ordinal]) -> bool:
    """A drain that has begun goes on while an agent is silent: what its pod has cannot be seen then."""
    if evidence.agents_unavailable is not None and announced_pods(evidence).issuperset(drained):
        return True
    room = room_for_learners(evidence.fresh_reports, drained, evidence.snapshot.task_set)
    return (isinstance(room, RoomUnknown) or room.is_enough) and _has_memory(evidence, drained)


def _has_memory(evidence: Evidence, drained: Collection[Ordinal]) -> bool:
    """A drain that has begun goes on: while copies are made, what they take is counted twice for a while."""
    if announced_pods(evidence).issuperset(drained):
        return True
    need = declared_need(evidence, drained)
    return need is None or (isinstance(need, MemoryNeed) and need.is_enough)


def _to_be_drained(evidence: Evidence, leaving: Leaving, processes: Mapping[Ordinal, ProcessId]) -> set[Ordinal]:
    """A restart that a user asks for keeps no other pod from leaving, if there is no room for its tasks."""
    if leaving.restart is not None:
        can_wait = leaving.from_ordinal is not None and leaving.restart in evidence.asked_for
        if not can_wait or _has_room(evidence, {leaving.restart}):
            return {leaving.restart}
    if leaving.from_ordinal is None:
        return set()
    lowest = max(leaving.from_ordinal, 1)
    return {ordinal for ordinal in processes if ordinal >= lowest}


def _processes(evidence: Evidence) -> Mapping[Ordinal, ProcessId]:
    """The process of each pod that exists or is granted: as its agent says, its members, or its volume."""
    workload, latest = evidence.snapshot.workload, evidence.latest
    granted = 0 if workload.statefulset is None else workload.statefulset.replicas
    wanted = {pod.ordinal for pod in workload.pods} | {Ordinal(number) for number in range(granted)}
    found: dict[Ordinal, ProcessId] = {
        volume.ordinal: volume.process_id for volume in workload.volumes if volume.process_id is not None
    }
    if latest is not None:
        for ordinal, members in latest.placement.by_ordinal.items():
            shown = next((one.process_id for one in members if one.process_id is not None), None)
            if shown is not None:
                found[ordinal] = shown
    for ordinal, report in evidence.fresh_reports.items():
        if report.process_id is not None:
            found[ordinal] = report.process_id
    return {ordinal: process for ordinal, process in found.items() if ordinal in wanted}


def _behind(
    agents: Mapping[Ordinal, AgentReport],
    wanted: frozenset[ProcessId],
    highest: Epoch | None,
    evidence: Evidence,
) -> Mapping[Ordinal, AgentReport]:
    """Who has not heard it, not under the newest epoch, or not for long enough. That nobody leaves never expires."""
    snapshot, policy = evidence.snapshot, evidence.policy
    found = {}
    for ordinal, one in agents.items():
        has_it = _has(one, wanted, snapshot.now, policy)
        if has_it and wanted:
            left = one.as_of + (one.heard.expires_in or timedelta(0)) - snapshot.now
            has_it = one.heard.epoch == highest and left >= _lifetime(wanted, evidence) / 2
        if not has_it:
            found[ordinal] = one
    return found


def _lifetime(leaving: Collection[ProcessId], evidence: Evidence) -> timedelta:
    """How long it holds: longer where all who leave report that they hold no active task.

    An operator that is away for a while would find their directories ready, and the assignor all tasks back on them.
    """
    timing = evidence.policy.timing
    by_process = {one.process_id: one for one in evidence.fresh_reports.values()}
    are_empty = all(_is_empty(by_process.get(process)) for process in leaving)
    return timing.announcement_of_empty if leaving and are_empty else timing.announcement


def _is_empty(report: AgentReport | None) -> bool:
    return report is not None and report.tasks is not None and not any(task.is_active for task in report.tasks)


def _has(report: AgentReport, wanted: frozenset[ProcessId], now: datetime, policy: ScalingPolicy) -> bool:
    heard = report.heard
    if not wanted:
        return heard.state is AnnouncementState.EMPTY
    return is_set(report, now) and heard.process_ids == wanted and heard.rebalance is policy.rebalance


def _is_told(
    agents: Iterable[AgentReport],
    wanted: frozenset[ProcessId],
    highest: Epoch,
    evidence: Evidence,
) -> bool:
    """Tell whether the newest epoch stands for what is wanted: everybody who has it has it with this content."""
    snapshot, policy = evidence.snapshot, evidence.policy
    own = [one for one in agents if one.heard.epoch == highest]
    return all(_has(one, wanted, snapshot.now, policy) for one in own)


def _next(highest: Epoch, snapshot: Snapshot) -> Epoch:
    """Higher than any that was heard."""
    return highest.next(snapshot.lease, snapshot.now)


def _why(wanted: frozenset[ProcessId], *, is_renewal: bool) -> Reason:
    if not wanted:
        return Reason.AnnouncementWithdrawn
    return Reason.AnnouncementRenewed if is_renewal else Reason.LearnersWanted
