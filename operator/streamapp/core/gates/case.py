"""What one judgement looks at: these pods, on the word of this reading; and what a gate answers to it.

Every accessor gives either what was asked for or the refusal to give instead, so that a gate that cannot see something
refuses by itself and needs no other gate before it.
"""

from collections.abc import Callable, Container
from dataclasses import dataclass, field

from streamapp.core.evidence.agent_views import AgentView, views
from streamapp.core.evidence.coverage import CopyMap, ReadSince, map_copies
from streamapp.core.evidence.coverage_by_agents import map_copies_by_agents
from streamapp.core.evidence.membership import MemberPlacement, place_members
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.evidence.running_tasks import running_by_agents, running_tasks
from streamapp.core.facts.group import GroupDescription, GroupReading, ObservedRebalance
from streamapp.core.facts.ids import TaskId
from streamapp.core.facts.lag import EndOffsets
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.facts.workload import StatefulSet
from streamapp.core.gates.candidates import RemovalCandidate
from streamapp.core.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class GateInput:
    """What one judgement is about: these pods, on the word of this reading."""

    snapshot: Snapshot
    policy: ScalingPolicy
    candidate: RemovalCandidate
    reading: GroupReading
    view: AgentView | None = None
    """What the agents say, where all of them are to be gone by; positions and running tasks are then theirs."""
    _attribution: MemberPlacement | Refusal | None = field(default=None, init=False, repr=False, compare=False)
    """Worked out once, however many gates ask; it follows from the fields above."""

    def group(self) -> GroupDescription | Refusal:
        """The group, if it could be read."""
        if isinstance(self.reading.group, GroupDescription):
            return self.reading.group
        return Refusal(self.reading.group.reason, self.reading.group.detail)

    def placement(self) -> MemberPlacement | Refusal:
        """Who belongs where, if the group could be read."""
        known = self._attribution
        if known is None:
            group = self.group()
            known = group if isinstance(group, Refusal) else place_members(group, self.snapshot.workload)
            object.__setattr__(self, "_attribution", known)
        return known

    def task_set(self) -> TaskSet | Refusal:
        """The tasks there are, if they are known."""
        task_set = self.snapshot.task_set
        if isinstance(task_set, TopologyUnknown):
            return Refusal(Reason.TopologyUnknown, task_set.reason, needs_rebalance=task_set.may_show_after_a_join)
        return task_set

    def statefulset(self) -> StatefulSet | Refusal:
        """The StatefulSet, if there is one."""
        return self.snapshot.workload.statefulset or Refusal(Reason.StatefulSetMissing)

    def rebalance(self) -> ObservedRebalance | Refusal:
        """The join that tells the age of the positions, if this process watched it."""
        if self.reading.rebalance is not None:
            return self.reading.rebalance
        group = self.group()
        if isinstance(group, Refusal):
            return group
        if not self.policy.trigger_rebalance:
            return Refusal(Reason.RebalanceTriggerDisabled)
        return Refusal(Reason.PositionsUnknown if group.can_be_nudged else Reason.RebalanceTriggerImpossible)

    def ends(self) -> EndOffsets | Refusal:
        """The ends that were read after the positions were told."""
        if self.view is not None:
            ends = self.view.ends
        else:
            rebalance = self.rebalance()
            if isinstance(rebalance, Refusal):
                return rebalance
            ends = rebalance.ends
        return ends if isinstance(ends, EndOffsets) else Refusal(Reason.EndOffsetsUnread, ends.detail)

    def copies(self) -> CopyMap | Refusal:
        """Where every stateful task has its copies, if all that takes is known."""
        task_set, placement = self.task_set(), self.placement()
        if isinstance(task_set, Refusal):
            return task_set
        if isinstance(placement, Refusal):
            return placement
        if self.view is not None:
            return map_copies_by_agents(task_set, placement, self.view)
        rebalance, ends = self.rebalance(), self.ends()
        if isinstance(rebalance, Refusal):
            return rebalance
        if isinstance(ends, Refusal):
            return ends
        return map_copies(task_set, placement, self.snapshot.workload, rebalance, ends, self._before(rebalance))

    def known(self) -> tuple[GroupDescription, TaskSet, MemberPlacement] | Refusal:
        """The group, the tasks there are, and who belongs where; else why the first of them is not known."""
        group, task_set, placement = self.group(), self.task_set(), self.placement()
        if isinstance(group, Refusal):
            return group
        if isinstance(task_set, Refusal):
            return task_set
        if isinstance(placement, Refusal):
            return placement
        return group, task_set, placement

    def running(self, believed: Container[str]) -> frozenset[TaskId] | Refusal:
        """The tasks that are known to run.

        Args:
            believed: IDs of the members whose own word counts where no agent gives a better one.
        """
        known = self.known()
        if isinstance(known, Refusal):
            return known
        group, task_set, placement = known
        if self.view is None:
            return running_tasks(group, task_set, believed)
        return running_by_agents(group, placement, self.view.reports) & task_set.ids

    def _before(self, rebalance: ObservedRebalance) -> ReadSince | None:
        joins = (reading.rebalance for reading in self.snapshot.readings)
        before = (one for one in joins if one is not None and one.settled_at < rebalance.settled_at)
        for one in before:
            return ReadSince(one.began_at, one.ends) if isinstance(one.ends, EndOffsets) else None
        return None


def case_now(
    snapshot: Snapshot, policy: ScalingPolicy, candidate: RemovalCandidate, reading: GroupReading
) -> GateInput:
    """A case on the newest words of the agents, where they are to be gone by; for what is not judged twice."""
    heard = views(snapshot, policy.timing) if policy.agent else ()
    return GateInput(
        snapshot=snapshot, policy=policy, candidate=candidate, reading=reading, view=heard[0] if heard else None
    )


Gate = Callable[[GateInput], Refusal | None]
