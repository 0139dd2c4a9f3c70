"""Which pods would go next: one ordinal from the top, or the contiguous top run of those that hold nothing.

A StatefulSet always drops its highest ordinals, so "which" is really "how many from the top". Called by `scale_down`
and `rollout`; whether they may go is for the gates to say, which check again what is claimed here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from itertools import takewhile
from typing import Self

from streamapp.core.evidence.capacity.floors import least_replicas
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.learner_source import announced_pods
from streamapp.core.evidence.membership import MemberPlacement
from streamapp.core.facts.agent_reports import AgentReply, AgentReport
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TaskSet
from streamapp.core.facts.workload import Pod, Volume, Workload
from streamapp.core.reasons import Reason

MADE_TOGETHER = timedelta(seconds=1)
"""A StatefulSet makes a claim right before the first pod that uses it; both dates are in whole seconds."""


class RemovalKind(Enum):
    """Which pods go, and how: the value names the kind, and `reason` is that of its approval."""

    reason: Reason

    def __new__(cls, word: str, reason: Reason) -> Self:
        """Take the word for the value."""
        member = object.__new__(cls)
        member._value_ = word
        member.reason = reason
        return member

    ONE = "one", Reason.Covered
    """The top ordinal, for good."""
    IDLE = "idle", Reason.OwnsNothing
    """The top run of pods that hold nothing, for good."""
    DRAINED = "drained", Reason.Drained
    """The top run of pods whose tasks were moved elsewhere before, for good; or the top one, while they move."""
    NEVER_RAN = "never ran", Reason.NeverRan
    """The top run of pods whose container never ran, for good."""
    ALL = "all", Reason.StoppingToZero
    """Every pod, for a migration: none stays that copies could be on, and the volumes stay."""
    RESTART = "restart", Reason.RestartCovered
    """One pod, which comes back with its volume."""
    ANY_ONE = "any one", Reason.EveryTaskCovered
    """Any one pod, which comes back with its volume; nobody knows which one."""


@dataclass(frozen=True, slots=True)
class RemovalCandidate:
    """The pods that would go."""

    kind: RemovalKind
    ordinals: tuple[Ordinal, ...]
    """Highest first."""
    target: int = 0
    """Where a removal ends in the end: ordinals from here on are leaving, now or later."""
    drained_from: int = 0
    """Where pods are drained first: the lowest that is drained now; those between it and the target are later."""
    is_before_rollout: bool = False
    """Whether they go although pods that stay are outdated: the rollout cannot go on while they are there."""

    @property
    def lowest(self) -> Ordinal:
        """The lowest that goes; for a removal, the replicas that would be granted."""
        return min(self.ordinals)

    def stays(self, ordinal: Ordinal) -> bool:
        """Tell whether an ordinal's copies count for those that go."""
        if self.kind is RemovalKind.RESTART:
            return ordinal not in self.ordinals
        return ordinal < self.lowest


def next_removal(evidence: Evidence, granted: int, target: int) -> RemovalCandidate:
    """The next pods to take away on the way from `granted` down to `target`, which is lower."""
    floor = lowest_of_step(evidence, granted, target)
    top_down = [Ordinal(number) for number in range(granted - 1, floor - 1, -1)]
    snapshot = evidence.snapshot
    if evidence.latest is not None:
        placement = evidence.latest.placement
        never_ran = tuple(takewhile(lambda one: is_without_a_past(one, placement, snapshot), top_down))
        if never_ran:
            return RemovalCandidate(RemovalKind.NEVER_RAN, never_ran, target)
        idle = tuple(takewhile(lambda one: _is_idle(one, placement, snapshot), top_down))
        if idle:
            return RemovalCandidate(RemovalKind.IDLE, idle, target)
    return RemovalCandidate(RemovalKind.ONE, (top_down[0],), target)


def next_drained(evidence: Evidence, granted: int, target: int) -> RemovalCandidate:
    """The same where pods are drained first: the top run of those that are, or the top one, which is not yet."""
    lowest = lowest_drained(evidence, granted, target)
    floor = min(granted - 1, max(lowest, lowest_of_step(evidence, granted, target)))
    top_down = [Ordinal(number) for number in range(granted - 1, floor - 1, -1)]
    snapshot = evidence.snapshot
    if evidence.latest is None:
        return RemovalCandidate(RemovalKind.DRAINED, (top_down[0],), target, lowest)
    placement = evidence.latest.placement
    never_ran = tuple(takewhile(lambda one: is_without_a_past(one, placement, snapshot), top_down))
    if never_ran:
        return RemovalCandidate(RemovalKind.NEVER_RAN, never_ran, target)
    reports = {} if snapshot.agents is None else snapshot.agents.words
    drained = tuple(
        takewhile(
            lambda one: is_drained(one, placement, snapshot.workload) and _says_so(reports.get(one, ())), top_down
        )
    )
    return RemovalCandidate(RemovalKind.DRAINED, drained or (top_down[0],), target, lowest)


def every_pod(granted: int) -> RemovalCandidate:
    """All pods together."""
    return RemovalCandidate(RemovalKind.ALL, tuple(Ordinal(number) for number in range(granted - 1, -1, -1)))


def lowest_of_step(evidence: Evidence, granted: int, target: int) -> int:
    """The lowest ordinal that one step can take on the way from `granted` down to `target`."""
    most = evidence.policy.max_step
    floor = max(target, least_replicas(evidence, target))
    return min(granted - 1, floor if most is None else max(floor, granted - most))


def lowest_drained(evidence: Evidence, granted: int, target: int) -> int:
    """The lowest ordinal that is drained now: as many pods from the top as the application's limits allow.

    One pod at least, and every pod that its agents were told of already: no limit calls a drain off. None where even
    one pod would leave too few: a pod that cannot leave is not drained.
    """
    policy, told = evidence.policy, announced_pods(evidence)
    if granted <= least_replicas(evidence, target):
        return granted
    floor, lowest, learners = lowest_of_step(evidence, granted, target), granted, 0
    for number in range(granted - 1, target - 1, -1):
        ordinal = Ordinal(number)
        learners += len(stateful_tasks(evidence, ordinal)) if policy.max_learners is not None else 0
        is_within = number >= floor and (policy.max_learners is None or learners <= policy.max_learners)
        if lowest < granted and not is_within and ordinal not in told:
            break
        lowest = number
    return lowest


def stateful_tasks(evidence: Evidence, ordinal: Ordinal) -> frozenset[TaskId]:
    """The tasks with state that run in a pod, by the brokers; all of its tasks if it is unknown which have state."""
    latest, task_set = evidence.latest, evidence.snapshot.task_set
    members = () if latest is None else latest.placement.members(ordinal)
    given = frozenset[TaskId]().union(*(one.assignment.active for one in members if one.assignment is not None))
    return given & task_set.stateful_ids if isinstance(task_set, TaskSet) else given


def is_drained(ordinal: Ordinal, placement: MemberPlacement, workload: Workload) -> bool:
    """Tell whether the brokers show an ordinal without any task: a pod that runs is in the group and was given none.

    One that does not run holds nothing as soon as nobody in the group can be its.
    """
    pod = workload.pod(ordinal)
    if pod is None or not pod.is_running:
        return not placement.may_be_of(ordinal)
    return holds_nothing(ordinal, placement)


def _says_so(words: Sequence[AgentReply]) -> bool:
    """Only to end the run above a pod that is not drained; what counts is asked again by the gates."""
    return not words or not isinstance(words[0], AgentReport) or words[0].tasks == ()


def is_without_a_past(ordinal: Ordinal, placement: MemberPlacement, snapshot: Snapshot) -> bool:
    """Tell whether an ordinal's container never ran and nobody in the group can be its.

    A volume with a process ID has a past: its state may be the warmest there is, however young the pod. So may a
    volume that is older than its pod: an earlier pod may have run on it while no reading showed its process ID. So may
    a volume that must exist and is not in view.
    """
    pod, volume = snapshot.workload.pod(ordinal), snapshot.workload.volume(ordinal)
    if pod is None or pod.container.ever_ran or placement.may_be_of(ordinal):
        return False
    if volume is None:
        return not snapshot.app.keeps_state
    return volume.process_id is None and _were_made_together(pod, volume)


def _were_made_together(pod: Pod, volume: Volume) -> bool:
    if pod.created_at is None or volume.created_at is None:
        return False
    return pod.created_at - volume.created_at <= MADE_TOGETHER


def holds_nothing(ordinal: Ordinal, placement: MemberPlacement) -> bool:
    """Tell whether an ordinal is in the group, and has no task there, active or standby, stateful or not."""
    members = placement.members(ordinal)
    return bool(members) and not any(_tasks(placement, ordinal))


def _is_idle(ordinal: Ordinal, placement: MemberPlacement, snapshot: Snapshot) -> bool:
    return holds_nothing(ordinal, placement) or is_without_a_past(ordinal, placement, snapshot)


def _tasks(placement: MemberPlacement, ordinal: Ordinal) -> Iterator[object]:
    for member in placement.members(ordinal):
        # A member whose assignment nobody can see may hold anything.
        yield from [member.id] if member.assignment is None else member.assignment.active | member.assignment.standby
