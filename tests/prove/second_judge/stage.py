"""One example's world: the parts of `tests.prove` put together without their judge, and a ledger that sees everything.

The machine acts on it through `deeds` and `faults`; the guarantees are judged by what stands in the ledger.
"""

import asyncio
import logging
import pickle
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import structlog

from tests.kube.object_store import ObjectStore, RefusalError, Request
from tests.prove.calls import Switchboard
from tests.prove.collector import Collector
from tests.prove.group import Group, Shape
from tests.prove.instance import Instance, Lives
from tests.prove.kubelet import KEY, NAME, NAMESPACE, Nodes
from tests.prove.second_judge.ledger import Figures, Ledger, Listener, ListeningGroup, Write
from tests.prove.story import Disturbance
from tests.prove.virtual_time import VirtualLoop
from tests.prove.world import Picture, fresh_picture

Json = dict[str, Any]
FAST = 40_000.0
"""Records a second that a copy catches up with, while an application is brought up."""
LOOKED_EVERY = 2.0
"""Seconds between two looks of the guarantees, while time passes."""
Plant = Callable[["Stage", Request], Request]
"""Changes what a process sends, as it arrives at the API server; for planted faults alone."""


@dataclass(frozen=True, slots=True)
class Ground:
    """One kind of application."""

    name: str
    replicas: int
    standbys: int = 1
    threads: int = 1
    restore: float = 40_000.0
    """Records a second that a copy catches up with."""
    rate: float = 50.0
    on_demand: bool = False

    @property
    def shape(self) -> Shape:
        """As the simulated group takes it."""
        return Shape(
            threads=self.threads,
            standbys=self.standbys,
            restore=self.restore,
            rate=self.rate,
            on_demand=self.on_demand,
        )

    @property
    def spec(self) -> Json:
        """What the StreamApp says beside its usual fields."""
        return {"agent": {"enabled": True}, "learners": {"source": "OnDemand"}} if self.on_demand else {}


GROUNDS = {
    one.name: one
    for one in (
        Ground("four pods", 4),
        Ground("three pods of two threads", 3, threads=2),
        Ground("two standbys", 3, standbys=2),
        Ground("slow restore", 3, restore=900.0),
        Ground("on demand", 3, standbys=0, on_demand=True),
        Ground("no copies", 3, standbys=0),
    )
}


class LedgerStore(ObjectStore):
    """The store, which writes down each request that arrives, and what it changed."""

    stage: "Stage"

    def answer(self, request: Request, as_of: int | None = None) -> Json:
        """Answer, and write down what came of it."""
        if request.method == "GET":
            return super().answer(request, as_of)
        for plant in self.stage.plants:
            request = plant(self.stage, request)
        before, lower = self.get(*request.identity), self.stage.ledger.lower_since
        answer: Json | RefusalError
        try:
            answer = super().answer(request, as_of)
        except RefusalError as refusal:
            answer = refusal
        writer, after = self.stage.board.writer, self.get(*request.identity)
        number, why = 0 if writer is None else writer.number, str(answer) if isinstance(answer, RefusalError) else None
        self.stage.ledger.wrote(Write(self.stage.now, number, request, before, after, why, lower))
        if isinstance(answer, RefusalError):
            raise answer
        return answer


class StageBoard(Switchboard):
    """The switchboard; what a user does is no fault, wherever it was planned."""

    stage: "Stage"

    def hit(self, one: Disturbance) -> None:
        """Count it."""
        if one.what in self.stage.of_users:
            self.tell(f"--- {one}")
        else:
            super().hit(one)


class WatchedLives(Lives):
    """The processes; how long none of them is there can be chosen."""

    absence = 2.0
    """Seconds until another process takes the place of one that died or froze."""

    def __init__(self, make: Callable[[int, Lives], Instance], loop: VirtualLoop, board: Switchboard) -> None:
        super().__init__(make, loop, board)
        self.gone_at: float | None = None
        self.former: Instance | None = None
        """The process that acted before."""
        self.away: list[tuple[float, float]] = []
        """When no process acted: from, until."""

    def begin(self) -> None:
        """Start one; a start is no fault."""
        disturbed, self._board.disturbed = self._board.disturbed, lambda: None
        super().begin()
        self._board.disturbed = disturbed
        if self.gone_at is not None:
            self.away.append((self.gone_at, self._loop.time()))
            self.gone_at = None

    def ended(self, instance: Instance) -> None:
        """A process died."""
        if instance is self.present:
            self._leaves()

    def frozen(self, instance: Instance, how: str) -> None:
        """A process stopped."""
        if instance is self.present:
            self._leaves()
            if how == "-raise":
                self._loop.call_later(self.absence + 2.0, self._board.strikes, Disturbance("second", 0, "raise-again"))

    def _leaves(self) -> None:
        self.former, self.present, self.gone_at = self.present, None, self._loop.time()
        self._loop.call_later(self.absence, self.begin)


class Stage:
    """The world of one example."""

    def __init__(self, picture: Picture, began: float, seed: int, listeners: Sequence[Listener] = ()) -> None:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
        random.seed(seed)  # the product's own jitter
        chance = random.Random(seed)  # noqa: S311 (plays an example, protects nothing)
        self.loop, self.began = VirtualLoop(), began
        self.loop.elapsed = began
        self.plants: list[Plant] = []
        self.deeds: dict[str, Callable[[int], object]] = {}
        self.of_users: frozenset[str] = frozenset()
        """Deeds that are no faults."""
        self.board = StageBoard(self._happen, chance)
        self.board.stage = self
        self.board.now = self.loop.time
        self.store = LedgerStore(self.loop.now, picture.version)
        self.store.stage = self
        self.store.graceful = frozenset({"pods"})
        self.store.objects = dict(picture.objects)
        picture.group.at = began
        self.group = Group(picture.group, self.loop, chance)
        collector = Collector(self.store, self.loop, chance)
        self.nodes = Nodes(picture.nodes[KEY], self.store, self.group, self.loop, chance, collector)
        self.ledger = Ledger(self.store, self.group, self.nodes, self.board, self.loop)
        self.ledger.listeners.extend(listeners)
        self.lives = WatchedLives(self._process, self.loop, self.board)
        for one in listeners:
            one.began(self)

    @property
    def now(self) -> float:
        """The world's clock, in seconds."""
        return self.loop.time()

    def strikes(self, what: str, which: int = 0) -> None:
        """Let a deed or a fault of the world happen now."""
        self.act(lambda: self.board.strikes(Disturbance("second", 0, what, which)))

    def act(self, deed: Callable[[], object]) -> None:
        """Do something inside the loop."""

        async def inside() -> None:
            deed()
            await asyncio.sleep(0)

        self.loop.run_until_complete(inside())

    def wait(self, seconds: float) -> None:
        """Let time pass; the listeners look every few seconds."""
        until = self.now + seconds
        while self.now < until - 0.001:
            self.loop.run_until_complete(asyncio.sleep(min(LOOKED_EVERY, until - self.now)))
            self.ledger.passed()

    def close(self) -> None:
        """End all processes and the loop."""
        self.act(self.lives.end)
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        if left:
            self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self.loop.close()

    def app(self) -> Json:
        """The StreamApp."""
        found = self.store.get("streamapps", NAMESPACE, NAME)
        assert found is not None
        return found

    def statefulset(self) -> Json | None:
        """The StatefulSet."""
        return self.store.get("statefulsets", NAMESPACE, NAME)

    def current(self) -> int:
        """Current replicas; 0 without a StatefulSet."""
        own = self.statefulset()
        return 0 if own is None else int(own["spec"]["replicas"])

    def desired(self) -> int:
        """Desired replicas."""
        return int(self.app()["spec"].get("replicas", 1))

    def pod(self, ordinal: int) -> Json | None:
        """A pod."""
        return self.store.get("pods", NAMESPACE, f"{NAME}-{ordinal}")

    def disturbed_until(self) -> float:
        """When the last fault struck or ended; the present if no process acts or the API server is slow."""
        if self.lives.present is None:
            return self.now
        back = self.lives.away[-1][1] if self.lives.away else -1000.0
        slow = min(self.now, self.ledger.slow_until)
        return max(self.ledger.struck_at, back, slow)

    def _process(self, number: int, lives: Lives) -> Instance:
        groups = {self.group.truth.application_id: self.group}
        instance = Instance(number, self.loop, self.store, groups, self.board, self.ledger, lives)
        listening = {name: ListeningGroup(one, self.ledger, number) for name, one in instance.groups.items()}
        instance.groups = listening  # type: ignore[assignment]
        return instance

    def _happen(self, what: str, which: int) -> bool:
        """A deed or a fault that was planned for a call; False: it is for the call itself."""
        if what not in self.deeds:
            return False
        self.deeds[what](which)
        return True


def stage_of(
    ground: str, seed: int, listeners: Sequence[Listener] = (), figures: Figures | None = None, *, is_told: bool = True
) -> Stage:
    """A stage on which the operator has just started beside an application at rest."""
    text, began = _brought_up(ground)
    picture: Picture = pickle.loads(text)  # noqa: S301 (made by this process)
    stage = Stage(picture, began, seed, listeners)
    stage.group.truth.shape = GROUNDS[ground].shape
    stage.board.is_told = is_told
    if figures is not None:
        stage.ledger.figures = figures
    stage.act(stage.lives.begin)
    return stage


@cache
def _brought_up(ground: str) -> tuple[bytes, float]:
    """A world that the operator brought up from nothing, and its age in seconds."""
    one = GROUNDS[ground]
    stage = Stage(fresh_picture(one.replicas, replace(one.shape, restore=FAST), **one.spec), 0.0, 0)
    stage.act(stage.lives.begin)
    stage.wait(30.0)
    while not _is_quiet(stage):
        assert stage.now < 3000, f"{ground}: it was never quiet"
        stage.wait(10.0)
    stage.wait(90.0)
    stage.act(stage.lives.end)
    groups, nodes = {stage.group.truth.application_id: stage.group.truth}, {KEY: stage.nodes.truth}
    picture = Picture(stage.store.objects, groups, nodes, stage.store.version)
    made = pickle.dumps(picture), stage.now
    stage.close()
    return made


def _is_quiet(stage: Stage) -> bool:
    truth = stage.group.truth
    running = {task for member in truth.members.values() for task in member.running}
    lags = [truth.lag(m.run.volume, task) for m in truth.members.values() if m.run is not None for task in m.standby]
    return running == set(stage.group.tasks) and not truth.follow_up and all(lag < 1000 for lag in lags)
