"""A spec that becomes invalid while a step is open: the step is brought to its end, and the resource tells why."""

import asyncio
from typing import Any

import pytest

from tests.controller.doubles.bench import Bench, a_bench
from tests.controller.doubles.fake_pods import NAMESPACE

SOUND: dict[str, Any] = {"containers": [{"name": "app", "image": "app:1"}]}
BROKEN: dict[str, Any] = {**SOUND, "initContainers": [{"name": "streamapp-seed", "image": "mine:1"}]}


def budget(bench: Bench) -> int:
    """What the disruption budget allows."""
    found = bench.server.get("poddisruptionbudgets", NAMESPACE, "counter") or {}
    return int(found["spec"]["maxUnavailable"])


@pytest.mark.guarantee(8)
def test_an_open_step_is_closed_and_told_of_although_the_spec_is_invalid_by_now() -> None:
    async def play() -> None:
        async with a_bench(4) as bench:
            bench.desired(3)
            await bench.run(lambda: bench.granted() == 3)
            assert budget(bench) == 0
            bench.desired(3, template={"spec": BROKEN})
            await bench.run(lambda: budget(bench) == 1 and bench.record() is None)
            assert bench.condition("Stalled") == ("True", "InvalidSpec")
            assert (bench.wrongs, bench.group.wrongs) == ([], [])

    asyncio.run(play())
