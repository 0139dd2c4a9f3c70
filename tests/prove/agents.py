"""The agents in the pods: what each was told, what it says, and what goes wrong between it and an operator."""

import asyncio
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from streamapp.agents.answers import AgentAddress, AgentReading, AnnouncementOutcome, AnnouncementResult
from streamapp.core.facts.agent_reports import (
    AgentReply,
    AgentReport,
    AgentSilent,
    AnnouncementAck,
    AnnouncementState,
    AsideKind,
    AssignorInactive,
    AssignorRun,
    ContainerMemory,
    LocalTask,
    Rebalance,
    TaskState,
)
from streamapp.core.facts.hold_record import Epoch
from streamapp.core.facts.ids import ProcessId
from tests.prove.calls import Process, Switchboard, Witness
from tests.prove.group import AgentTruth, Group, Run
from tests.prove.story import Disturbance

DEADLINE = 2.0
STREAMS_PROTOCOL = AssignorInactive(AsideKind.STREAMS_PROTOCOL, "the brokers assign")
"""What an agent says of its assignor where the brokers assign."""
BYTES_OF_A_TASK, BYTES_FREE = 1_000_000, 1_000_000_000
MEMORY_LIMIT = 1 << 30
"""Of each container, in bytes."""
KEY_FILE = Path(tempfile.gettempdir()) / "streamapp-prove-agent-key"
"""Read at each pass, by other processes that play stories, too: it is never there without its key."""
_WRITTEN = KEY_FILE.with_suffix(f".{os.getpid()}")
_WRITTEN.write_text("0123456789abcdef" * 4)
_WRITTEN.replace(KEY_FILE)


@dataclass(slots=True)
class PortedAgents:
    """`controller.ports.AgentAccess`, for one process of the operator."""

    groups: Mapping[str, Group]
    """By application ID."""
    board: Switchboard
    process: Process
    witness: Witness
    now: Callable[[], datetime]

    async def read(self, addresses: Iterable[AgentAddress], application_id: str, token: str) -> list[AgentReading]:  # noqa: ARG002 (the real one's)
        """Ask all of them; one answer may be missing, or be an old one."""
        fates, group = await self._arrive(), self.groups[application_id]
        group.advance()
        if group.agents_are_away:
            await asyncio.sleep(DEADLINE)
            return [AgentReading(AgentSilent(place.ordinal, "the agents are away")) for place in addresses]
        words = [self._fated(place, self._word(place, group), fates, group) for place in addresses]
        self.witness.looked(self.process, group)
        for tell in self.board.heard:
            tell(self.process, group, words)
        await self._after(fates)
        return [AgentReading(word) for word in words]

    async def announce(
        self,
        addresses: Iterable[AgentAddress],
        announcement: bytes,
        token: str,  # noqa: ARG002 (the real one's)
    ) -> list[AnnouncementResult]:
        """Tell all of them; one may not hear it."""
        asked = list(addresses)
        fates = await self._arrive()
        said = json.loads(announcement)
        deaf = {fate.which for fate in fates if fate.what == "silent"}
        named = frozenset(map(ProcessId.parse, said["processIds"]))
        found = {place: self._at(place) for place in asked}
        group = next((group for group, run in found.values() if run is not None), next(iter(self.groups.values())))
        self.witness.announces(self.process, group, named, [run for _, run in found.values() if run is not None])
        self.board.tell(f"process {self.process.number}: {len(named)} leave, {said['epoch']}")
        if group.agents_are_away:
            await asyncio.sleep(DEADLINE)
            deaf = {place.ordinal for place in asked}
        told = [self._tell(place, said, named, *found[place]) for place in asked if place.ordinal not in deaf]
        await self._after(fates)
        lost = [place for place in asked if place.ordinal in deaf]
        return [
            *told,
            *(
                AnnouncementResult(
                    ordinal=one.ordinal, outcome=AnnouncementOutcome.FAILED, epoch=None, why="injected: no answer"
                )
                for one in lost
            ),
        ]

    async def cap_heartbeats(
        self,
        addresses: Iterable[AgentAddress],
        cap: bytes,
        token: str,
    ) -> list[AnnouncementResult]:
        """No agent of the model reports that it can, so none is ever asked."""
        raise AssertionError(f"{list(addresses)} are asked for {cap!r} by {token}")

    async def close(self) -> None:
        """Nothing is open."""

    async def _arrive(self) -> Sequence[Disturbance]:
        await self.process.turn()
        await self.board.latency(0.002, 0.05)
        fates = self.board.arrive("agent")
        for fate in fates:
            if fate.what == "crash-before":
                self.process.die()
            if fate.what.startswith("freeze"):
                self.process.freeze("", fate.which)
        await self.process.turn()
        return fates

    async def _after(self, fates: Sequence[Disturbance]) -> None:
        for fate in fates:
            if fate.what == "crash-after":
                self.process.die()
            if fate.what == "silent":
                await asyncio.sleep(DEADLINE)
        await self.process.turn()

    def _at(self, place: AgentAddress) -> tuple[Group, Run | None]:
        """Who runs at an address, of whatever application."""
        for group in self.groups.values():
            run = _run(place, group)
            if run is not None:
                return group, run
        return group, None

    def _word(self, place: AgentAddress, group: Group) -> AgentReply:
        run = _run(place, group)
        if run is None:
            return AgentSilent(place.ordinal, "connection refused")
        agent = group.truth.agents[run.id]
        agent.sequence += 1
        members = [member for member in group.listed(alive=True) if member.run is run]
        volume = group.truth.volumes.get(run.volume, {})
        tasks = [
            LocalTask(
                id=task,
                is_active=task in member.active,
                state=(TaskState.RUNNING if task in member.running else TaskState.RESTORING)
                if task in member.active
                else None,
                positions={} if task in member.running else {"counts": int(volume.get(task, 0))},
                state_bytes=BYTES_OF_A_TASK if group.truth.shape.streams and task in volume else None,
            )
            for member in members
            for task in sorted(member.active | member.standby)
        ]
        word = AgentReport(
            ordinal=place.ordinal,
            pod_uid=place.pod_uid,
            incarnation=run.id,
            sequence=agent.sequence,
            as_of=self.now(),
            process_id=run.process_id,
            tasks=tuple(tasks),
            heard=_heard(agent, group),
            is_ours=not group.truth.shape.streams,
            aside=STREAMS_PROTOCOL if group.truth.shape.streams else None,
            recovery_lag=group.truth.shape.limit,
            round=self._round(agent, group),
            state_bytes=BYTES_OF_A_TASK * len(volume) if group.truth.shape.streams else None,
            free_bytes=BYTES_FREE if group.truth.shape.streams else None,
            memory=_memory(group.truth.shape.memory),
        )
        agent.said = [word, *agent.said[:9]]
        return word

    def _fated(self, place: AgentAddress, word: AgentReply, fates: Sequence[Disturbance], group: Group) -> AgentReply:
        if any(fate.what == "silent" and fate.which == place.ordinal for fate in fates):
            return AgentSilent(place.ordinal, "injected: no answer")
        if isinstance(word, AgentReport) and any(fate.what == "old" and fate.which == place.ordinal for fate in fates):
            return group.truth.agents[word.incarnation].said[-1]
        return word

    def _tell(
        self,
        place: AgentAddress,
        said: dict[str, object],
        named: frozenset[ProcessId],
        group: Group,
        run: Run | None,
    ) -> AnnouncementResult:
        if run is None:
            return AnnouncementResult(
                ordinal=place.ordinal, outcome=AnnouncementOutcome.FAILED, epoch=None, why="connection refused"
            )
        agent, time = group.truth.agents[run.id], group.time()
        spoken, ttl = said["epoch"], said["ttlSeconds"]
        assert isinstance(spoken, dict)
        assert isinstance(ttl, int)
        epoch = Epoch(**spoken)
        is_other = epoch == agent.epoch and named != agent.named
        if agent.epoch is not None and (epoch < agent.epoch or is_other):
            return AnnouncementResult(
                ordinal=place.ordinal,
                outcome=AnnouncementOutcome.REFUSED,
                epoch=agent.epoch,
                why="a higher one is known",
            )
        agent.epoch, agent.named, agent.expires_at = epoch, named, time + ttl
        return AnnouncementResult(ordinal=place.ordinal, outcome=AnnouncementOutcome.TAKEN, epoch=epoch)

    def _round(self, agent: AgentTruth, group: Group) -> AssignorRun | None:
        if agent.led is None:
            return None
        age = timedelta(seconds=group.time() - agent.led.at)
        return AssignorRun(
            made_at=self.now() - age,
            state=agent.led.state,
            epoch=agent.led.epoch,
            moved=agent.led.moved,
            learning=agent.led.learning,
            follow_up_is_watch=agent.led.is_watch,
        )


def _memory(free: int) -> ContainerMemory | None:
    return ContainerMemory(used=MEMORY_LIMIT - free, heap=0, limit=MEMORY_LIMIT) if free else None


def _run(place: AgentAddress, group: Group) -> Run | None:
    alive = (member.run for member in group.listed(alive=True))
    return next((run for run in alive if run is not None and run.host == place.address), None)


def _heard(agent: AgentTruth, group: Group) -> AnnouncementAck:
    time = group.time()
    state = agent.state(time)
    if state is not AnnouncementState.SET:
        return AnnouncementAck(state=state, epoch=agent.epoch)
    return AnnouncementAck(
        state=state,
        epoch=agent.epoch,
        process_ids=agent.named,
        rebalance=Rebalance.CONSERVATIVE,
        expires_in=timedelta(seconds=agent.expires_at - time),
    )
