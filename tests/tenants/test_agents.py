"""A tenant's pods take connections and never answer: the agents of all others are asked in time."""

import asyncio
import socket
from dataclasses import replace

import pytest

from streamapp.agents.answers import AgentAddress
from streamapp.agents.client import AgentClient
from streamapp.core.facts.agent_reports import AgentReport
from streamapp.core.facts.ids import Ordinal
from tests.agents.agent_server import TOKEN, AgentServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
PODS = 250
TENANTS = 4
FRESH_SECONDS = 10.0
"""Facts that are older decide nothing; the review of a removal asks twice."""


def pods_of(tenant: int, place: AgentAddress) -> list[AgentAddress]:
    return [
        replace(place, ordinal=Ordinal(number), pod_uid=f"{tenant}-{number}", pod=f"bad-{number}")
        for number in range(PODS)
    ]


def test_a_thousand_agents_that_never_answer_make_no_facts_of_another_application_stale() -> None:
    async def main(port: int) -> list[float]:
        client, loop, took = AgentClient(), asyncio.get_running_loop(), []
        async with AgentServer().serving() as sound:

            async def storm(tenant: int) -> None:
                while True:
                    await client.read(pods_of(tenant, replace(sound.place, port=port)), "bad", f"token-{tenant}")

            storms = [asyncio.create_task(storm(tenant)) for tenant in range(TENANTS)]
            await asyncio.sleep(0.5)
            for _ in range(12):
                began = loop.time()
                (one,) = await client.read([sound.place], "wordcount", TOKEN)
                took.append(loop.time() - began)
                assert isinstance(one.reply, AgentReport), one.reply
                await asyncio.sleep(0.5)
            for task in storms:
                task.cancel()
            await asyncio.gather(*storms, return_exceptions=True)
            await client.close()
        return took

    with socket.create_server(("127.0.0.1", 0), backlog=4096) as deaf:  # the kernel accepts, and no answer ever comes
        first, *others = asyncio.run(main(deaf.getsockname()[1]))
    assert first < FRESH_SECONDS / 2
    assert max(others) < FRESH_SECONDS / 2
