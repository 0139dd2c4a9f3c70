"""A decision that takes long is made in a thread first: other applications go on, and a raise waits for none."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from streamapp.controller.apps import long_plays
from streamapp.controller.apps.raise_watch import RaiseWatch
from streamapp.controller.reconcile import reconciler
from streamapp.core.actions.decision import Decision
from streamapp.core.decide import decide
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from tests.builders import a_snapshot
from tests.controller.doubles.bench import KEY, NAME, Bench, a_bench
from tests.controller.doubles.fake_pods import NAMESPACE

PATIENCE = 10.0


class Plays:
    """Stands for a decision that takes as long as the test wants."""

    def __init__(self) -> None:
        self.threads: set[str] = set()
        self.has_begun = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()

    def decide(self, snapshot: Snapshot, policy: ScalingPolicy) -> Decision:
        self.threads.add(threading.current_thread().name.partition("_")[0])
        self.has_begun.set()
        self.may_end.wait(PATIENCE)
        return decide(snapshot, policy)

    async def begin(self, bench: Bench) -> "asyncio.Future[bool]":
        """Begin a pass whose decision takes long; the loop goes on, or this never returns."""
        for _ in range(3):
            bench.clock.move(10)
            await bench.make_pass()
        self.has_begun.clear()
        self.may_end.clear()
        going = asyncio.ensure_future(bench.make_pass())
        assert await asyncio.to_thread(self.has_begun.wait, PATIENCE)
        assert not going.done()
        return going


def decided_in_the_loop(*_: object) -> Decision:
    raise AssertionError("a decision that takes long was made in the loop")


@pytest.fixture
def plays(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plays]:
    found = Plays()
    monkeypatch.setattr(long_plays, "takes_long", lambda *_: True)
    monkeypatch.setattr(long_plays, "decide", found.decide)
    yield found
    found.may_end.set()


@pytest.mark.guarantee(3)
def test_the_loop_goes_on_while_a_long_decision_is_made(plays: Plays) -> None:
    async def play() -> None:
        async with a_bench(3) as bench:
            going = await plays.begin(bench)
            plays.may_end.set()
            assert await going
            assert plays.threads == {"plays"}

    asyncio.run(play())


@pytest.mark.guarantee(3)
def test_a_raise_does_not_wait_for_a_long_decision(plays: Plays, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is that decision made once more in the loop: the pass ends."""

    async def play() -> None:
        async with a_bench(3) as bench:
            going = await plays.begin(bench)
            monkeypatch.setattr(reconciler, "decide", decided_in_the_loop)
            bench.desired(5)
            live = bench.server.get("streamapps", NAMESPACE, NAME)
            assert live is not None
            bench.applications.remember_resource(KEY, live)
            assert await asyncio.wait_for(going, PATIENCE / 2)
            monkeypatch.setattr(reconciler, "decide", decide)
            plays.may_end.set()
            await bench.make_pass()
            assert bench.granted() == 5

    asyncio.run(play())


@pytest.mark.guarantee(3)
def test_no_pass_waits_for_a_long_decision_until_it_counts_as_stuck(
    plays: Plays, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several wait for one thread, and a liveness probe that fails for it would end the process for all tenants."""
    monkeypatch.setattr(long_plays, "PATIENCE_SECONDS", 0.01)
    plays.may_end.clear()

    async def play() -> list[bool]:
        waiting, no_raise = long_plays.LongPlays(), RaiseWatch(lambda: False, asyncio.Event().wait)
        passes = (waiting.are_over(a_snapshot(), ScalingPolicy(), no_raise) for _ in range(3))
        return await asyncio.gather(*passes)

    assert asyncio.run(play()) == [False, False, False]
