"""What follows from one snapshot: each thing is derived once, however many questions rest on it.

`decide` makes one `Evidence` and hands it on; gates, actions and status ask it instead of the snapshot. It holds no
fact of its own and decides nothing. Readings are immutable, so that all that rests on one reading and on the pods is in
its `ReadingEvidence`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from typing import TypeVar

from streamapp.core.evidence.agent_views import AgentsUnavailable, AgentView, fresh, silence, views
from streamapp.core.evidence.coverage import CopyMap, ReadSince, map_copies, map_copies_by_agents
from streamapp.core.evidence.membership import MemberPlacement, place_members
from streamapp.core.evidence.readings import of_the_last_minute, state_beyond
from streamapp.core.evidence.running_tasks import (
    active_holders,
    assigned_of_late,
    has_unknown_subtopologies,
    running_by_agents,
    running_tasks,
)
from streamapp.core.facts.agent_reports import AgentReport
from streamapp.core.facts.group import GroupDescription, GroupReading, Member, ObservedRebalance
from streamapp.core.facts.hold_record import HoldRecord
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.lag import EndOffsets
from streamapp.core.facts.policy import RolloutPolicy, ScalingPolicy, Timing
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown, settled_tasks
from streamapp.core.facts.workload import Pod, Workload

Derived = TypeVar("Derived")
UNASSIGNED_FOR = timedelta(seconds=45)
"""A task that nobody has is on its way for no longer; then no leader assigns it. Readings are kept for a minute."""


def uncontradicted(snapshot: Snapshot, timing: Timing) -> Snapshot:
    """The facts; which tasks there are is unknown if a member or an agent tells of more state than the topics show.

    Called by the gathering, so that nothing that is reported sees the tasks without their doubt, and by `decide`, which
    rests on nobody's care.
    """
    known = settled_tasks(snapshot.task_set)
    if isinstance(known, TopologyUnknown):
        return snapshot
    groups = (reading.group for reading in snapshot.readings)
    members = (member for group in groups if isinstance(group, GroupDescription) for member in group.members)
    doubt = state_beyond(known, members, fresh(snapshot, timing).values())
    # After a join the members say anew what they have, and the topics are read anew.
    return replace(snapshot, task_set=TopologyUnknown(doubt, may_show_after_a_join=True)) if doubt else snapshot


class ReadingEvidence:
    """What follows from one reading of a group that was described, and from the pods there are."""

    def __init__(self, group: GroupDescription, workload: Workload) -> None:
        self.group = group
        self._workload = workload
        self._running: dict[frozenset[str], frozenset[TaskId]] = {}
        self._copies: CopyMap | None = None
        self._copies_by_agents: dict[int, tuple[AgentView, CopyMap]] = {}
        """By address of the view, which is kept with it."""

    @cached_property
    def placement(self) -> MemberPlacement:
        """Which member runs in which pod."""
        return place_members(self.group, self._workload)

    @cached_property
    def active_holders(self) -> Mapping[TaskId, tuple[Member, ...]]:
        """The members that each task is assigned to as active."""
        return active_holders(self.group)

    def running(self, task_set: TaskSet, believed: frozenset[str]) -> frozenset[TaskId]:
        """The tasks that run, by the word of these members (IDs)."""
        if believed not in self._running:
            self._running[believed] = running_tasks(self.group, self.active_holders, task_set, believed)
        return self._running[believed]

    def running_by_agents(self, reports: Mapping[Ordinal, AgentReport]) -> frozenset[TaskId]:
        """The tasks that run, by the word of the agents."""
        return running_by_agents(self.active_holders, self.placement, reports)

    def copies(
        self, task_set: TaskSet, rebalance: ObservedRebalance, ends: EndOffsets, earlier: ReadSince | None
    ) -> CopyMap:
        """Where copies are, by what members said when they joined."""
        if self._copies is None:
            self._copies = map_copies(task_set, self.placement, self._workload, rebalance, ends, earlier)
        return self._copies

    def copies_by_agents(self, task_set: TaskSet, view: AgentView) -> CopyMap:
        """Where copies are, by what the agents say in one view."""
        if id(view) not in self._copies_by_agents:
            self._copies_by_agents[id(view)] = view, map_copies_by_agents(task_set, self.placement, view)
        return self._copies_by_agents[id(view)][1]


class Evidence:
    """What follows from one snapshot under one policy."""

    def __init__(self, snapshot: Snapshot, policy: ScalingPolicy, *, has_other_topologies: bool = False) -> None:
        self.snapshot = snapshot
        self.policy = policy
        self.has_other_topologies = has_other_topologies
        """Whether these are the facts for restarts while pods have different topologies (`of_restarts`)."""
        self._readings: dict[int, tuple[GroupReading, ReadingEvidence]] = {}
        """By address; the reading is kept with it, so that no other one can have that address."""
        self._derived: dict[object, object] = {}

    def under(self, policy: ScalingPolicy) -> "Evidence":
        """The same facts under another policy."""
        return self if policy == self.policy else Evidence(self.snapshot, policy)

    @cached_property
    def of_restarts(self) -> "Evidence":
        """The facts that restarts are judged by while pods have different templates, and perhaps topologies.

        Sub-topologies that no leader has assigned for a while are left out. Where users want restarts without coverage
        (`Immediate`), they need not say first which topology the group has in between.
        """
        known, latest = self.snapshot.task_set, self.snapshot.latest
        statefulset, pods = self.snapshot.workload.statefulset, self.snapshot.workload.pods
        has_older = any(statefulset and pod.revision != statefulset.update_revision for pod in pods)
        if not has_older or latest is None or self.latest is None:
            return self
        of_late = of_the_last_minute(self.snapshot.readings)
        seen = [found.group for found in map(self.of, of_late) if found is not None]
        is_long = latest.ended_at - of_late[-1].ended_at >= UNASSIGNED_FOR
        task_set = assigned_of_late(known, seen) if is_long else known
        is_immediate = self.policy.rollout is RolloutPolicy.IMMEDIATE
        if is_immediate and isinstance(known, TaskSet) and has_unknown_subtopologies(known, seen):
            task_set = TopologyUnknown("the new template has other sub-topologies, and its policy is Immediate")
        if task_set is known:
            return self
        return Evidence(replace(self.snapshot, task_set=task_set), self.policy, has_other_topologies=True)

    @property
    def hold_record(self) -> HoldRecord | None:
        """The one on the StatefulSet; None if there is none, or it cannot be read."""
        statefulset = self.snapshot.workload.statefulset
        record = None if statefulset is None else statefulset.record
        return record if isinstance(record, HoldRecord) else None

    @cached_property
    def fresh_reports(self) -> Mapping[Ordinal, AgentReport]:
        """The newest report of each pod that runs, if it is young enough."""
        return fresh(self.snapshot, self.policy.timing)

    @cached_property
    def agents_unavailable(self) -> AgentsUnavailable | None:
        """Why not every pod that runs has an agent to rely on."""
        return silence(self.snapshot, self.policy.timing)

    @cached_property
    def agent_views(self) -> tuple[AgentView, ...]:
        """The last two views of all agents; empty if they cannot be relied on, or the application has none."""
        return views(self.snapshot, self.policy.timing) if self.policy.agent else ()

    @property
    def agent_view(self) -> AgentView | None:
        """The newest view of all agents."""
        return self.agent_views[0] if self.agent_views else None

    def of(self, reading: GroupReading) -> ReadingEvidence | None:
        """What follows from one reading; None if the group could not be described."""
        if not isinstance(reading.group, GroupDescription):
            return None
        if id(reading) not in self._readings:
            self._readings[id(reading)] = reading, ReadingEvidence(reading.group, self.snapshot.workload)
        return self._readings[id(reading)][1]

    @property
    def latest(self) -> ReadingEvidence | None:
        """What follows from the newest reading; None if there is none, or its group could not be described."""
        return None if self.snapshot.latest is None else self.of(self.snapshot.latest)

    @cached_property
    def asked_for(self) -> Mapping[Ordinal, Pod]:
        """The pods that a user wants restarted; one that is to get a new volume once its claim is being deleted."""
        new_volume = {request.pod_uid: request.new_volume for request in self.snapshot.app.restarts}
        pods = [pod for pod in self.snapshot.workload.pods if pod.uid in new_volume and not pod.terminating]
        return {pod.ordinal: pod for pod in pods if not new_volume[pod.uid] or pod.ordinal in self.given_up}

    @cached_property
    def given_up(self) -> frozenset[Ordinal]:
        """The pods that a user wants to have a new volume, and whose claim is being deleted, or is gone already."""
        asked = {request.pod_uid for request in self.snapshot.app.restarts if request.new_volume}
        kept = {volume.ordinal for volume in self.snapshot.workload.volumes if not volume.deleting}
        pods = (pod for pod in self.snapshot.workload.pods if pod.uid in asked)
        return frozenset(pod.ordinal for pod in pods if pod.ordinal not in kept)

    def once(self, derive: Callable[["Evidence"], Derived]) -> Derived:
        """What a function of the evidence gives, derived at the first question."""
        if derive not in self._derived:
            self._derived[derive] = derive(self)
        derived: Derived = self._derived[derive]  # type: ignore[assignment]
        return derived


class OfEvidence:
    """What is made from evidence: its facts and its policy are those of the evidence."""

    __slots__ = ()
    evidence: Evidence

    @property
    def snapshot(self) -> Snapshot:
        """The facts."""
        return self.evidence.snapshot

    @property
    def policy(self) -> ScalingPolicy:
        """What the user chose, within the application's own limit."""
        return self.evidence.policy
