"""A raise waits for no broker and no agent: what they were asked to do goes on without the pass."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from streamapp.controller.agents.access import AgentGateway
from streamapp.controller.agents.keys import KeyFile
from streamapp.controller.ports import KafkaStepError
from streamapp.controller.reconcile.apply import Applier, RaisePendingError, StepObserver
from streamapp.controller.reconcile.gather import Gathered, ReplicaFacts
from streamapp.core.actions.decision import TriggerRebalance
from streamapp.core.reasons import Reason
from streamapp.kube.client.errors import ConflictError
from tests.controller.doubles.bench import KEY, NAME, Bench, a_bench
from tests.controller.doubles.fake_group import FakeGroup
from tests.controller.doubles.fake_pods import NAMESPACE

PATIENCE = 30.0
"""Seconds after which what waits is stuck."""


@dataclass
class HangingBrokers:
    """Brokers that are asked for rebalances and answer when the test says so."""

    why: str | None = None
    """The answer is an error."""
    asked: list[str] = field(default_factory=list)
    abandoned: list[str] = field(default_factory=list)
    """Requests that were cancelled."""
    is_asked: asyncio.Event = field(default_factory=asyncio.Event)
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def trigger_rebalance(self, like_member: str) -> None:
        """Answer late."""
        self.asked.append(like_member)
        self.is_asked.set()
        try:
            await self.goes_on.wait()
        except asyncio.CancelledError:
            self.abandoned.append(like_member)
            raise
        if self.why is not None:
            raise KafkaStepError(self.why)


@contextmanager
def hanging(brokers: HangingBrokers) -> Iterator[None]:
    """Have the group of the bench ask these brokers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FakeGroup, "trigger_rebalance", lambda _, like_member: brokers.trigger_rebalance(like_member))
        yield


def on_a_bench(play: Callable[[Bench, HangingBrokers], Coroutine[Any, Any, None]], why: str | None = None) -> None:
    """Play something on a bench whose application has four pods and is converged."""

    async def run() -> None:
        brokers = HangingBrokers(why)
        async with a_bench(4) as bench:
            with hanging(brokers):
                await play(bench, brokers)

    asyncio.run(run())


async def gathered(bench: Bench) -> Gathered:
    """The facts, as a pass reads them."""
    facts = await bench.gatherer.read_replicas(KEY)
    assert isinstance(facts, ReplicaFacts)
    return await bench.gatherer.gather(facts)


def receive(bench: Bench, replicas: int) -> None:
    """Write the StreamApp, and have its event delivered."""
    bench.desired(replicas)
    bench.applications.remember_resource(KEY, bench.server.get("streamapps", NAMESPACE, NAME) or {})


async def ask(bench: Bench, on_step: StepObserver = lambda _step, _is_done: None) -> Gathered:
    """Ask for a rebalance; give the facts that the plan rests on."""
    facts = await gathered(bench)
    step = TriggerRebalance(like_member=next(iter(bench.group.members)), reason=Reason.ReadingsPending)
    await bench.applier.apply(facts, (step,), on_step)
    return facts


async def ask_and_raise(bench: Bench, brokers: HangingBrokers, on_step: StepObserver) -> None:
    """Ask for a rebalance, and receive a raise before its answer: the plan ends."""
    asking = asyncio.ensure_future(ask(bench, on_step))
    await asyncio.wait_for(brokers.is_asked.wait(), PATIENCE)
    receive(bench, 6)
    with pytest.raises(RaisePendingError):
        await asyncio.wait_for(asking, PATIENCE)


@pytest.mark.guarantee(3)
def test_a_raise_is_made_while_brokers_hang_and_they_are_asked_nothing_else_meanwhile() -> None:
    async def play(bench: Bench, brokers: HangingBrokers) -> None:
        outcomes: list[bool] = []
        await ask_and_raise(bench, brokers, lambda _, is_done: outcomes.append(is_done))
        assert await bench.make_pass()
        assert (bench.granted(), outcomes) == (6, [])
        with pytest.raises(ConflictError, match="has not ended"):
            await asyncio.wait_for(ask(bench), PATIENCE)
        application = bench.applications.find(KEY)
        assert application is not None
        assert application.request is not None
        before = application.memory.rebalances.sent
        brokers.goes_on.set()
        await application.request
        assert (outcomes, len(brokers.asked)) == ([True], 1)
        assert len(application.memory.rebalances.sent) == len(before) + 1
        await ask(bench)
        assert len(brokers.asked) == 2

    on_a_bench(play)


def test_what_fails_after_its_pass_is_logged_and_can_be_asked_again() -> None:
    async def play(bench: Bench, brokers: HangingBrokers) -> None:
        outcomes: list[bool] = []
        await ask_and_raise(bench, brokers, lambda _, is_done: outcomes.append(is_done))
        application = bench.applications.find(KEY)
        assert application is not None
        assert application.request is not None
        brokers.goes_on.set()
        with capture_logs() as logs:
            await asyncio.wait({application.request})
            await asyncio.sleep(0)
        events = [(one["event"], one["step"], one["error"]) for one in logs]
        assert events == [("step failed after its pass", f"TriggerRebalance of {KEY}", "no answer")]
        assert outcomes == [False]
        with pytest.raises(KafkaStepError, match="no answer"):
            await ask(bench)

    on_a_bench(play, "no answer")


def test_who_cancels_a_pass_cancels_what_it_asked() -> None:
    async def play(bench: Bench, brokers: HangingBrokers) -> None:
        asking = asyncio.ensure_future(ask(bench))
        await asyncio.wait_for(brokers.is_asked.wait(), PATIENCE)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.sleep(0)
        assert brokers.abandoned == brokers.asked

    on_a_bench(play)


def test_who_forgets_an_application_cancels_what_goes_on_without_a_pass() -> None:
    async def play(bench: Bench, brokers: HangingBrokers) -> None:
        await ask_and_raise(bench, brokers, lambda _step, _is_done: None)
        bench.applications.forget(KEY)
        await asyncio.sleep(0)
        assert brokers.abandoned == brokers.asked

    on_a_bench(play)


@pytest.mark.guarantee(3)
def test_a_raise_is_made_while_agents_hang_that_a_removal_asks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "keys").write_bytes(b"0123456789abcdef0123456789abcdef")
    sound = Applier._check_agents

    async def main() -> None:
        is_asked = asyncio.Event()

        async def read_reports(*_: object) -> None:
            is_asked.set()
            await asyncio.Event().wait()

        async def check_agents(self: Applier, facts: Gathered, what: str) -> None:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(AgentGateway, "read_reports", read_reports)
                await sound(self, facts, what)

        async with a_bench(4) as bench:
            bench.keys = KeyFile(str(tmp_path / "keys"))
            await bench.restart()
            bench.group.assignor = bench.agents.assign
            monkeypatch.setattr(Applier, "_check_agents", check_agents)
            bench.desired(3, agent={"enabled": True})
            removing, asking = asyncio.ensure_future(bench.run(is_asked.is_set)), asyncio.ensure_future(is_asked.wait())
            await asyncio.wait({removing, asking}, return_when=asyncio.FIRST_COMPLETED)
            assert (asking.done(), bench.granted()) == (True, 4)
            receive(bench, 6)
            await asyncio.wait_for(removing, PATIENCE)
            await bench.make_pass()
            assert bench.granted() == 6

    asyncio.run(main())
