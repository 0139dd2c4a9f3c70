"""A former process without a Lease: what stops it is the number of the later one in the hold record."""

import asyncio
from dataclasses import replace

import pytest

from streamapp.api.names import HOLD_RECORD
from streamapp.controller.leader.leadership import Alone, NotLeadingError
from streamapp.core.facts.hold_annotation import decode, encode
from streamapp.core.facts.hold_record import HoldRecord
from tests.controller.doubles.bench import KEY, Bench, a_bench

OWN = 7
"""The number of the process that is tested."""


def written_by(bench: Bench, number: int) -> None:
    """Have a process with this number write its epoch into the hold record."""
    record, live = decode(bench.record() or ""), bench.statefulset()
    assert isinstance(record, HoldRecord)
    text = encode(replace(record, epoch=replace(record.epoch, lease=number).next(number, bench.clock.now())))
    metadata = live["metadata"]
    annotations = {**metadata["annotations"], HOLD_RECORD: text}
    bench.server.put("statefulsets", {**live, "metadata": {**metadata, "annotations": annotations}})


async def begin(bench: Bench, number: int, losses: list[int]) -> None:
    """Start a process with this number in place of the one before."""
    await bench.restart()
    leadership = Alone(transitions=number, lost=lambda: losses.append(number))
    bench.applier._leadership = bench.gatherer._leadership = leadership


async def hold_of(bench: Bench, losses: list[int]) -> None:
    """Begin a hold with a process of this number, which notes that it ends."""
    await begin(bench, OWN, losses)
    bench.group.lag = 500_000
    bench.desired(3)
    await bench.run(lambda: bench.record() is not None)


@pytest.mark.guarantee(2)
def test_a_process_that_a_later_one_has_replaced_takes_no_pod_and_ends() -> None:
    """It froze, and reads all anew when it wakes up: nothing that it writes would meet an older version."""

    async def play() -> None:
        losses: list[int] = []
        async with a_bench(4) as bench:
            await hold_of(bench, losses)
            written_by(bench, OWN + 1)
            bench.group.lag, before = 0, len(bench.server.writes)
            for _ in range(30):
                bench.clock.move(2)
                assert not await bench.make_pass()
            with pytest.raises(NotLeadingError, match="process 8 has written it"):
                await bench.reconciler.reconcile(KEY)
            assert (bench.granted(), len(bench.server.writes) - before, set(losses)) == (4, 0, {OWN})

    asyncio.run(play())


@pytest.mark.guarantee(2)
@pytest.mark.parametrize("number", [OWN - 1, OWN])
def test_the_number_of_a_former_process_ends_no_other(number: int) -> None:
    async def play() -> None:
        losses: list[int] = []
        async with a_bench(4) as bench:
            await hold_of(bench, losses)
            written_by(bench, number)
            bench.group.lag = 0
            await bench.run(lambda: bench.is_settled(3))
            assert (losses, bench.wrongs) == ([], [])

    asyncio.run(play())


@pytest.mark.guarantee(2)
def test_a_process_that_begins_with_a_larger_number_on_record_goes_on() -> None:
    """The clock of its node is behind, or a Lease was counted there before."""

    async def play() -> None:
        losses: list[int] = []
        async with a_bench(4) as bench:
            await hold_of(bench, losses)
            written_by(bench, OWN + 1)
            await begin(bench, 1, losses)
            bench.group.lag = 0
            await bench.run(lambda: bench.is_settled(3))
            assert (losses, bench.wrongs) == ([], [])

    asyncio.run(play())


@pytest.mark.guarantee(3)
def test_a_raise_on_the_record_of_a_later_process_is_made_all_the_same() -> None:
    async def play() -> None:
        losses: list[int] = []
        async with a_bench(4) as bench:
            await hold_of(bench, losses)
            written_by(bench, OWN + 1)
            bench.desired(5)
            await bench.make_pass()
            assert bench.granted() == 5

    asyncio.run(play())
