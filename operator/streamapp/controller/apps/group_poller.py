"""Watches the consumer group of one application: polls it, follows its rebalances, and keeps both in `Memory`.

One task per application, beside the passes: a broker that swallows packets costs its own application its deadlines, and
growing it not even those. Decides nothing; asks the queue for a pass when something looks different, or always while
a decision waits for the next look.

The pace follows what is waited for. In a hold or a step each look is at the pace of its settings. At rest the group of
an application that converges is looked at ever more rarely while it shows nothing new.

If two consecutive polls show different subscriptions, the members joined between them. The join began no earlier than
the earlier poll, or than a rebalance trigger since, and ended no later than the later poll. The ends of the changelogs
are read right after that; their tails are read too, if a copy seems to have stopped before the end.

That holds for one coordinator. One that has taken over can show a join as the newest although a later one was made, and
the later one long after it was made (`readings`). So no join counts that it shows first, nor the next one.
"""

import asyncio
import random
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import structlog

from streamapp.controller.apps.memory import Memory
from streamapp.controller.leader.clock import offset_of
from streamapp.controller.ports import ApplicationGroup, KafkaStepError, Poll
from streamapp.core.actions import rebalance_trigger
from streamapp.core.evidence import changelog_tails, readings, sharing
from streamapp.core.evidence.membership import members_of_running_pods, place_members
from streamapp.core.evidence.running_tasks import active_holders, running_tasks
from streamapp.core.facts.agent_reports import AgentReport
from streamapp.core.facts.group import GroupDescription, GroupReading, GroupState, GroupUnreadable, ObservedRebalance
from streamapp.core.facts.lag import EndOffsets, EndsUnreadable
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown, settled_tasks
from streamapp.core.facts.topic_configs import ConfigUnread
from streamapp.core.reasons import Reason
from streamapp.core.status.gaps import RunningSeen

log = structlog.get_logger()

TOPOLOGY_RETRY_AFTER = timedelta(seconds=10)
"""A topology that is not known is asked for no more often; it makes the broker list every topic."""
TRIGGER_EXPIRES_AFTER = timedelta(seconds=30)
"""A trigger had no effect if no member joins within this time."""
CONFIGS_MAX_AGE = timedelta(hours=1)
"""Settings of topics change rarely, and nothing waits for them."""
MADE_ANEW_AFTER = timedelta(minutes=10)
"""A streams group that is made anew counts its epochs from the beginning, and its clients keep the IDs of its members.
A lower epoch is taken for that if it lasts. Agents must agree with what it shows before a pod goes."""
JOINS_KEPT = 4
DOUBTFUL_JOINS = 2
"""Of a new coordinator: the join that it shows first can be an older one, and the next can have been made before it
took over. A third was made since: members learn of a join only when its record is committed."""
QUICK_LOOKS = 10
"""So often the group is looked at quickly after something has changed, where no decision waits for it."""
CONFIGS_RETRY_AFTER = timedelta(minutes=10)
"""Where one of them could not be read."""


@dataclass(frozen=True, slots=True)
class PollIntervals:
    """Seconds between two polls."""

    idle: float
    busy: float
    rebalance: float


@dataclass(slots=True)
class _MemberJoins:
    """What the joins of the next look are compared with."""

    began_at: datetime
    joins: Mapping[str, Hashable] = field(default_factory=dict)
    is_known: bool = True
    """False during a rebalance: the next join can have begun before this poll."""


@dataclass(frozen=True, slots=True)
class _Trigger:
    """A rebalance that was triggered."""

    asked_at: datetime
    """Before anything was sent: no member joined for it earlier."""
    confirmed_at: datetime
    """When the brokers had confirmed it: a look that begins later shows no join before it."""


@dataclass(frozen=True, slots=True)
class _SeenTasks:
    """Tasks as the topics showed them, and the application that they were of."""

    task_set: TaskSet
    topology: str
    """The text that agents had reported."""
    members: frozenset[str]


class GroupPoller:
    """Polls one group for as long as `run` runs."""

    def __init__(
        self,
        group: ApplicationGroup,
        memory: Memory,
        pace: PollIntervals,
        request_pass: Callable[[], None],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.group = group
        self._memory = memory
        self._pace = pace
        self._request_pass = request_pass
        self._now = now
        self._before: _MemberJoins | None = None
        self._rebalance: ObservedRebalance | None = None
        self._before_empty: _MemberJoins | None = None
        """The last look that showed members: the group may never have been empty since."""
        self._rebalances: dict[int, ObservedRebalance | None] = {}
        """Of the last joins, by a digest of what they showed: a join that is shown again is no new one."""
        self._newest: GroupDescription | None = None
        """The newest state of the group that was seen."""
        self._outdated_since: datetime | None = None
        self._coordinator: Hashable | None = None
        self._doubtful_joins = 0
        """So many more joins prove nothing."""
        self._trigger: _Trigger | None = None
        self._epoch: int | None = None
        """Of the streams group when its tasks were last read."""
        self._seen_tasks: _SeenTasks | None = None
        """The last that were taken for true."""
        self._topology_read_at = datetime.min.replace(tzinfo=UTC)
        self._configs_read_at = self._topology_read_at
        self._is_busy = True
        self._decides = True
        self._unchanged = 0
        self._woken = asyncio.Event()

    @property
    def is_busy(self) -> bool:
        """Whether something is under way that is looked at often."""
        return self._is_busy

    @property
    def is_awaited(self) -> bool:
        """Whether something is under way, or a decision waits for each look."""
        return self._is_busy or self._decides

    def set_poll_rate(self, *, is_busy: bool, decides: bool | None = None) -> None:
        """Poll quickly while something is under way, slowly else.

        Args:
            is_busy: Whether something is under way that is looked at often.
            decides: Whether a decision waits for each look, changed or not; as `is_busy` where it is left out.
        """
        decides = is_busy if decides is None else decides
        if (is_busy and not self._is_busy) or (decides and not self._decides):
            self._unchanged = 0
            self._woken.set()
        self._is_busy, self._decides = is_busy, decides

    def look_soon(self) -> None:
        """Look more often for a while: something has happened that a rebalance can follow."""
        if self._interval() > self._pace.busy:
            self._woken.set()
        self._unchanged = 0

    async def trigger_rebalance(self, like_member: str) -> None:
        """Trigger a rebalance with a probe member that copies this member; KafkaStepError if it failed."""
        asked_at = self._now()
        try:
            await self.group.trigger_rebalance(like_member)
        except KafkaStepError as error:
            self._memory.rebalances = rebalance_trigger.failed(self._memory.rebalances, self._now(), str(error))
            raise
        self._trigger = _Trigger(asked_at, self._now())
        self._memory.rebalances = rebalance_trigger.sent(self._memory.rebalances, self._trigger.confirmed_at)
        self._woken.set()

    async def run(self) -> None:
        """Poll until cancelled, even after errors: only this task polls the group."""
        while True:
            try:
                await self.poll()
            except Exception as error:
                log.exception("poll failed")
                self._record_failure(f"{type(error).__name__}: {error}")
            await self._pause(self._interval())

    async def poll(self) -> None:
        """Look once and remember what was seen."""
        began_at = self._now()
        poll = await self.group.describe()
        ended_at = self._now()
        self._follow_coordinator(poll.coordinator)
        poll = await self._with_unused_standbys(self._unless_outdated(poll, ended_at))
        before = self._memory.readings[0] if self._memory.readings else None
        await self._follow(poll, began_at, ended_at)
        is_stable = isinstance(poll.group, GroupDescription) and poll.group.state is GroupState.STABLE
        rebalance = self._rebalance if is_stable else None
        group = sharing.shared_group(poll.group, self._memory.readings)
        ahead = offset_of(self._now)
        reading = GroupReading(
            ended_at=ended_at,
            group=group,
            rebalance=rebalance,
            asked_at=began_at,
            latest_at=ended_at + ahead if ahead > timedelta(0) else None,
        )
        if isinstance(group, GroupDescription):
            self._memory.group_read_at = ended_at
            self._memory.streams_support = poll.support
        self._memory.rebalances = rebalance_trigger.seen(self._memory.rebalances, self._memory.readings, reading)
        self._memory.readings = readings.remember(self._memory.readings, reading)
        self._record_running(reading)
        is_news = before is None or (before.group, before.rebalance) != (reading.group, reading.rebalance)
        self._unchanged = 0 if is_news else self._unchanged + 1
        if is_news or self._decides:
            self._request_pass()
        if is_stable and self._are_configs_due():
            await self._read_configs()

    async def _with_unused_standbys(self, poll: Poll) -> Poll:
        """Read the setting of a classic group, too, while the operator must put it back.

        The group had the other protocol when it was raised, and can change back.
        """
        group = poll.group
        if self._memory.raised_standbys is None or not isinstance(group, GroupDescription):
            return poll
        if group.streams is not None or not group.members:
            return poll
        return replace(poll, group=replace(group, unused_standbys=await self.group.standbys()))

    def _unless_outdated(self, poll: Poll, now: datetime) -> Poll:
        """Give the poll; where it shows an older state of the group than an earlier poll, that the group is unknown."""
        group = poll.group
        if not isinstance(group, GroupDescription):
            return poll
        older = "" if self._newest is None else readings.step_back(self._newest, group)
        if older:
            since = self._outdated_since = self._outdated_since or now
            if group.streams is None or now - since < MADE_ANEW_AFTER:
                return Poll(GroupUnreadable(Reason.GroupOutdated, older))
        self._outdated_since = None
        if group.streams is not None or (group.members and group.is_decoded):
            self._newest = group
        elif self._newest is not None and self._newest.streams is not None:
            self._newest = None  # as with `_epoch`
        return poll

    def _follow_coordinator(self, coordinator: Hashable | None) -> None:
        """Where another broker coordinates the group than before, forget what was known of its joins.

        One that goes away and comes back between two looks is not noticed, and need not be. What it knew before it went
        it still knows, so it can only hide joins that another broker saw between these two looks. A join changes who
        holds what only if a container has ended or begun, and containers are read from Kubernetes: a copy counts in a
        container that ran at the look before. A join that is shown late has that look as its beginning, or a later one;
        then it alone is dated too late, and nothing rests on one join alone.
        """
        if coordinator is None or coordinator == self._coordinator:
            return
        if self._coordinator is not None:
            self._rebalances.clear()
            self._doubtful_joins = DOUBTFUL_JOINS
        self._coordinator = coordinator

    def _record_failure(self, why: str) -> None:
        """Remember a poll that ended in an unexpected error; joins are tracked from the next poll on."""
        self._before, self._rebalance = None, None
        unreadable = GroupUnreadable(Reason.GroupUndecodable, why)
        reading = GroupReading(ended_at=self._now(), group=unreadable, rebalance=None)
        self._memory.readings = readings.remember(self._memory.readings, reading)
        self._request_pass()

    async def _follow(self, poll: Poll, began_at: datetime, ended_at: datetime) -> None:
        """Follow the group's joins: is what it shows now of another join than before?"""
        group = poll.group
        if not isinstance(group, GroupDescription):
            return  # nothing was seen; the next look is compared with the last one that saw something
        if group.streams is not None:
            await self._follow_epoch(group, group.streams.epoch)
            return
        self._epoch = None  # a group that changes its protocol and comes back counts its epochs anew
        if group.state is not GroupState.STABLE:
            empty = group.state in {GroupState.EMPTY, GroupState.DEAD}
            if empty or self._before is None:
                self._before, self._rebalance = _MemberJoins(began_at, is_known=empty), None
            return
        before = self._compared_with(poll.joins)
        self._before = self._before_empty = _MemberJoins(began_at, poll.joins)
        digest = hash(frozenset(poll.joins.items()))
        if digest in self._rebalances:
            self._rebalance = self._rebalances[digest]
            await self._complete_ends(group)
        elif self._doubtful_joins:
            self._doubtful_joins, self._rebalance = self._doubtful_joins - 1, None
        elif before is not None and before.is_known:
            rejoined_members = {member for member, mark in poll.joins.items() if before.joins.get(member) != mark}
            since = self._not_before(before.began_at, began_at)
            self._rebalance = await self._observed_rebalance(group, since, ended_at, frozenset(rejoined_members))
        else:
            self._rebalance = None
        others = [one for one in self._rebalances.items() if one[0] != digest]
        self._rebalances = dict([*others, (digest, self._rebalance)][-JOINS_KEPT:])

    def _compared_with(self, joins: Mapping[str, Hashable]) -> _MemberJoins | None:
        """Choose the look that these joins are compared with.

        A group that shows a member again which it had before it looked empty never was empty: the coordinator had
        failed over, and showed the group as it was before its members joined.
        """
        before, earlier = self._before, self._before_empty
        is_of_empty = before is not None and before.is_known and not before.joins
        has_members_again = earlier is not None and not earlier.joins.keys().isdisjoint(joins)
        return earlier if is_of_empty and has_members_again else before

    async def _follow_epoch(self, group: GroupDescription, epoch: int) -> None:
        """Read the tasks anew with each epoch of a streams group; there are no joins, and nobody triggers a rebalance.

        Members report no positions that ends could belong to: agents do, and the ends are read after their reports.
        """
        self._before, self._rebalance, self._trigger = None, None, None
        now = self._now()
        is_due = epoch != self._epoch or self._is_topology_due(group, now)
        if group.state is GroupState.STABLE and is_due:
            self._memory.task_set, self._epoch = await self._read_task_set(group, now), epoch

    def _not_before(self, earlier_look: datetime, look: datetime) -> datetime:
        """Since when a join can have begun that this look shows and the earlier one did not.

        A look that was under way when a trigger was confirmed can show a join that was made before.
        """
        trigger = self._trigger
        if trigger is None or look < trigger.confirmed_at:
            return earlier_look
        self._trigger = None
        return max(earlier_look, trigger.asked_at)

    async def _observed_rebalance(
        self, group: GroupDescription, began_at: datetime, settled_at: datetime, rejoined_members: frozenset[str]
    ) -> ObservedRebalance:
        task_set = self._memory.task_set = await self._read_task_set(group, settled_at)
        ends = await self._ends(task_set)
        known = settled_tasks(task_set)
        if isinstance(known, TaskSet) and isinstance(ends, EndOffsets):
            ends = await self._with_tails(known, group, ends)
        ends = sharing.shared_ends(ends, self._memory.readings)
        return ObservedRebalance(began_at=began_at, settled_at=settled_at, rejoined_members=rejoined_members, ends=ends)

    def _is_topology_due(self, group: GroupDescription, now: datetime) -> bool:
        """Whether to read the tasks once more: they are not known, or the group has others, or other state.

        Any broker tells how many partitions a topic has. One that is behind tells fewer, and no later join or epoch
        would correct that.
        """
        if now - self._topology_read_at < TOPOLOGY_RETRY_AFTER:
            return False
        task_set = self._memory.task_set
        if isinstance(task_set, TopologyUnknown) or (group.is_decoded and active_holders(group).keys() != task_set.ids):
            return True
        words = {} if self._memory.agents is None else self._memory.agents.words
        reports = (said[0] for said in words.values() if said and isinstance(said[0], AgentReport))
        return bool(readings.state_beyond(task_set, group.members, reports))

    async def _read_task_set(self, group: GroupDescription, now: datetime) -> TaskSet | TopologyUnknown:
        """Read which tasks there are; they are unknown while a changelog is not seen that this application had.

        A broker that hides one shows a task without state, and nobody has to contradict it: a task that runs has no
        position, and there can be no standby. Members that are all new, or another text, can be of a version without
        that store.
        """
        self._topology_read_at = now
        found, topology, seen = await self.group.task_set(), self._memory.topology, self._seen_tasks
        known = settled_tasks(found)
        if isinstance(known, TopologyUnknown):
            return found
        if seen is not None and seen.topology == topology and seen.members & group.member_ids:
            gone = readings.changelogs_gone(seen.task_set, known)
            if gone:
                return TopologyUnknown(gone)
        if isinstance(found, TaskSet):
            self._seen_tasks = _SeenTasks(found, topology, group.member_ids)
        return found

    async def _ends(self, task_set: TaskSet | TopologyUnknown) -> EndOffsets | EndsUnreadable:
        known = settled_tasks(task_set)
        return EndsUnreadable(known.reason) if isinstance(known, TopologyUnknown) else await self.group.ends(known)

    async def _with_tails(self, task_set: TaskSet, group: GroupDescription, ends: EndOffsets) -> EndOffsets:
        """Look at the tails of changelogs on which a copy stands still; the first join has none to compare with."""
        earlier = next((one for one in self._memory.readings if one.rebalance is not None), None)
        limit = self._memory.lag_limit
        if (
            earlier is None
            or earlier.rebalance is None
            or not isinstance(earlier.group, GroupDescription)
            or limit is None
        ):
            return ends
        if isinstance(earlier.rebalance.ends, EndOffsets):
            ends = changelog_tails.known_from(earlier.rebalance.ends, ends)
        partitions = changelog_tails.worth_a_look(task_set, earlier.group, group, ends, limit)
        return changelog_tails.with_tails(ends, await self.group.tails(partitions)) if partitions else ends

    async def _complete_ends(self, group: GroupDescription) -> None:
        """Read what could not be read right after the join; later ends only make a lag look larger."""
        now = self._now()
        if self._is_topology_due(group, now):
            self._memory.task_set = await self._read_task_set(group, now)
        if self._rebalance is not None and isinstance(self._rebalance.ends, EndsUnreadable):
            ends = sharing.shared_ends(await self._ends(self._memory.task_set), self._memory.readings)
            self._rebalance = replace(self._rebalance, ends=ends)

    def _are_configs_due(self) -> bool:
        """When the topics behind the stores become known or are others, and rarely after that."""
        memory = self._memory
        if isinstance(memory.task_set, TopologyUnknown) or not memory.has_volumes:
            return False
        is_whole = not any(isinstance(config, ConfigUnread) for config in memory.topic_configs.values())
        max_age = CONFIGS_MAX_AGE if is_whole else CONFIGS_RETRY_AFTER
        return memory.topic_configs.keys() != memory.task_set.topics or self._now() - self._configs_read_at >= max_age

    async def _read_configs(self) -> None:
        """Read the settings of the topics behind the stores; no pass waits for them."""
        task_set, before = self._memory.task_set, self._memory.topic_configs
        if isinstance(task_set, TaskSet):
            self._configs_read_at = self._now()
            self._memory.topic_configs = await self.group.configs(task_set.topics)
        if self._memory.topic_configs != before:
            self._request_pass()

    def _record_running(self, reading: GroupReading) -> None:
        task_set, workload = self._memory.task_set, self._memory.workload
        if not isinstance(reading.group, GroupDescription) or isinstance(task_set, TopologyUnknown) or workload is None:
            return
        if reading.group.streams is not None:
            return  # brokers do not show there what runs; passes note what agents see
        believed = frozenset[str]() if reading.rebalance is None else reading.rebalance.rejoined_members
        holders = active_holders(reading.group)
        running = running_tasks(reading.group, holders, task_set, believed)
        place = members_of_running_pods(place_members(reading.group, workload), workload)
        by_task = {task: place[holders[task][0].id] for task in running if holders[task][0].id in place}
        assigned = {task for task, members in holders.items() if any(member.id in place for member in members)}
        self._memory.record_running(RunningSeen(reading.ended_at, by_task, frozenset(assigned - by_task.keys())))

    def _interval(self) -> float:
        latest = self._memory.readings[0].group if self._memory.readings else None
        settled = {GroupState.STABLE, GroupState.EMPTY, GroupState.DEAD}
        if self._trigger is not None and self._now() - self._trigger.confirmed_at > TRIGGER_EXPIRES_AFTER:
            self._trigger = None
        if self._trigger is not None or (isinstance(latest, GroupDescription) and latest.state not in settled):
            return self._pace.rebalance
        if self._decides:
            return self._pace.busy
        # A few looks at the quick pace, then each pause is a fifth longer, up to the slow pace.
        slower = self._pace.busy * 1.2 ** max(0, self._unchanged - QUICK_LOOKS)
        spread = random.uniform(0.8, 1.0)  # noqa: S311 (spreads load, protects nothing)
        return min(slower, self._pace.idle * spread)

    async def _pause(self, seconds: float) -> None:
        self._woken.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return
