"""Agents in small, as `ports.AgentAccess`: each says what the fake group's member in its pod runs.

`assign` is the assignor that they bring, in small too: it goes by what the leader has heard.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from streamapp.agents.answers import AgentAddress, AgentReading, AnnouncementOutcome, AnnouncementResult
from streamapp.core.facts.agent_reports import (
    AgentReport,
    AgentSilent,
    AnnouncementAck,
    AnnouncementState,
    AssignorRun,
    LocalTask,
    Rebalance,
    TaskState,
)
from streamapp.core.facts.hold_record import Epoch
from streamapp.core.facts.ids import Ordinal, ProcessId, TaskId
from streamapp.core.facts.seeding import seeded_process_id
from tests.controller.doubles.fake_group import FakeGroup, Share
from tests.controller.doubles.fake_pods import FakePod
from tests.support.example import END, task_set


@dataclass(slots=True)
class FakeAgents:
    """Those of one application."""

    pods: Callable[[], Sequence[FakePod]]
    group: FakeGroup
    now: Callable[[], datetime]
    asked: list[list[int]] = field(default_factory=list)
    """Of each round of questions, the ordinals."""
    names: list[dict[int, str | None]] = field(default_factory=list)
    """Of each round of questions, the name that each certificate must have; None for plain HTTP."""
    ports: dict[int, int] = field(default_factory=dict)
    """Where each was asked last, by its ordinal."""
    tokens: set[str] = field(default_factory=set)
    silent: set[int] = field(default_factory=set)
    deaf: set[int] = field(default_factory=set)
    """Those who take no announcement."""
    aside: set[int] = field(default_factory=set)
    topologies: dict[int, str] = field(default_factory=dict)
    told: list[tuple[list[int], bytes]] = field(default_factory=list)
    capped: list[tuple[list[int], bytes]] = field(default_factory=list)
    restoring: set[int] = field(default_factory=set)
    """Those whose tasks do not run yet."""
    acks: dict[int, AnnouncementAck] = field(default_factory=dict)
    """What each was told last."""
    expires_at: dict[int, datetime] = field(default_factory=dict)
    round: AssignorRun | None = None
    """The last assignment of our assignor, which ordinal 0 leads."""

    async def read(self, addresses: Iterable[AgentAddress], application_id: str, token: str) -> list[AgentReading]:
        """Say what runs."""
        assert application_id == "wordcount"
        self.asked.append([place.ordinal for place in addresses])
        self.names.append({place.ordinal: None if place.tls is None else place.tls.server_name for place in addresses})
        self.ports |= {place.ordinal: place.port for place in addresses}
        self.tokens.add(token)
        return [self._read(place) for place in addresses]

    async def announce(
        self, addresses: Iterable[AgentAddress], announcement: bytes, token: str
    ) -> list[AnnouncementResult]:
        """Take it."""
        self.tokens.add(token)
        self.told.append(([place.ordinal for place in addresses], announcement))
        for place in addresses:
            if place.ordinal not in self.deaf:
                self._hear(place.ordinal, json.loads(announcement))
        return [
            AnnouncementResult(
                ordinal=place.ordinal,
                outcome=AnnouncementOutcome.FAILED,
                epoch=None,
                why=f"agent of {place}: no answer",
            )
            if place.ordinal in self.deaf
            else AnnouncementResult(ordinal=place.ordinal, outcome=AnnouncementOutcome.TAKEN, epoch=Epoch(0, 1))
            for place in addresses
        ]

    async def cap_heartbeats(
        self, addresses: Iterable[AgentAddress], cap: bytes, token: str
    ) -> list[AnnouncementResult]:
        """Take it."""
        self.tokens.add(token)
        self.capped.append(([place.ordinal for place in addresses], cap))
        outcomes = {True: AnnouncementOutcome.FAILED, False: AnnouncementOutcome.TAKEN}
        return [
            AnnouncementResult(
                ordinal=place.ordinal, outcome=outcomes[place.ordinal in self.deaf], epoch=None, why="no answer"
            )
            for place in addresses
        ]

    async def close(self) -> None:
        """Nothing is open."""

    def _read(self, place: AgentAddress) -> AgentReading:
        pod = next((one for one in self.pods() if one.ip == place.address), None)
        if pod is None or place.ordinal in self.silent:
            return AgentReading(AgentSilent(place.ordinal, f"agent of {place}: no answer"))
        member = next((one for one in self.group.members.values() if one.pod == pod), None)
        state = TaskState.RESTORING if place.ordinal in self.restoring else TaskState.RUNNING
        active = () if member is None else sorted(member.active)
        standby = () if member is None else sorted(member.standby)
        at = {"counts": END - self.group.lag}
        tasks = (
            *(LocalTask(id=task, is_active=True, state=state) for task in active),
            *(LocalTask(id=task, is_active=False, state=None, positions=at) for task in standby),
        )
        report = AgentReport(
            ordinal=place.ordinal,
            pod_uid=place.pod_uid,
            incarnation=pod.container_id,
            sequence=len(self.asked),
            as_of=self.now(),
            process_id=seeded_process_id(self.group.app_uid, Ordinal(pod.ordinal)),
            tasks=tasks,
            heard=self._heard(place.ordinal),
            is_ours=place.ordinal not in self.aside,
            recovery_lag=10_000,
            standby_replicas=1,
            round=self.round if place.ordinal == 0 else None,
            client_state="RUNNING",
        )
        return AgentReading(report, self.topologies.get(place.ordinal))

    def _hear(self, ordinal: Ordinal, said: dict[str, Any]) -> None:
        processes = frozenset(map(ProcessId.parse, said["processIds"]))
        self.expires_at[ordinal] = self.now() + timedelta(seconds=said["ttlSeconds"])
        self.acks[ordinal] = AnnouncementAck(
            state=AnnouncementState.SET if processes else AnnouncementState.EMPTY,
            epoch=Epoch(**said["epoch"]),
            process_ids=processes,
            rebalance=Rebalance(said["rebalance"]),
        )

    def _heard(self, ordinal: int) -> AnnouncementAck:
        heard = self.acks.get(ordinal, AnnouncementAck(state=AnnouncementState.EMPTY))
        left = self.expires_at.get(ordinal, self.now()) - self.now()
        if left <= timedelta(0):
            return AnnouncementAck(state=AnnouncementState.EMPTY, epoch=heard.epoch)
        return replace(heard, expires_in=left)

    def assign(self, members: Sequence[Share]) -> None:
        """Move what a ready learner can take from those who leave, and have the rest learned."""
        heard = self._heard(0)
        leaving = {
            member.id
            for member in members
            if seeded_process_id(self.group.app_uid, Ordinal(member.pod.ordinal)) in heard.process_ids
        }
        stay = [member for member in members if member.id not in leaving]
        before = {task: member for member in members for task in member.active}
        learners = {task: member for member in stay for task in member.standby}
        dealt: dict[str, tuple[set[TaskId], set[TaskId]]] = {member.id: (set(), set()) for member in members}
        moved = learning = 0
        for place, task in enumerate(sorted(task_set().ids)):
            owner, learner = before.get(task), learners.get(task)
            if owner is None or owner in stay:
                dealt[(owner or stay[place % len(stay)]).id][0].add(task)
            elif learner is not None and self.group.lag <= 10_000:
                moved += 1
                dealt[learner.id][0].add(task)
            else:
                learning += 1
                dealt[owner.id][0].add(task)
                dealt[(learner or stay[place % len(stay)]).id][1].add(task)
        for member in members:
            member.active, member.standby = map(frozenset, dealt[member.id])
        self.round = AssignorRun(
            made_at=self.now(),
            state=heard.state,
            epoch=heard.epoch,
            moved=moved,
            learning=learning,
            follow_up_is_watch=False,
        )
