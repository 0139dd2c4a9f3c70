"""Replicas that stand for one Lease in virtual time, each with a clock that errs, over a network that does.

A *candidate* is the product's elector with the product's client, but for the socket: a request reaches the store after
a while, also when whoever sent it has given up waiting, and its answer takes a while again, or is lost. A frozen
candidate does nothing; its clock goes on.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from streamapp.controller.leader.election import Elector, LeaseTiming
from streamapp.controller.leader.leadership import NotLeadingError
from streamapp.kube.client.client import Check, Json
from streamapp.kube.client.errors import KubeError, UnavailableError, of_status
from streamapp.kube.client.kinds import LEASES, Key
from tests.kube.object_store import ObjectStore, RefusalError, Request
from tests.kube.store_client import StoreClient
from tests.prove.virtual_time import VirtualLoop

KEY = Key("system", "streamapp-operator")
TIMING = LeaseTiming(lease=15, renew=10, retry=2)


@dataclass(slots=True)
class Weather:
    """What the network does to one candidate's requests."""

    chance: random.Random
    slowest: float = 0.02
    """Seconds, each way."""
    fastest: float = 0.0
    lost_requests: int = 0
    lost_answers: int = 0
    conflicts: int = 0
    refused: str = ""
    """Every request is refused with this status."""
    retry_after: float = 0.0
    """For how many seconds a refusal wants the candidate to ask nothing."""
    refused_at: list[float] = field(default_factory=list)


class Line(StoreClient):
    """The product's client, with the store at the other end."""

    def __init__(self, store: ObjectStore, weather: Weather, turn: Callable[[], Any], deadline: float) -> None:
        self._store, self._weather, self._turn, self._deadline = store, weather, turn, deadline

    async def deliver(self, request: Request, what: str, last_check: Check | None) -> Json:  # noqa: ARG002 (nothing waits)
        """Let the request and its answer take their time, or be lost."""
        await self._turn()
        weather = self._weather
        answered: asyncio.Future[Json | RefusalError] = asyncio.get_running_loop().create_future()
        if weather.lost_requests:
            weather.lost_requests -= 1
        else:
            there = weather.chance.uniform(weather.fastest, weather.slowest)
            asyncio.get_running_loop().call_later(there, self._arrives, request, answered)
        try:
            async with asyncio.timeout(self._deadline):
                answer = await answered
        except TimeoutError:
            raise UnavailableError(what, "no answer", "it is tried again") from None
        finally:
            await self._turn()
        if isinstance(answer, RefusalError):
            weather.refused_at.append(asyncio.get_running_loop().time())
            raise of_status(answer.status, what, str(answer), weather.retry_after)
        return answer

    def _arrives(self, request: Request, answered: asyncio.Future[Json | RefusalError]) -> None:
        weather = self._weather
        answer: Json | RefusalError
        if weather.refused:
            answer = RefusalError(int(weather.refused), "injected")
        elif weather.conflicts and request.is_write:
            weather.conflicts -= 1
            answer = RefusalError(409, "injected")
        else:
            try:
                answer = self._store.answer(request)
            except RefusalError as refusal:
                answer = refusal
        if weather.lost_answers:
            weather.lost_answers -= 1
            return
        back = weather.chance.uniform(weather.fastest, weather.slowest)
        asyncio.get_running_loop().call_later(back, lambda: None if answered.done() else answered.set_result(answer))


class Candidate:
    """One replica."""

    def __init__(self, world: "Election", name: str, rate: float) -> None:
        self.name, self.rate, self.world = name, rate, world
        self.weather = Weather(random.Random(world.chance.random()))  # noqa: S311 (plays a story, protects nothing)
        self.is_over = False
        self.losses = 0
        self.error: KubeError | None = None
        self.ending: asyncio.Task[None] | None = None
        self._open = asyncio.Event()
        self._open.set()
        self._offset = world.chance.uniform(0, 1e5)
        self._wall_offset = timedelta(seconds=world.chance.uniform(-60, 60))
        line = Line(world.store, self.weather, self._open.wait, TIMING.request)
        self.elector = Elector(line, KEY, name, TIMING, lost=self._lost, monotonic=self.clock, now=self.wall_clock)
        self.task = world.loop.create_task(self._run())

    def clock(self) -> float:
        """Its own: wrong by a rate, and begun at another time than anybody else's."""
        return self._offset + self.world.loop.time() * self.rate

    def wall_clock(self) -> datetime:
        """Its own too."""
        return self.world.loop.now() + self._wall_offset

    def believes(self) -> bool:
        """Whether it would send a write at this moment, if it were to wake up now."""
        return not self.is_over and self.elector.leads()

    def freeze(self, seconds: float) -> None:
        """Stand still for so long."""
        self._open.clear()
        self.world.loop.call_later(seconds, self._open.set)

    def die(self) -> None:
        """End without a word."""
        self.is_over = True
        self.task.cancel()

    async def stop(self) -> None:
        """End in order."""
        self.task.cancel()
        await self.elector.release()
        self.is_over = True

    async def _run(self) -> None:
        try:
            await self.elector.stand()
            self.world.led.append((self.name, self.elector.transitions))
            await self.elector.keep()
        except NotLeadingError:
            self.is_over = True
        except KubeError as error:
            self.error, self.is_over = error, True

    def _lost(self) -> None:
        self.losses += 1
        self.is_over = True


class Election:
    """All of them, and the store that they share."""

    def __init__(self, loop: VirtualLoop, seed: int = 0) -> None:
        self.loop = loop
        self.chance = random.Random(seed)  # noqa: S311 (plays a story, protects nothing)
        self.store = ObjectStore(loop.now)
        self.all: list[Candidate] = []
        self._started = 0
        self.led: list[tuple[str, int]] = []
        """Who began to lead, with the number of the term."""
        self.wrongs: list[str] = []
        self._look()

    def add(self, rate: float = 1.0) -> Candidate:
        """Start one more."""
        self._started += 1
        self.all.append(Candidate(self, f"pod-{self._started}", rate))
        return self.all[-1]

    def leaders(self) -> list[Candidate]:
        """Who believes to lead."""
        return [one for one in self.all if one.believes()]

    def lease(self) -> Json:
        """What the Lease says; empty where there is none."""
        found = self.store.get(LEASES.plural, KEY.namespace, KEY.name)
        return {} if found is None else dict(found["spec"])

    def touch(self) -> None:
        """Somebody writes something else on it."""
        found = self.store.get(LEASES.plural, KEY.namespace, KEY.name)
        if found is not None:
            said = {**found["metadata"].get("annotations", {}), "seen": str(self.loop.time())}
            self.store.put(LEASES.plural, {**found, "metadata": {**found["metadata"], "annotations": said}})

    def name(self, holder: str | None) -> None:
        """Somebody writes another holder into it by hand, or takes the holder out."""
        found = self.store.get(LEASES.plural, KEY.namespace, KEY.name)
        if found is not None:
            self.store.put(LEASES.plural, {**found, "spec": {**found["spec"], "holderIdentity": holder}})

    def remove(self) -> None:
        """Somebody removes it."""
        self.store.remove(LEASES.plural, KEY.namespace, KEY.name)

    async def until(self, holds: Callable[[], object], seconds: float) -> float:
        """Let time pass until something is so; give the seconds that took."""
        began = self.loop.time()
        while not holds():
            if self.loop.time() - began > seconds:
                raise AssertionError(f"not within {seconds} s: {self.lease()}, {self.led}")
            await asyncio.sleep(0.01)
        return self.loop.time() - began

    def _look(self) -> None:
        names = [one.name for one in self.leaders()]
        if len(names) > 1:
            self.wrongs.append(f"at {self.loop.time():.2f} s {' and '.join(names)} believe that they lead")
        self.loop.call_later(0.05, self._look)
