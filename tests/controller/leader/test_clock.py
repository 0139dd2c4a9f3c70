"""Clocks that are set, and machines that sleep: neither makes an old fact look new."""

import asyncio
import inspect
import time
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamapp.controller.http.probes import Health
from streamapp.controller.leader.clock import SLEW, SteadyClock, earliest, latest, offset_of, seconds_since_boot
from streamapp.controller.process import Operator
from streamapp.controller.reconcile.apply import Applier
from streamapp.controller.reconcile.gather import Gatherer
from streamapp.kube.client.errors import ConflictError
from streamapp.kube.objects import pods
from tests.controller.doubles.bench import a_bench
from tests.controller.doubles.fake_pods import NAMESPACE
from tests.support.example import NOW


class Clocks:
    """A wall clock that can be set, and one that cannot."""

    def __init__(self) -> None:
        self.passed, self.set_by = 0.0, 0.0
        self.steady = SteadyClock(self.wall, lambda: self.passed)

    def wall(self) -> datetime:
        """The wall clock."""
        return NOW + timedelta(seconds=self.passed + self.set_by)

    def error(self) -> float:
        """Seconds by which the steady clock is ahead of the wall clock."""
        return (self.steady() - self.wall()).total_seconds()


@pytest.mark.guarantee(1)
@given(st.lists(st.tuples(st.floats(0, 30), st.floats(-3600, 3600)), max_size=30))
def test_however_the_wall_clock_is_set_a_second_of_the_steady_clock_is_a_second(
    steps: list[tuple[float, float]],
) -> None:
    clocks = Clocks()
    shown = clocks.steady()
    for seconds, set_by in steps:
        clocks.passed, clocks.set_by, before = clocks.passed + seconds, set_by, shown
        shown = clocks.steady()
        assert abs((shown - before).total_seconds() - seconds) <= SLEW * seconds + 1e-5


@pytest.mark.parametrize("seconds", [60.0, -60.0])
def test_the_steady_clock_shows_what_the_wall_clock_was_set_to_after_an_hour(seconds: float) -> None:
    clocks = Clocks()
    clocks.set_by = seconds
    assert clocks.error() == -seconds
    for _ in range(60):
        clocks.passed += 60
        clocks.steady()
    assert clocks.error() == 0


def test_the_steady_clock_is_the_wall_clock_where_nobody_sets_it() -> None:
    clocks = Clocks()
    for _ in range(10):
        clocks.passed += 600
        assert clocks.error() == 0


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
                await pods.restart(bench.client, live, too_old)
            assert asked == ["last"]
            assert bench.server.get("pods", NAMESPACE, "counter-2") == live

    asyncio.run(play())


@pytest.mark.parametrize("by", [60.0, -60.0])
def test_dates_of_other_machines_are_compared_with_the_clock_that_errs_on_the_safe_side(by: float) -> None:
    clocks = Clocks()
    clocks.set_by = by
    wall, steady = clocks.wall(), clocks.steady()
    assert (earliest(clocks.steady), latest(clocks.steady)) == (min(wall, steady), max(wall, steady))
    assert offset_of(clocks.steady) == wall - steady
    assert earliest(clocks.wall) == latest(clocks.wall) == wall


def test_a_clock_that_was_set_makes_the_probe_fail_and_a_new_process_has_the_right_time() -> None:
    async def faults(by: float) -> list[str]:
        return Health(lambda: 0.0, 1, 1, clock_offset=lambda: timedelta(seconds=by)).faults()

    assert asyncio.run(faults(-30.0)) == []
    assert asyncio.run(faults(-31.0)) == ["clock: it was set by 31 s, and a new process begins with it"]
