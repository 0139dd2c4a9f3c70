"""Watches the consumer group of one application: polls it, follows its rebalances, and keeps both in `Memory`.

One task per application, beside the passes: a broker that swallows packets costs its own application its deadlines, and
growing it not even those. Decides nothing; asks the queue for a pass when something looks different, or always while
something is under way.

A *join* is followed so: while two looks in a row show other subscriptions, the members joined between them. Its
beginning is no earlier than the earlier look (or than a nudge sent since), its end no later than the later one; the
ends of the changelogs are read right after that, and their tails where a copy seems to stand still before them.
"""

import asyncio
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import structlog

from streamapp.controller.apps.memory import Memory
from streamapp.controller.ports import ApplicationGroup, Poll
from streamapp.core.actions import rebalance_trigger
from streamapp.core.evidence import changelog_tails, readings
from streamapp.core.evidence.membership import members_of_running_pods, place_members
from streamapp.core.evidence.running_tasks import active_holders, running_tasks
from streamapp.core.facts.group import GroupDescription, GroupReading, GroupState, GroupUnreadable, ObservedRebalance
from streamapp.core.facts.lag import EndOffsets, EndsUnreadable
from streamapp.core.facts.snapshot import RebalanceHistory
from streamapp.core.facts.tasks import TaskSet, TopologyUnknown
from streamapp.core.facts.topic_configs import ConfigUnread
from streamapp.core.reasons import Reason
from streamapp.core.status.gaps import RunningSeen

log = structlog.get_logger()

ASK_AGAIN_AFTER = timedelta(seconds=10)
"""A topology that is not known is asked for no more often; it makes the broker list every topic."""
NUDGE_HEARD_WITHIN = timedelta(seconds=30)
"""A nudge that nobody joined after for so long was in vain."""
CONFIGS_KEPT = timedelta(hours=1)
"""Settings of topics change rarely, and nothing waits for them."""
CONFIGS_ASKED_AGAIN_AFTER = timedelta(minutes=10)
"""Where one of them could not be read."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between two polls."""

    idle: float
    busy: float
    rebalance: float


@dataclass(slots=True)
class _Look:
    """What the joins of the next look are compared with."""

    began_at: datetime
    joins: Mapping[str, Hashable] = field(default_factory=dict)
    is_known: bool = True
    """False where a rebalance was under way: whoever joins next may have begun before this look."""


class GroupWatch:
    """Polls one group for as long as `run` runs."""

    def __init__(
        self,
        group: ApplicationGroup,
        memory: Memory,
        pace: Pace,
        changed: Callable[[], None],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.group = group
        self._memory = memory
        self._pace = pace
        self._changed = changed
        self._now = now
        self._before: _Look | None = None
        self._join: ObservedRebalance | None = None
        self._nudged_at: datetime | None = None
        self._asked_at = datetime.min.replace(tzinfo=UTC)
        self._configs_asked_at = self._asked_at
        self._is_busy = True
        self._woken = asyncio.Event()

    @property
    def is_busy(self) -> bool:
        """Whether something is under way that is looked at often."""
        return self._is_busy

    def set_poll_rate(self, *, is_busy: bool) -> None:
        """Poll quickly while something is under way, slowly else."""
        if is_busy and not self._is_busy:
            self._woken.set()
        self._is_busy = is_busy

    def nudged(self) -> None:
        """A rebalance was just asked for: the next join begins now."""
        self._nudged_at = self._now()
        self._memory.rebalances = rebalance_trigger.sent(self._memory.rebalances, self._nudged_at)
        self._woken.set()

    async def run(self) -> None:
        """Poll until cancelled, whatever a look comes to: nobody else would ever look at this group again."""
        while True:
            try:
                await self.poll()
            except Exception as error:
                log.exception("poll failed")
                self._saw_nothing(f"{type(error).__name__}: {error}")
            await self._pause(self._interval())

    async def poll(self) -> None:
        """Look once and remember what was seen."""
        began_at = self._now()
        poll = await self.group.describe()
        ended_at = self._now()
        before = self._memory.readings[0] if self._memory.readings else None
        if ended_at < began_at or (before is not None and ended_at < before.ended_at):
            self._begin_anew()
            began_at, before = ended_at, None
        await self._follow(poll, began_at, ended_at)
        is_stable = isinstance(poll.group, GroupDescription) and poll.group.state is GroupState.STABLE
        rebalance = self._join if is_stable else None
        reading = GroupReading(ended_at=ended_at, group=poll.group, rebalance=rebalance)
        self._memory.rebalances = rebalance_trigger.seen(self._memory.rebalances, self._memory.readings, reading)
        self._memory.readings = readings.remember(self._memory.readings, reading)
        self._remember_who_runs_what(reading)
        if self._is_busy or before is None or (before.group, before.rebalance) != (reading.group, reading.rebalance):
            self._changed()
        if is_stable and self._are_configs_due():
            await self._read_configs()

    def _begin_anew(self) -> None:
        """Forget what has times of a clock that was set back: it would pass for new until the clock is there again."""
        self._memory.readings, self._memory.rebalances = (), RebalanceHistory()
        self._before, self._join, self._nudged_at = None, None, None
        self._asked_at = datetime.min.replace(tzinfo=UTC)

    def _saw_nothing(self, why: str) -> None:
        """Remember a look that ended in an error which nobody expected; the joins are followed from the next one on."""
        self._before, self._join = None, None
        unreadable = GroupUnreadable(Reason.GroupUndecodable, why)
        reading = GroupReading(ended_at=self._now(), group=unreadable, rebalance=None)
        self._memory.readings = readings.remember(self._memory.readings, reading)
        self._changed()

    async def _follow(self, poll: Poll, began_at: datetime, ended_at: datetime) -> None:
        """Follow the group's joins: is what it shows now of another join than before?"""
        group = poll.group
        if not isinstance(group, GroupDescription):
            return  # nothing was seen; the next look is compared with the last one that saw something
        if group.state is not GroupState.STABLE:
            empty = group.state in {GroupState.EMPTY, GroupState.DEAD}
            if empty or self._before is None:
                self._before, self._join = _Look(began_at, is_known=empty), None
            return
        before, self._before = self._before, _Look(began_at, poll.joins)
        if before is not None and before.joins == poll.joins and before.is_known:
            await self._complete_ends()
            return
        self._join = None
        if before is not None and before.is_known:
            rejoined_members = {member for member, mark in poll.joins.items() if before.joins.get(member) != mark}
            self._join = await self._joined(group, before.began_at, ended_at, frozenset(rejoined_members))

    async def _joined(
        self, group: GroupDescription, looked_at: datetime, settled_at: datetime, rejoined_members: frozenset[str]
    ) -> ObservedRebalance:
        nudged_at, self._nudged_at = self._nudged_at, None
        task_set = self._memory.task_set = await self._universe(settled_at)
        ends = await self._ends(task_set)
        if isinstance(task_set, TaskSet) and isinstance(ends, EndOffsets):
            ends = await self._with_tails(task_set, group, ends)
        began_at = max(looked_at, nudged_at) if nudged_at is not None else looked_at
        return ObservedRebalance(began_at=began_at, settled_at=settled_at, rejoined_members=rejoined_members, ends=ends)

    async def _universe(self, now: datetime) -> TaskSet | TopologyUnknown:
        self._asked_at = now
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
        wanted = changelog_tails.worth_a_look(task_set, earlier.group, group, ends, limit)
        return changelog_tails.with_tails(ends, await self.group.tails(wanted)) if wanted else ends

    async def _complete_ends(self) -> None:
        """Read what could not be read right after the join; later ends only make a lag look larger."""
        now = self._now()
        if isinstance(self._memory.task_set, TopologyUnknown) and now - self._asked_at >= ASK_AGAIN_AFTER:
            self._memory.task_set = await self._universe(now)
        if self._join is not None and isinstance(self._join.ends, EndsUnreadable):
            self._join = replace(self._join, ends=await self._ends(self._memory.task_set))

    def _are_configs_due(self) -> bool:
        """When the topics behind the stores become known or are others, and rarely after that."""
        memory = self._memory
        if isinstance(memory.task_set, TopologyUnknown) or not memory.keeps_state:
            return False
        is_whole = not any(isinstance(config, ConfigUnread) for config in memory.topic_configs.values())
        kept = CONFIGS_KEPT if is_whole else CONFIGS_ASKED_AGAIN_AFTER
        return memory.topic_configs.keys() != memory.task_set.topics or self._now() - self._configs_asked_at >= kept

    async def _read_configs(self) -> None:
        """Read the settings of the topics behind the stores; no pass waits for them."""
        task_set, before = self._memory.task_set, self._memory.topic_configs
        if isinstance(task_set, TaskSet):
            self._configs_asked_at = self._now()
            self._memory.topic_configs = await self.group.configs(task_set.topics)
        if self._memory.topic_configs != before:
            self._changed()

    def _remember_who_runs_what(self, reading: GroupReading) -> None:
        task_set, workload = self._memory.task_set, self._memory.workload
        if not isinstance(reading.group, GroupDescription) or isinstance(task_set, TopologyUnknown) or workload is None:
            return
        believed = frozenset[str]() if reading.rebalance is None else reading.rebalance.rejoined_members
        holders = active_holders(reading.group)
        running = running_tasks(reading.group, holders, task_set, believed)
        place = members_of_running_pods(place_members(reading.group, workload), workload)
        by_task = {task: place[holders[task][0].id] for task in running if holders[task][0].id in place}
        given = {task for task, members in holders.items() if any(member.id in place for member in members)}
        self._memory.record_running(RunningSeen(reading.ended_at, by_task, frozenset(given - by_task.keys())))

    def _interval(self) -> float:
        latest = self._memory.readings[0].group if self._memory.readings else None
        settled = {GroupState.STABLE, GroupState.EMPTY, GroupState.DEAD}
        if self._nudged_at is not None and self._now() - self._nudged_at > NUDGE_HEARD_WITHIN:
            self._nudged_at = None
        if self._nudged_at is not None or (isinstance(latest, GroupDescription) and latest.state not in settled):
            return self._pace.rebalance
        return self._pace.busy if self._is_busy else self._pace.idle

    async def _pause(self, seconds: float) -> None:
        self._woken.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return
