"""Watches the consumer group of one application: polls it, follows its rebalances, and keeps both in `Memory`.

One task per application, beside the passes: a broker that swallows packets costs its own application its deadlines, and
growing it not even those. Decides nothing; asks the queue for a pass when something looks different, or always while
a decision waits for the next look.

The pace follows what is waited for. In a hold or a step each look is at the pace of its settings. At rest the group of
an application that converges is looked at ever more rarely while it shows nothing new.

If two consecutive polls show different subscriptions, the members joined between them. The join began no earlier than
the earlier poll, or than a rebalance trigger since, and ended no later than the later poll. The ends of the changelogs
are read right after that; their tails are read too, if a copy seems to have stopped before the end.
"""

import asyncio
import random
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import structlog

from streamapp.controller.apps.memory import Memory
from streamapp.controller.leader.clock import offset_of
from streamapp.controller.ports import ApplicationGroup, Poll
from streamapp.core.actions import rebalance_trigger
from streamapp.core.evidence import changelog_tails, readings, sharing
from streamapp.core.evidence.membership import members_of_running_pods, place_members
from streamapp.core.evidence.running_tasks import active_holders, running_tasks
from streamapp.core.facts.group import GroupDescription, GroupReading, GroupState, GroupUnreadable, ObservedRebalance
from streamapp.core.facts.lag import EndOffsets, EndsUnreadable
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
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
        self._triggered_at: datetime | None = None
        self._epoch: int | None = None
        """Of the streams group when its tasks were last read."""
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

    def expect_rebalance(self) -> None:
        """A rebalance was just asked for: the next join begins now."""
        self._triggered_at = self._now()
        self._memory.rebalances = rebalance_trigger.sent(self._memory.rebalances, self._triggered_at)
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
            await self._follow_epoch(group.streams.epoch, is_stable=group.state is GroupState.STABLE)
            return
        self._epoch = None  # a group that changes its protocol and comes back counts its epochs anew
        if group.state is not GroupState.STABLE:
            empty = group.state in {GroupState.EMPTY, GroupState.DEAD}
            if empty or self._before is None:
                self._before, self._rebalance = _MemberJoins(began_at, is_known=empty), None
            return
        before, self._before = self._before, _MemberJoins(began_at, poll.joins)
        if before is not None and before.joins == poll.joins and before.is_known:
            await self._complete_ends()
            return
        self._rebalance = None
        if before is not None and before.is_known:
            rejoined_members = {member for member, mark in poll.joins.items() if before.joins.get(member) != mark}
            self._rebalance = await self._observed_rebalance(
                group, before.began_at, ended_at, frozenset(rejoined_members)
            )

    async def _follow_epoch(self, epoch: int, *, is_stable: bool) -> None:
        """Read the tasks anew with each epoch of a streams group; there are no joins, and nobody triggers a rebalance.

        Members report no positions that ends could belong to: agents do, and the ends are read after their reports.
        """
        self._before, self._rebalance, self._triggered_at = None, None, None
        now = self._now()
        is_known = isinstance(self._memory.task_set, TaskSet)
        is_due = epoch != self._epoch or (not is_known and now - self._topology_read_at >= TOPOLOGY_RETRY_AFTER)
        if is_stable and is_due:
            self._memory.task_set, self._epoch = await self._read_task_set(now), epoch

    async def _observed_rebalance(
        self, group: GroupDescription, looked_at: datetime, settled_at: datetime, rejoined_members: frozenset[str]
    ) -> ObservedRebalance:
        triggered_at, self._triggered_at = self._triggered_at, None
        task_set = self._memory.task_set = await self._read_task_set(settled_at)
        ends = await self._ends(task_set)
        if isinstance(task_set, TaskSet) and isinstance(ends, EndOffsets):
            ends = await self._with_tails(task_set, group, ends)
        ends = sharing.shared_ends(ends, self._memory.readings)
        began_at = max(looked_at, triggered_at) if triggered_at is not None else looked_at
        return ObservedRebalance(began_at=began_at, settled_at=settled_at, rejoined_members=rejoined_members, ends=ends)

    async def _read_task_set(self, now: datetime) -> TaskSet | TopologyUnknown:
        self._topology_read_at = now
        return await self.group.task_set()

    async def _ends(self, task_set: TaskSet | TopologyUnknown) -> EndOffsets | EndsUnreadable:
        if isinstance(task_set, TopologyUnknown):
            return EndsUnreadable(task_set.reason)
        return await self.group.ends(task_set)

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

    async def _complete_ends(self) -> None:
        """Read what could not be read right after the join; later ends only make a lag look larger."""
        now = self._now()
        if isinstance(self._memory.task_set, TopologyUnknown) and now - self._topology_read_at >= TOPOLOGY_RETRY_AFTER:
            self._memory.task_set = await self._read_task_set(now)
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
        if self._triggered_at is not None and self._now() - self._triggered_at > TRIGGER_EXPIRES_AFTER:
            self._triggered_at = None
        if self._triggered_at is not None or (isinstance(latest, GroupDescription) and latest.state not in settled):
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
