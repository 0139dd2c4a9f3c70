"""The election goes on while the event loop that works does not get round to anything."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from kubernetes.aio.client.configuration import Configuration

from streamapp.controller.leader.election import Elector, LeaseTiming
from streamapp.controller.leader.leadership import Alone, NotLeadingError
from streamapp.controller.leader.thread_loop import RemoteLeadership, ThreadLoop
from streamapp.kube.client.client import KubeClient
from streamapp.kube.client.kinds import LEASES, Key
from tests.kube.api_server import ApiServer

KEY = Key("system", "streamapp-operator")
TIMING = LeaseTiming(lease=3, renew=2, retry=0.5)
LONG_SECONDS = 4.0


@asynccontextmanager
async def an_api_server(there: ThreadLoop) -> AsyncIterator[tuple[ApiServer, str]]:
    """Serve from another loop than the one that is to be kept busy."""
    server = ApiServer(lambda: datetime.now(UTC))
    serving = server.serving()

    async def enter() -> str:
        return await serving.__aenter__()

    async def leave() -> None:
        await serving.__aexit__(None, None, None)

    url = await there.run(enter())
    try:
        yield server, url
    finally:
        await there.run(leave())


def keep_busy(seconds: float) -> None:
    """As a long decision does: in Python, with nothing awaited."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


@pytest.mark.slow
def test_a_long_decision_costs_no_renewal() -> None:
    asyncio.run(renewed_meanwhile())


async def renewed_meanwhile() -> None:
    lost: list[str] = []
    async with (
        ThreadLoop.running("server") as there,
        an_api_server(there) as (server, url),
        ThreadLoop.running("election") as own,
    ):

        async def connected() -> KubeClient:
            return KubeClient(Configuration(host=url), deadline_seconds=TIMING.request)

        client = await own.run(connected())
        leadership = RemoteLeadership(
            Elector(client, KEY, "operator-a_1", TIMING, lost=lambda: lost.append("lost")), own
        )
        await leadership.stand()
        keeping = asyncio.create_task(leadership.keep())
        await asyncio.sleep(0)
        keep_busy(LONG_SECONDS)
        assert leadership.leads()
        leadership.check()
        await leadership.confirm()
        keeping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await keeping
        await leadership.release()
        lease = server.get(LEASES.plural, KEY.namespace, KEY.name)
        assert lease is not None
        assert lease["spec"].get("holderIdentity", "") == ""
        await own.run(client.close())
    assert lost == []


def test_what_is_raised_there_is_raised_here() -> None:
    async def fail() -> None:
        raise NotLeadingError("Lease", "it is over", "stand by")

    async def ask() -> None:
        async with ThreadLoop.running("one") as own:
            await own.run(fail())

    with pytest.raises(NotLeadingError, match="it is over"):
        asyncio.run(ask())


class Over(Alone):
    """Another replica leads."""

    def leads(self) -> bool:
        return False

    def check(self) -> None:
        raise NotLeadingError("Lease", "it is over", "stand by")


@pytest.mark.guarantee(2)
def test_a_term_that_is_over_there_is_over_here() -> None:
    async def ask() -> None:
        async with ThreadLoop.running("one") as own:
            remote = RemoteLeadership(Over(), own)
            assert not remote.leads()
            with pytest.raises(NotLeadingError, match="it is over"):
                remote.check()
            with pytest.raises(NotLeadingError, match="process 5 has written it"):
                await remote.give_way(5)

    asyncio.run(ask())
