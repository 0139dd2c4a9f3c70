"""A small model of one consumer group: members, a stock-like assignor, positions that move, sessions that time out.

One stream thread per pod. Everything is deterministic; what happens when is the test's to say.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from streamapp.core.facts.group import (
    Applied,
    Assignment,
    FollowUp,
    GroupDescription,
    GroupState,
    Member,
    NoOffsets,
    OffsetSum,
    Subscription,
)
from streamapp.core.facts.ids import ProcessId, TaskId, TopicPartition
from streamapp.core.facts.lag import EndOffsets, PartitionEnd

SESSION_TIMEOUT = timedelta(seconds=45)
PROBING_INTERVAL = timedelta(seconds=600)
REBALANCE = timedelta(seconds=2)
WARMUPS = 2
INPUT_RATE = 50
RESTORE_SPEED = 8_000
START = 200_000


@dataclass
class Thread:
    """One member, as itself and as the broker knows it."""

    id: str
    ordinal: int
    host: str
    process_id: ProcessId
    died_at: datetime | None = None
    active: set[TaskId] = field(default_factory=set)
    standby: set[TaskId] = field(default_factory=set)
    running: set[TaskId] = field(default_factory=set)
    said: dict[TaskId, OffsetSum] = field(default_factory=dict)
    owned: frozenset[TaskId] = frozenset()
    joined_in: int = 0
    has_joined: bool = False


class GroupModel:
    """The group and the state of every task on every volume."""

    def __init__(self, tasks: int, limit: int) -> None:
        self.tasks = [TaskId(0, number) for number in range(tasks)]
        self.limit = limit
        self.end = START
        self.volumes: dict[int, dict[TaskId, int]] = {}
        self.threads: dict[str, Thread] = {}
        self.state = GroupState.EMPTY
        self.generation = 0
        self.ready_at: datetime | None = None
        self.follow_up_at: datetime | None = None

    def join(self, thread: Thread, now: datetime) -> None:
        self.threads[thread.id] = thread
        self.rebalance(now)

    def leave(self, ids: set[str], now: datetime) -> None:
        """LeaveGroup, or a session that timed out."""
        for one in ids & set(self.threads):
            del self.threads[one]
            self.rebalance(now)

    def rebalance(self, now: datetime) -> None:
        self.state = GroupState.PREPARING_REBALANCE
        self.follow_up_at = None
        self.ready_at = now + REBALANCE

    def alive(self) -> list[Thread]:
        living = [thread for thread in self.threads.values() if thread.died_at is None]
        return sorted(living, key=lambda thread: thread.ordinal)

    def tick(self, now: datetime) -> None:
        """One second passes."""
        self.end += INPUT_RATE
        for thread in self.alive():
            self._work(thread)
        expired = {
            thread.id
            for thread in self.threads.values()
            if thread.died_at is not None and now - thread.died_at >= SESSION_TIMEOUT
        }
        self.leave(expired, now)
        everybody_lives = all(thread.died_at is None for thread in self.threads.values())
        if self.ready_at is not None and now >= self.ready_at and everybody_lives:
            self._complete(now)
        if self.follow_up_at is not None and now >= self.follow_up_at:
            self.rebalance(now)

    def _work(self, thread: Thread) -> None:
        state = self.volumes.setdefault(thread.ordinal, {})
        for task in thread.active | thread.standby:
            speed = RESTORE_SPEED if task not in thread.running else 10 * RESTORE_SPEED
            state[task] = min(self.end, state.get(task, 0) + speed)
            if task in thread.active and state[task] == self.end:
                thread.running.add(task)

    def _complete(self, now: datetime) -> None:
        self.ready_at = None
        self.generation += 1
        living = self.alive()
        if not living:
            self.state = GroupState.EMPTY
            return
        for thread in living:
            thread.said = {task: Applied(at) for task, at in self.volumes.get(thread.ordinal, {}).items()}
            thread.said |= dict.fromkeys(thread.running, NoOffsets.RUNNING)
            thread.owned = frozenset(thread.active)
            thread.joined_in, thread.has_joined = self.generation, True
        self._assign(living, now)
        self.state = GroupState.STABLE

    def _assign(self, living: list[Thread], now: datetime) -> None:
        """Deal round-robin, keep what is not caught up elsewhere where it is, warm up two copies at a time."""
        owners = {task: thread for thread in living for task in thread.active}
        plan: dict[str, tuple[set[TaskId], set[TaskId]]] = {thread.id: (set(), set()) for thread in living}
        warmups, moving = 0, False
        for number, task in enumerate(self.tasks):
            target, backup = living[number % len(living)], living[(number + 1) % len(living)]
            owner = self._owner(task, target, owners.get(task), living)
            copies = {backup.id} if backup is not owner else set()
            if owner is not target:
                copies |= {target.id} if warmups < WARMUPS else set()
                warmups += 1
            for copy in copies - {owner.id}:
                plan[copy][1].add(task)
            if owners.get(task) in (None, owner):
                plan[owner.id][0].add(task)
            else:
                moving = True  # first revoked there, then assigned here, as the cooperative protocol does
        for thread in living:
            thread.active, thread.standby = plan[thread.id]
            thread.running &= thread.active
        if moving:
            self.follow_up_at = now + timedelta(seconds=1)
        elif warmups:
            self.follow_up_at = now + PROBING_INTERVAL

    def _owner(self, task: TaskId, target: Thread, before: Thread | None, living: list[Thread]) -> Thread:
        warm = [thread for thread in living if self.is_warm(thread, task)]
        if target in warm:
            return target
        if warm:
            return before if before in warm else warm[0]
        return max(living, key=lambda thread: (self.volumes.get(thread.ordinal, {}).get(task, 0), thread is target))

    def is_warm(self, thread: Thread, task: TaskId) -> bool:
        at = self.volumes.get(thread.ordinal, {}).get(task)
        return task in thread.running or (at is not None and self.end - at <= self.limit)

    # What the broker shows.

    def description(self) -> GroupDescription:
        shown = self.state is GroupState.STABLE
        scheduled = FollowUp.SCHEDULED if self.follow_up_at is not None else FollowUp.NONE
        return GroupDescription(
            self.state, tuple(self._member(thread, scheduled, shown=shown) for thread in self.threads.values())
        )

    def _member(self, thread: Thread, follow_up: FollowUp, *, shown: bool) -> Member:
        subscription = Subscription(
            process_id=thread.process_id,
            offsets=dict(thread.said),
            owned_partitions=frozenset(TopicPartition("lines", task.partition) for task in thread.owned),
        )
        return Member(
            id=thread.id,
            client_id=f"wordcount-{thread.ordinal}",
            client_host=thread.host,
            subscription=subscription if shown else None,
            assignment=Assignment(
                active=frozenset(thread.active), standby=frozenset(thread.standby), follow_up=follow_up
            )
            if thread.has_joined
            else None,
        )

    def ends(self, now: datetime) -> EndOffsets:
        changelogs = [TopicPartition("wordcount-counts-changelog", task.partition) for task in self.tasks]
        return EndOffsets(
            read_at=now,
            partitions={one: PartitionEnd(log_start=0, end=self.end) for one in changelogs},
            committed={},
        )
