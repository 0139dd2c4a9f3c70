"""A tenant names brokers of his own: whatever they send, the operator keeps its memory and serves all others."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.tenants.brokers import (
    API_VERSIONS,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    HostileBroker,
    api_versions,
    crowded_group,
    endless_api_versions,
    itself_as_coordinator,
)
from tests.tenants.stage import MOST_MIB, a_stage

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
MIB = 1024 * 1024


def crowded(name: str, members: int, *, trickles: bool = False) -> HostileBroker:
    answers = {
        API_VERSIONS: api_versions,
        FIND_COORDINATOR: itself_as_coordinator(name),
        DESCRIBE_GROUPS: crowded_group(name, members),
    }
    return HostileBroker(answers, trickles=trickles)


def test_brokers_that_send_too_much_are_refused_and_no_other_application_waits(tmp_path: Path) -> None:
    brokers = {
        "greeting": (
            HostileBroker({API_VERSIONS: endless_api_versions(40 * MIB)}),
            "an answer of 419430.* at most 65536 are read",
        ),
        "beyond": (crowded("beyond", 6 * MIB), "an answer of .* at most 16777216 are read"),
        "crowd": (crowded("crowd", 2 * MIB), "more than 250000 values"),
        "members": (crowded("members", 100_000), "the group has 100000 members, at most 5000 are read"),
    }

    async def main() -> None:
        async with AsyncExitStack() as running, a_stage(tmp_path) as stage:
            for name, (broker, _) in brokers.items():
                await running.enter_async_context(broker.running())
                stage.add(name, kafka={"bootstrapServers": broker.address})
            for replicas in range(2, 8):
                await stage.raised(replicas)
            for name, (_, why) in brokers.items():
                await stage.until_told(name, "KafkaReachable", why)
            for replicas in range(8, 14):
                await stage.raised(replicas)
            assert stage.highest_mib() < MOST_MIB
            assert {name: broker.connections < 30 for name, (broker, _) in brokers.items()} == dict.fromkeys(
                brokers, True
            )

    asyncio.run(main())


def test_many_brokers_that_never_finish_a_large_answer_hold_no_more_than_the_budget(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncExitStack() as running, a_stage(tmp_path) as stage:
            for number in range(24):
                name = f"slow-{number}"
                broker = await running.enter_async_context(crowded(name, 2 * MIB, trickles=True).running())
                stage.add(name, kafka={"bootstrapServers": broker.address})
            for replicas in range(2, 12):
                await stage.raised(replicas)
                await asyncio.sleep(1)
            assert stage.highest_mib() < MOST_MIB

    asyncio.run(main())
