"""What one judgement looks at: these pods, on the word of this reading; and what a gate answers to it.

Every accessor gives either what was asked for or the refusal to give instead, so that a gate that cannot see something
refuses by itself and needs no other gate before it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from streamapp.core.evidence.agent_views import AgentView
from streamapp.core.evidence.coverage import CopyMap, ReadSince
from streamapp.core.evidence.evidence import Evidence, OfEvidence, ReadingEvidence
from streamapp.core.evidence.membership import MemberPlacement
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.group import GroupDescription, GroupReading, GroupUnreadable, Member, ObservedRebalance
from streamapp.core.facts.ids import TaskId
from streamapp.core.facts.lag import EndOffsets
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.facts.workload import Pod, StatefulSet
from streamapp.core.gates.candidates import RemovalCandidate, RemovalKind
from streamapp.core.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class GateInput(OfEvidence):
    """What one judgement is about: these pods, on the word of this reading."""

    evidence: Evidence
    candidate: RemovalCandidate
    reading: GroupReading
    view: AgentView | None = None
    """What the agents say, if all of them can be relied on; positions and running tasks are then theirs."""

    def group(self) -> GroupDescription | Refusal:
        """The group, if it could be read."""
        group = self.reading.group
        return Refusal(group.reason, group.detail) if isinstance(group, GroupUnreadable) else group

    def placement(self) -> MemberPlacement | Refusal:
        """Which member runs in which pod, if the group could be read."""
        found = self._of_reading()
        return found if isinstance(found, Refusal) else found.placement

    def task_set(self) -> TaskSet | Refusal:
        """The tasks there are, if they are known."""
        task_set = self.snapshot.task_set
        if isinstance(task_set, TopologyUnknown):
            return Refusal(Reason.TopologyUnknown, task_set.reason, needs_rebalance=task_set.may_show_after_a_join)
        return task_set

    def statefulset(self) -> StatefulSet | Refusal:
        """The StatefulSet, if there is one that stays."""
        return self.snapshot.workload.lasting_statefulset or Refusal(Reason.StatefulSetMissing)

    def rebalance(self) -> ObservedRebalance | Refusal:
        """The join that tells the age of the positions, if this process watched it."""
        if self.reading.rebalance is not None:
            return self.reading.rebalance
        group = self.group()
        if isinstance(group, Refusal):
            return group
        if not self.policy.trigger_rebalance:
            return Refusal(Reason.RebalanceTriggerDisabled)
        return Refusal(Reason.PositionsUnknown if group.can_be_rebalanced else Reason.RebalanceTriggerImpossible)

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
        task_set, found = self.task_set(), self._of_reading()
        if isinstance(task_set, Refusal):
            return task_set
        if isinstance(found, Refusal):
            return found
        if self.view is not None:
            return found.copies_by_agents(task_set, self.view)
        rebalance, ends = self.rebalance(), self.ends()
        if isinstance(rebalance, Refusal):
            return rebalance
        if isinstance(ends, Refusal):
            return ends
        return found.copies(task_set, rebalance, ends, self._before(rebalance))

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

    def running(self, believed: frozenset[str]) -> frozenset[TaskId] | Refusal:
        """The tasks that are known to run.

        Args:
            believed: IDs of the members whose own word counts where no agent gives a better one.
        """
        found, task_set = self._of_reading(), self.task_set()
        if isinstance(found, Refusal):
            return found
        if isinstance(task_set, Refusal):
            return task_set
        if self.view is None:
            return found.running(task_set, believed)
        return found.running_by_agents(self.view.reports) & task_set.ids

    def active_holders(self) -> Mapping[TaskId, tuple[Member, ...]] | Refusal:
        """The members that each task is assigned to as active, if the group could be read."""
        found = self._of_reading()
        return found if isinstance(found, Refusal) else found.active_holders

    def _of_reading(self) -> ReadingEvidence | Refusal:
        found, group = self.evidence.of(self.reading), self.group()
        if found is None or isinstance(group, Refusal):
            return group if isinstance(group, Refusal) else Refusal(Reason.GroupUndecodable)
        return found

    def _before(self, rebalance: ObservedRebalance) -> ReadSince | None:
        joins = (reading.rebalance for reading in self.snapshot.readings)
        before = (one for one in joins if one is not None and one.settled_at < rebalance.settled_at)
        for one in before:
            return ReadSince(one.began_at, one.ends) if isinstance(one.ends, EndOffsets) else None
        return None


def input_now(evidence: Evidence, candidate: RemovalCandidate, reading: GroupReading) -> GateInput:
    """The input on the newest words of the agents, if they can be relied on; for what is not judged twice."""
    return GateInput(evidence=evidence, candidate=candidate, reading=reading, view=evidence.agent_view)


def input_of_restart(evidence: Evidence, pod: Pod, reading: GroupReading) -> GateInput:
    """The same for one pod, which comes back with its volume."""
    return input_now(evidence, RemovalCandidate(RemovalKind.RESTART, (pod.ordinal,)), reading)


Gate = Callable[[GateInput], Refusal | None]
