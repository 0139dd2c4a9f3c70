"""What one judgement looks at: these pods, on the word of this reading; and what a gate answers to it.

Every accessor gives either what was asked for or the refusal to give instead, so that a gate that cannot see something
refuses by itself and needs no other gate before it.
"""

from collections.abc import Callable, Container
from dataclasses import dataclass, field

from streamapp.core.evidence.agent_views import AgentView, views
from streamapp.core.evidence.coverage import CopyMap, Since, map_copies
from streamapp.core.evidence.coverage_by_agents import map_copies_by_agents
from streamapp.core.evidence.membership import Attribution, attribute
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.evidence.running_tasks import running_by_agents, running_tasks
from streamapp.core.facts.group import GroupDescription, GroupReading, Join
from streamapp.core.facts.ids import TaskId
from streamapp.core.facts.lag import EndOffsets
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TopologyUnknown, Universe
from streamapp.core.facts.workload import StatefulSet
from streamapp.core.gates.candidates import Departure
from streamapp.core.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What one judgement is about: these pods, on the word of this reading."""

    snapshot: Snapshot
    policy: ScalingPolicy
    departure: Departure
    reading: GroupReading
    view: AgentView | None = None
    """What the agents say, where all of them are to be gone by; positions and running tasks are then theirs."""
    _attribution: Attribution | Refusal | None = field(default=None, init=False, repr=False, compare=False)
    """Worked out once, however many gates ask; it follows from the fields above."""

    def group(self) -> GroupDescription | Refusal:
        """The group, if it could be read."""
        if isinstance(self.reading.group, GroupDescription):
            return self.reading.group
        return Refusal(self.reading.group.reason, self.reading.group.detail)

    def attribution(self) -> Attribution | Refusal:
        """Who belongs where, if the group could be read."""
        known = self._attribution
        if known is None:
            group = self.group()
            known = group if isinstance(group, Refusal) else attribute(group, self.snapshot.workload)
            object.__setattr__(self, "_attribution", known)
        return known

    def universe(self) -> Universe | Refusal:
        """The tasks there are, if they are known."""
        universe = self.snapshot.universe
        if isinstance(universe, TopologyUnknown):
            return Refusal(Reason.TopologyUnknown, universe.reason, needs_a_join=universe.may_show_after_a_join)
        return universe

    def statefulset(self) -> StatefulSet | Refusal:
        """The StatefulSet, if there is one."""
        return self.snapshot.workload.statefulset or Refusal(Reason.StatefulSetMissing)

    def join(self) -> Join | Refusal:
        """The join that tells the age of the positions, if this process watched it."""
        if self.reading.join is not None:
            return self.reading.join
        group = self.group()
        if isinstance(group, Refusal):
            return group
        if not self.policy.nudge:
            return Refusal(Reason.NudgeDisabled)
        return Refusal(Reason.PositionsUnknown if group.can_be_nudged else Reason.NudgeImpossible)

    def ends(self) -> EndOffsets | Refusal:
        """The ends that were read after the positions were told."""
        if self.view is not None:
            ends = self.view.ends
        else:
            join = self.join()
            if isinstance(join, Refusal):
                return join
            ends = join.ends
        return ends if isinstance(ends, EndOffsets) else Refusal(Reason.EndOffsetsUnread, ends.detail)

    def copies(self) -> CopyMap | Refusal:
        """Where every stateful task has its copies, if all that takes is known."""
        universe, attribution = self.universe(), self.attribution()
        if isinstance(universe, Refusal):
            return universe
        if isinstance(attribution, Refusal):
            return attribution
        if self.view is not None:
            return map_copies_by_agents(universe, attribution, self.view)
        join, ends = self.join(), self.ends()
        if isinstance(join, Refusal):
            return join
        if isinstance(ends, Refusal):
            return ends
        return map_copies(universe, attribution, self.snapshot.workload, join, ends, self._before(join))

    def known(self) -> tuple[GroupDescription, Universe, Attribution] | Refusal:
        """The group, the tasks there are, and who belongs where; else why the first of them is not known."""
        group, universe, attribution = self.group(), self.universe(), self.attribution()
        if isinstance(group, Refusal):
            return group
        if isinstance(universe, Refusal):
            return universe
        if isinstance(attribution, Refusal):
            return attribution
        return group, universe, attribution

    def running(self, believed: Container[str]) -> frozenset[TaskId] | Refusal:
        """The tasks that are known to run.

        Args:
            believed: IDs of the members whose own word counts where no agent gives a better one.
        """
        known = self.known()
        if isinstance(known, Refusal):
            return known
        group, universe, attribution = known
        if self.view is None:
            return running_tasks(group, universe, believed)
        return running_by_agents(group, attribution, self.view.reports) & universe.ids

    def _before(self, join: Join) -> Since | None:
        joins = (reading.join for reading in self.snapshot.readings)
        before = (one for one in joins if one is not None and one.settled_at < join.settled_at)
        for one in before:
            return Since(one.began_at, one.ends) if isinstance(one.ends, EndOffsets) else None
        return None


def case_now(snapshot: Snapshot, policy: ScalingPolicy, departure: Departure, reading: GroupReading) -> Case:
    """A case on the newest words of the agents, where they are to be gone by; for what is not judged twice."""
    heard = views(snapshot, policy.timing) if policy.agent else ()
    return Case(
        snapshot=snapshot, policy=policy, departure=departure, reading=reading, view=heard[0] if heard else None
    )


Gate = Callable[[Case], Refusal | None]
