"""The model of a group whose pods all run the learner task assignor and an agent.

Learners are made on pods that stay, tasks move behind learners that are ready, a move revokes first and gives later.
Whoever leads goes by the announcement as its own JVM has it: unknown for a minute, empty, or set until it expires.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from streamapp.core.actions.decision import Announce
from streamapp.core.facts.agent_reports import (
    AgentReply,
    AgentReport,
    AgentSilent,
    AnnouncementAck,
    AnnouncementState,
    AssignorRun,
    EndsAfter,
    LocalTask,
    Rebalance,
    TaskState,
)
from streamapp.core.facts.hold_record import Epoch
from streamapp.core.facts.ids import Ordinal, ProcessId, TaskId
from tests.simulation.kafka_model import GroupModel, Thread

UNKNOWN_FOR = timedelta(seconds=60)
SECOND = timedelta(seconds=1)
BUDGET = 4
"""Learners at a time."""


@dataclass
class AgentModel:
    """What one JVM was told, and what it did as the leader."""

    born_at: datetime
    epoch: Epoch | None = None
    process_ids: frozenset[ProcessId] = frozenset()
    rebalance: Rebalance = Rebalance.CONSERVATIVE
    expires_at: datetime | None = None
    sequence: int = 0
    round: AssignorRun | None = None
    said: list[AgentReport] = field(default_factory=list)

    def state(self, now: datetime) -> AnnouncementState:
        if self.epoch is None:
            return AnnouncementState.UNKNOWN if now - self.born_at < UNKNOWN_FOR else AnnouncementState.EMPTY
        is_set = self.expires_at is not None and now < self.expires_at and bool(self.process_ids)
        return AnnouncementState.SET if is_set else AnnouncementState.EMPTY

    def take(self, step: Announce, now: datetime) -> None:
        """As the protocol has it: a lower epoch is refused, and the same one with other content."""
        content = frozenset(step.process_ids)
        if self.epoch is not None and step.epoch < self.epoch:
            return
        if step.epoch == self.epoch and (content, step.rebalance) != (self.process_ids, self.rebalance):
            return
        self.epoch, self.process_ids, self.rebalance = step.epoch, content, step.rebalance
        self.expires_at = now + step.ttl


class LearnerGroupModel(GroupModel):
    """The group, its assignor and its agents."""

    def __init__(self, tasks: int, limit: int, *, follow_ups: bool = False) -> None:
        super().__init__(tasks, limit)
        self.follow_ups = follow_ups
        """The assignor looks again by itself while learners learn; else a triggered rebalance brings that about."""
        self.agents: dict[str, AgentModel] = {}
        self.silent: set[int] = set()
        self.stale: set[int] = set()
        """Ordinals whose agent repeats what it said first."""
        self.moved = 0
        self.moves_to_cold = 0

    def join(self, thread: Thread, now: datetime) -> None:
        self.agents[thread.id] = AgentModel(now)
        super().join(thread, now)

    def announce(self, step: Announce, now: datetime) -> None:
        """What the agents of these ordinals are told arrives, or does not."""
        for thread in self.alive():
            if thread.ordinal in step.to and thread.ordinal not in self.silent:
                self.agents[thread.id].take(step, now)

    def speak(self) -> None:
        """Every agent answers again, with what it sees now."""
        self.silent.clear()
        self.stale.clear()

    def hears(self, pods: dict[int, str], now: datetime) -> tuple[list[AgentReply], EndsAfter]:
        """What the agents of these pods (UID by ordinal) answer."""
        threads = {thread.ordinal: thread for thread in self.alive()}
        words = [self._word(ordinal, uid, threads.get(ordinal), now) for ordinal, uid in pods.items()]
        return words, EndsAfter(now, self.ends(now))

    def _word(self, ordinal: int, uid: str, thread: Thread | None, now: datetime) -> AgentReply:
        if thread is None or ordinal in self.silent:
            return AgentSilent(Ordinal(ordinal), "connection refused")
        agent = self.agents[thread.id]
        if ordinal in self.stale and agent.said:
            return agent.said[0]
        agent.sequence += 1
        report = AgentReport(
            ordinal=Ordinal(ordinal),
            pod_uid=uid,
            incarnation=thread.id,
            sequence=agent.sequence,
            as_of=now,
            process_id=thread.process_id,
            tasks=tuple(self._tasks(thread)),
            heard=self._heard(agent, now),
            is_ours=True,
            recovery_lag=self.limit,
            round=agent.round,
            client_state="RUNNING",
        )
        agent.said.append(report)
        return report

    def _tasks(self, thread: Thread) -> list[LocalTask]:
        volume = self.volumes.get(thread.ordinal, {})
        found = []
        for task in sorted(thread.active | thread.standby):
            is_active = task in thread.active
            state = TaskState.RUNNING if task in thread.running else TaskState.RESTORING
            positions = {} if task in thread.running else {"counts": volume.get(task, 0)}
            found.append(
                LocalTask(id=task, is_active=is_active, state=state if is_active else None, positions=positions)
            )
        return found

    def _heard(self, agent: AgentModel, now: datetime) -> AnnouncementAck:
        state = agent.state(now)
        if state is not AnnouncementState.SET or agent.expires_at is None:
            return AnnouncementAck(state=state, epoch=agent.epoch)
        return AnnouncementAck(
            state=state,
            epoch=agent.epoch,
            process_ids=agent.process_ids,
            rebalance=agent.rebalance,
            expires_in=agent.expires_at - now,
        )

    # The assignor.

    def _assign(self, living: list[Thread], now: datetime) -> None:
        leader = self.agents[living[0].id]
        state = leader.state(now)
        named = leader.process_ids if state is AnnouncementState.SET else frozenset()
        staying = [thread for thread in living if thread.process_id not in named] or living
        before = {task: thread for thread in living for task in thread.active}
        places = {task: before[task] if task in before else self._orphan(task, staying) for task in self.tasks}
        learners: dict[TaskId, Thread] = {}
        if state is not AnnouncementState.UNKNOWN:
            learners = self._learners(places, staying)
        ready = {task: thread for task, thread in learners.items() if self.is_warm(thread, task)}
        if leader.rebalance is Rebalance.CONSERVATIVE:
            busy = {thread.id for task, thread in learners.items() if task not in ready}
            ready = {task: thread for task, thread in ready.items() if thread.id not in busy}
        moving = self._give(living, before, {**places, **ready}, {**learners})
        learning = len(learners) - len(ready)
        is_watch = not moving and not learning and state is AnnouncementState.SET
        self._look_again(moving=moving, learning=learning, state=state, now=now)
        leader.round = AssignorRun(
            made_at=now,
            state=state,
            epoch=leader.epoch,
            moved=len(ready),
            learning=learning,
            follow_up_is_watch=is_watch,
        )

    def _orphan(self, task: TaskId, staying: list[Thread]) -> Thread:
        return max(staying, key=lambda one: (self.volumes.get(one.ordinal, {}).get(task, 0), -one.ordinal))

    def _learners(self, places: dict[TaskId, Thread], staying: list[Thread]) -> dict[TaskId, Thread]:
        """Where each task that is to move learns, the nearest copies first, up to the budget."""
        ids = {thread.id for thread in staying}
        load = {thread.id: sum(1 for place in places.values() if place is thread) for thread in staying}
        found: dict[TaskId, Thread] = {}
        for task, place in sorted(places.items()):
            lightest = min(staying, key=lambda one: (task not in one.standby, load[one.id], one.ordinal))
            is_heavy = place.id in ids and load[place.id] > min(load.values()) + 1
            if is_heavy:
                lightest = min(staying, key=lambda one: (load[one.id], one.ordinal))
                load[place.id] -= 1
            if (place.id not in ids or is_heavy) and (len(found) < BUDGET or task in lightest.standby):
                found[task] = lightest
                load[lightest.id] += 1
        return found

    def _give(
        self,
        living: list[Thread],
        before: dict[TaskId, Thread],
        places: dict[TaskId, Thread],
        learners: dict[TaskId, Thread],
    ) -> bool:
        moving = False
        for thread in living:
            thread.standby = {
                task for task, place in learners.items() if place is thread and places[task] is not thread
            }
        for task, place in places.items():
            owner = before.get(task)
            if owner is not None and owner is not place:
                moving = True
                self.moved += 1
                self.moves_to_cold += not self.is_warm(place, task)
                owner.active.discard(task)
                place.standby.add(task)  # it keeps its state until the next generation gives it the task
            else:
                place.active.add(task)
        for thread in living:
            thread.running &= thread.active
        return moving

    def _look_again(self, *, moving: bool, learning: int, state: AnnouncementState, now: datetime) -> None:
        if moving:
            self.follow_up_at = now + SECOND
        elif learning:
            self.follow_up_at = now + (2 * SECOND if self.follow_ups else timedelta(seconds=600))
        elif state is not AnnouncementState.EMPTY:
            self.follow_up_at = now + timedelta(seconds=20)
