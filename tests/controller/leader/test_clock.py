"""Clocks that are set, and machines that sleep: neither makes an old fact look new."""

import asyncio
import inspect
import time

import pytest

from streamapp.controller.leader.clock import seconds_since_boot
from streamapp.controller.process import Operator
from streamapp.controller.reconcile.apply import Applier
from streamapp.controller.reconcile.gather import Gatherer
from streamapp.kube.client.errors import ConflictError
from streamapp.kube.objects import pods
from tests.controller.doubles.bench import KEY, a_bench
from tests.controller.doubles.fake_pods import NAMESPACE


@pytest.mark.guarantee(2)
def test_a_clock_that_is_set_back_does_not_make_old_readings_the_newest() -> None:
    async def play() -> None:
        async with a_bench(4) as bench:
            application = bench.applications.find(KEY)
            assert application is not None
            for _ in range(40):
                bench.clock.move(2)
                await bench.make_pass()
            old = application.memory.readings[0].ended_at
            bench.clock.move(-60)
            bench.group.is_reachable = False
            await bench.make_pass()
            assert bench.condition("KafkaReachable") == ("False", "BrokersUnreachable")
            assert all(reading.ended_at < old for reading in application.memory.readings)
            bench.group.is_reachable = True
            bench.desired(3)
            # and nothing waits until the clock is where it was
            await bench.run(lambda: bench.granted() == 3, 58)
            assert bench.clock.now() < old
            assert bench.group.wrongs == []
            assert [wrong for wrong in bench.wrongs if " to " in wrong] == []

    asyncio.run(play())


@pytest.mark.guarantee(2)
def test_a_judgement_grows_old_while_the_machine_sleeps() -> None:
    assert seconds_since_boot() == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=5)
    for part in (Gatherer, Applier, Operator):
        assert inspect.signature(part).parameters["monotonic"].default is seconds_since_boot


@pytest.mark.guarantee(2)
def test_a_restart_that_had_to_wait_for_its_turn_is_not_sent_on_an_old_judgement() -> None:
    async def play() -> None:
        async with a_bench(4) as bench:
            live = bench.server.get("pods", NAMESPACE, "counter-2")
            assert live is not None
            asked: list[str] = []

            def too_old() -> None:
                asked.append("last")
                raise ConflictError("judgement", "it is too old", "it is judged anew")

            with pytest.raises(ConflictError, match="too old"):
                await pods.restart(bench.client, live, live["metadata"]["uid"], too_old)
            assert asked == ["last"]
            assert bench.server.get("pods", NAMESPACE, "counter-2") == live

    asyncio.run(play())
