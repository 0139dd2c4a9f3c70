"""A change of the replicas is predicted when it begins, and compared with what was seen when it is over."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from streamapp.controller.reconcile import forecasts
from streamapp.controller.record.recorder import PassRecorder
from streamapp.flightrecord.changes import FlightLog, Look
from streamapp.flightrecord.schema import ForecastClosedLine, ForecastLine, ForecastResult, Record
from streamapp.kube.client.kinds import Key
from tests.controller.doubles.bench import KEY, Bench, a_bench

HEAD = {"cluster": "lab", "namespace": "shop", "app": "orders", "uid": "u", "recorder": "pod_1"}


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Record]:
    """The lines about forecasts that the passes add to the record."""
    lines: list[Record] = []
    log = FlightLog(HEAD)

    def record(_: PassRecorder, key: Key, look: Look) -> None:
        assert key == KEY
        lines.extend(line for line in log.lines(look) if isinstance(line, ForecastLine | ForecastClosedLine))

    monkeypatch.setattr(PassRecorder, "record", record)
    return lines


async def settle(bench: Bench, passes: int, until: Callable[[], bool] = lambda: False) -> None:
    """Let time pass, and let threads end."""
    for _ in range(passes):
        if until():
            return
        bench.clock.move(2)
        await bench.make_pass()
        await asyncio.sleep(0.005)


def metric(bench: Bench, name: str) -> float | None:
    labels = {"namespace": KEY.namespace, "name": KEY.name}
    return bench.metrics.registry.get_sample_value(name, labels)


def test_a_scale_down_is_predicted_before_and_compared_after(found: list[Record]) -> None:
    async def story() -> None:
        async with a_bench() as bench:
            await settle(bench, 3)
            assert found == []
            bench.desired(3)
            await settle(bench, 90, lambda: len(found) == 2)
            made, closed = found
            assert isinstance(made, ForecastLine)
            assert isinstance(closed, ForecastClosedLine)
            assert (made.from_replicas, made.to_replicas, made.opened_at) == (4, 3, closed.opened_at)
            assert made.ts < closed.ts
            assert closed.result is not ForecastResult.SUPERSEDED
            assert closed.seen_seconds is not None
            assert closed.seen_seconds > 0
            assert closed.seen_moves is not None
            assert metric(bench, "streamapp_forecast_wrong_moves") == closed.wrong_moves
            assert metric(bench, "streamapp_forecast_error_ratio") == closed.error_ratio
            application = bench.applications.find(KEY)
            assert application is not None
            # None is learned where the rebalances alone were predicted to take longer than all of it took.
            assert all(0 < pause < closed.seen_seconds for pause in application.memory.speeds.pauses_down)

    asyncio.run(story())


def test_a_change_that_another_one_ends_is_superseded(found: list[Record]) -> None:
    async def story() -> None:
        async with a_bench() as bench:
            await settle(bench, 3)
            bench.group.lag = 500_000
            bench.desired(3)
            await settle(bench, 5)
            bench.desired(4)
            await settle(bench, 5)
            assert [type(line).__name__ for line in found] == ["ForecastLine", "ForecastClosedLine"]
            (_, closed) = found
            assert isinstance(closed, ForecastClosedLine)
            assert (closed.result, closed.seen_seconds) == (ForecastResult.SUPERSEDED, None)

    asyncio.run(story())


def test_a_forecast_that_fails_ends_no_pass(found: list[Record], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the model has a fault")

    async def story() -> None:
        async with a_bench() as bench:
            await settle(bench, 3)
            monkeypatch.setattr(forecasts, "_made", broken)
            bench.desired(3)
            await settle(bench, 90, lambda: bench.granted() == 3)
            assert (bench.granted(), found) == (3, [])

    asyncio.run(story())


def test_an_observer_of_a_forecast_that_fails_ends_no_pass(
    found: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> bool:
        raise RuntimeError("the model has a fault")

    async def story() -> None:
        async with a_bench() as bench:
            monkeypatch.setattr(forecasts, "is_settled", broken)
            await settle(bench, 3)
            bench.desired(3)
            await settle(bench, 90, lambda: bench.granted() == 3)
            assert (bench.granted(), found) == (3, [])

    asyncio.run(story())


def test_no_pass_waits_for_a_forecast(found: list[Record], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does what passes leave to other threads: there is one such thread here, and no forecast takes it."""
    is_over, began = Event(), Event()

    def slow(*_: object) -> None:
        began.set()
        is_over.wait()

    async def story() -> None:
        async with a_bench() as bench:
            await settle(bench, 3)
            monkeypatch.setattr(forecasts, "_made", slow)
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
            bench.desired(3)
            try:
                await asyncio.wait_for(settle(bench, 90, lambda: bench.granted() == 3), 30)
                await asyncio.wait_for(asyncio.to_thread(began.is_set), 30)
            finally:
                is_over.set()
            assert (bench.granted(), began.is_set(), found) == (3, True, [])

    asyncio.run(story())


def test_a_large_application_gets_no_forecast(found: list[Record], monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with a_bench() as bench:
            await settle(bench, 3)
            monkeypatch.setattr(forecasts, "MOST_SIZE", 1)
            bench.desired(3)
            await settle(bench, 90, lambda: bench.granted() == 3)
            assert (bench.granted(), found) == (3, [])

    asyncio.run(story())
