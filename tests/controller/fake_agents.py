"""Agents in small, as `ports.AgentAccess`: each says what the fake group's member in its pod runs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from streamapp.agents.answers import Outcome, Place, Read, Told
from streamapp.core.agents import (
    AgentReport,
    AgentSilent,
    AnnouncementState,
    Heard,
    LocalTask,
    TaskState,
)
from streamapp.core.example import END
from streamapp.core.holds import Epoch
from streamapp.core.identity import Ordinal
from streamapp.core.seeding import seeded_process_id
from tests.controller.fake_group import FakeGroup
from tests.controller.fake_pods import FakePod


@dataclass(slots=True)
class FakeAgents:
    """Those of one application."""

    pods: Callable[[], Sequence[FakePod]]
    group: FakeGroup
    now: Callable[[], datetime]
    asked: list[list[int]] = field(default_factory=list)
    """Of each round of questions, the ordinals."""
    tokens: set[str] = field(default_factory=set)
    silent: set[int] = field(default_factory=set)
    deaf: set[int] = field(default_factory=set)
    """Those who take no announcement."""
    aside: set[int] = field(default_factory=set)
    topologies: dict[int, str] = field(default_factory=dict)
    told: list[tuple[list[int], bytes]] = field(default_factory=list)
    restoring: set[int] = field(default_factory=set)
    """Those whose tasks do not run yet."""

    async def read(self, places: Iterable[Place], application_id: str, token: str) -> list[Read]:
        """Say what runs."""
        assert application_id == "wordcount"
        self.asked.append([place.ordinal for place in places])
        self.tokens.add(token)
        return [self._read(place) for place in places]

    async def announce(self, places: Iterable[Place], announcement: bytes, token: str) -> list[Told]:
        """Take it."""
        self.tokens.add(token)
        self.told.append(([place.ordinal for place in places], announcement))
        return [
            Told(ordinal=place.ordinal, outcome=Outcome.FAILED, epoch=None, why=f"agent of {place}: no answer")
            if place.ordinal in self.deaf
            else Told(ordinal=place.ordinal, outcome=Outcome.TAKEN, epoch=Epoch(0, 1))
            for place in places
        ]

    async def close(self) -> None:
        """Nothing is open."""

    def _read(self, place: Place) -> Read:
        pod = next((one for one in self.pods() if one.ip == place.address), None)
        if pod is None or place.ordinal in self.silent:
            return Read(AgentSilent(place.ordinal, f"agent of {place}: no answer"))
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
            heard=Heard(state=AnnouncementState.EMPTY),
            is_ours=place.ordinal not in self.aside,
            recovery_lag=10_000,
            standby_replicas=1,
            client_state="RUNNING",
        )
        return Read(report, self.topologies.get(place.ordinal))
