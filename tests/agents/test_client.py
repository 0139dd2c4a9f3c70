"""Requests to agents, against real HTTP servers that answer, lie, dawdle and break off."""

import asyncio
import gzip
import json
import re
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web

from lab.settings import REPOSITORY
from streamapp.agents.answers import AgentAddress, AgentReading, AnnouncementOutcome, AnnouncementResult
from streamapp.agents.client import DEADLINE_SECONDS, AgentClient
from streamapp.agents.turns import Turns
from streamapp.core.facts.agent_reports import AgentReport, AgentSilent, Rebalance
from streamapp.core.facts.hold_record import Epoch
from streamapp.core.facts.ids import Ordinal
from streamapp.wire.agent_report import MOST_BYTES
from streamapp.wire.announcement import announcement, heartbeat_cap
from tests.agents.agent_server import TOKEN, AgentServer, raw_server
from tests.wire.agent_reports import ASKED_AT, FULL

EPOCH = Epoch(lease=2, counter=7)
NEWS = announcement((), EPOCH, Rebalance.CONSERVATIVE, timedelta(seconds=20))
SHORT = 0.2
"""Seconds of a deadline that a test waits for."""


@asynccontextmanager
async def a_client(deadline_seconds: float = 2.0, at_once: int = 8) -> AsyncIterator[AgentClient]:
    client = AgentClient(deadline_seconds, Turns(at_once, at_once), lambda: ASKED_AT)
    try:
        yield client
    finally:
        await client.close()


def read_from(place: AgentAddress, deadline_seconds: float = 2.0) -> Callable[[], Coroutine[None, None, AgentReading]]:
    async def ask() -> AgentReading:
        async with a_client(deadline_seconds) as client:
            (found,) = await client.read([place], "wordcount", TOKEN)
            return found

    return ask


def answer_of(answer: Any = None, deadline_seconds: float = 2.0) -> tuple[AgentReading, AgentServer]:
    """Ask a server that gives this answer."""

    async def play() -> tuple[AgentReading, AgentServer]:
        async with AgentServer(answer).serving() as server:
            return await read_from(server.place, deadline_seconds)(), server

    return asyncio.run(play())


def sentence(found: AgentReading, server: AgentServer | AgentAddress) -> str:
    """Why an agent is silent, without the words that every such sentence begins with."""
    place = server if isinstance(server, AgentAddress) else server.place
    assert isinstance(found.reply, AgentSilent)
    assert found.reply.ordinal == Ordinal(1)
    beginning = f"agent of pod wordcount-1 at 127.0.0.1:{place.port}: "
    assert found.reply.why.startswith(beginning), found.reply.why
    return found.reply.why.removeprefix(beginning)


def told(body: bytes | str, status: int = 200, headers: Mapping[str, str] | None = None) -> Any:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, body=body, headers=headers)

    return answer


def test_a_report_is_asked_for_with_the_token_and_read() -> None:
    found, server = answer_of()
    assert isinstance(found.reply, AgentReport)
    assert (found.reply.sequence, found.reply.as_of) == (7, ASKED_AT - timedelta(milliseconds=250))
    assert found.reply.known_by == ASKED_AT
    assert found.topology == "Topologies:\n   Sub-topology: 0\n"
    assert server.asked == [("GET", "/streamapp/v1/report", b"")]
    assert server.tokens == [f"Bearer {TOKEN}"]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            told('{"error": "no token"}', 401),
            "it does not accept the operator's token: restart the pod, so that it gets the hashes of the present keys, "
            "or see that the operator has the key it was started with",
        ),
        (told("", 500), "it answered 500; look at the agent's version"),
        (told('{"error": "an instance was asked in vain"}', 500), "it answered 500; an instance was asked in vain"),
        (
            told("<html>", 404),
            "it answered 404; something else than the agent listens there; see `spec.agent.port`",
        ),
        (told("", 302, {"Location": "http://127.0.0.1:1/"}), "it answered 302; look at the agent's version"),
        (
            told("<html>"),
            "agent's report (version 1): the whole: Invalid JSON: expected value at line 1 column 1; if the agent is "
            "newer than the operator, upgrade the operator",
        ),
        (
            told(json.dumps({**FULL, "version": 2})),
            "agent's report (version 1): version: Input should be 1; if the agent is newer than the operator, upgrade "
            "the operator",
        ),
        (
            told(json.dumps({**FULL, "instances": []})),
            "the agent knows no Kafka Streams instance of wordcount, nor of any other; see that the pod's "
            "`application.id` is wordcount, in one instance",
        ),
        (told(b" " * (MOST_BYTES + 1)), "its answer is longer than 1048576 bytes; look at the agent's version"),
        (
            told(gzip.compress(b" " * 10_000_000), 200, {"Content-Encoding": "gzip"}),
            "agent's report (version 1): the whole: Invalid JSON: expected value at line 1 column 1; if the agent is "
            "newer than the operator, upgrade the operator",
        ),
    ],
)
def test_an_answer_that_is_no_report_of_ours_is_a_sentence_with_the_next_step(answer: Any, says: str) -> None:
    found, server = answer_of(answer)
    assert sentence(found, server) == says
    assert len(server.asked) == 1


NO_WHOLE = (
    "no whole answer within 0.2 s; see that the pod runs the agent, and that a network policy lets the operator reach "
    "this port"
)


def test_an_agent_that_is_too_slow_to_begin_is_silent() -> None:
    async def dawdle(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    found, server = answer_of(dawdle, SHORT)
    assert sentence(found, server) == NO_WHOLE


@pytest.mark.slow  # real time
def test_an_agent_that_sends_a_byte_now_and_then_is_cut_off_by_the_deadline() -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(SHORT / 10)

    began = time.monotonic()
    found, server = answer_of(drip, SHORT)
    assert sentence(found, server) == NO_WHOLE
    assert time.monotonic() - began < 2


def test_an_answer_without_an_end_is_not_read_beyond_its_bound() -> None:
    sent = 0

    async def flood(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" " * 65536)
            sent += 65536

    found, server = answer_of(flood)
    assert sentence(found, server) == "its answer is longer than 1048576 bytes; look at the agent's version"
    assert sent < 16 * MOST_BYTES


def broken(write: Callable[[asyncio.StreamWriter], Any], deadline_seconds: float = 2.0) -> str:
    async def play() -> str:
        async with raw_server(write) as place:
            return sentence(await read_from(place, deadline_seconds)(), place)

    return asyncio.run(play())


def test_a_connection_that_is_closed_without_an_answer_is_named() -> None:
    async def close(_: asyncio.StreamWriter) -> None:
        return

    assert broken(close) == "the answer broke off (Server disconnected); look at the pod's log if it lasts"


def test_an_answer_that_breaks_off_is_not_taken_for_a_short_one() -> None:
    async def half(writer: asyncio.StreamWriter) -> None:
        body = json.dumps(FULL).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body[:-20]))
        await writer.drain()

    said = broken(half)
    assert said.startswith("the answer broke off (Response payload is not completed")
    assert said.endswith("); look at the pod's log if it lasts")


def test_something_else_than_http_is_named() -> None:
    async def garbage(writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x15\x03\x01\x00\x02\x02\x46 garbage\r\n\r\n")
        await writer.drain()

    said = broken(garbage)
    assert said.startswith("the answer broke off (")
    assert "look at the pod's log" in said


def test_a_port_where_nobody_listens_is_named() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        place = replace(AgentServer().place, port=bound.getsockname()[1])
        found = asyncio.run(read_from(place)())
    assert sentence(found, place) == (
        "it cannot be connected to (Connection refused); nothing listens there: look in the pod's log for lines of "
        "`streamapp-agent`; the agent needs Java 17 or newer"
    )


def test_an_ipv6_address_is_spoken_to_and_named_in_brackets() -> None:
    async def play() -> tuple[AgentReading, AgentAddress]:
        async with AgentServer(told("", 500), address="::1").serving() as server:
            return await read_from(server.place)(), server.place

    found, place = asyncio.run(play())
    assert isinstance(found.reply, AgentSilent)
    assert found.reply.why == (
        f"agent of pod wordcount-1 at [::1]:{place.port}: it answered 500; look at the agent's version"
    )


def test_an_address_that_is_none_is_a_sentence_too() -> None:
    place = replace(AgentServer().place, address="not an address", port=1)
    found = asyncio.run(read_from(place)())
    assert isinstance(found.reply, AgentSilent)
    assert found.reply.why.startswith("agent of pod wordcount-1 at not an address:1: ")


def test_one_silent_agent_does_not_hold_up_the_others() -> None:
    async def play() -> list[AgentReading]:
        async with (
            AgentServer().serving() as sound,
            raw_server(lambda _: asyncio.Event().wait()) as silent,
            a_client(SHORT) as client,
        ):
            places = [silent, *(replace(sound.place, ordinal=Ordinal(number)) for number in (5, 3))]
            return await client.read(places, "wordcount", TOKEN)

    silent, *others = asyncio.run(play())
    assert isinstance(silent.reply, AgentSilent)
    assert [one.reply.ordinal for one in others if isinstance(one.reply, AgentReport)] == [5, 3]


def test_all_are_asked_together_but_no_more_than_the_limit() -> None:
    async def slowly(_: web.Request) -> web.Response:
        await asyncio.sleep(0.02)
        return web.json_response(FULL)

    async def play(at_once: int) -> int:
        async with AgentServer(slowly).serving() as server, a_client(at_once=at_once) as client:
            found = await client.read([server.place] * 12, "wordcount", TOKEN)
            assert all(isinstance(one.reply, AgentReport) for one in found)
            return server.together

    assert asyncio.run(play(12)) == 12
    assert asyncio.run(play(3)) == 3


def tell(answer: Any = None, deadline_seconds: float = 2.0) -> tuple[AnnouncementResult, AgentServer]:
    async def play() -> tuple[AnnouncementResult, AgentServer]:
        async with AgentServer(answer).serving() as server, a_client(deadline_seconds) as client:
            (one,) = await client.announce([server.place], NEWS, TOKEN)
            return one, server

    return asyncio.run(play())


def test_an_announcement_that_is_taken_is_told_with_its_epoch() -> None:
    one, server = tell()
    assert one == AnnouncementResult(ordinal=Ordinal(1), outcome=AnnouncementOutcome.TAKEN, epoch=EPOCH)
    assert server.asked == [("PUT", "/streamapp/v1/leaving", NEWS)]
    assert server.tokens == [f"Bearer {TOKEN}"]


@pytest.mark.parametrize(
    ("answer", "epoch", "says"),
    [
        (
            told('{"error": "a higher epoch is known", "epoch": {"lease": 3, "counter": 1}}', 409),
            Epoch(3, 1),
            "it answered 409; a higher epoch is known; it knows the epoch 3/1: another operator has announced since",
        ),
        (told('{"error": "ttlSeconds is missing"}', 400), None, "it answered 400; ttlSeconds is missing"),
        (
            told("", 401),
            None,
            "it does not accept the operator's token: restart the pod, so that it gets the hashes of the present keys, "
            "or see that the operator has the key it was started with",
        ),
        (told("", 413), None, "it answered 413; look at the agent's version"),
    ],
)
def test_an_announcement_that_is_refused_says_why(answer: Any, epoch: Epoch | None, says: str) -> None:
    one, server = tell(answer)
    why = f"agent of pod wordcount-1 at 127.0.0.1:{server.port}: {says}"
    assert one == AnnouncementResult(ordinal=Ordinal(1), outcome=AnnouncementOutcome.REFUSED, epoch=epoch, why=why)


def test_a_heartbeat_cap_is_sent_to_its_own_place_and_may_be_refused() -> None:
    body = heartbeat_cap(timedelta(milliseconds=300), timedelta(minutes=1))

    async def play(answer: Any) -> tuple[AnnouncementResult, AgentServer]:
        async with AgentServer(answer).serving() as server, a_client() as client:
            (one,) = await client.cap_heartbeats([server.place], body, TOKEN)
            return one, server

    one, server = asyncio.run(play(told("{}")))
    assert one == AnnouncementResult(ordinal=Ordinal(1), outcome=AnnouncementOutcome.TAKEN, epoch=None)
    assert server.asked == [("PUT", "/streamapp/v1/heartbeat", body)]
    assert server.tokens == [f"Bearer {TOKEN}"]
    assert asyncio.run(play(told("{}", 404)))[0].outcome is AnnouncementOutcome.REFUSED


def test_an_announcement_without_an_answer_may_have_been_taken() -> None:
    async def dawdle(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    one, server = tell(dawdle, SHORT)
    assert (one.outcome, one.epoch) == (AnnouncementOutcome.FAILED, None)
    assert one.why == f"agent of pod wordcount-1 at 127.0.0.1:{server.port}: {NO_WHOLE}"


def test_a_token_never_stands_in_what_is_told() -> None:
    found, server = answer_of(told(json.dumps({"error": "wrong"}), 500))
    assert TOKEN not in sentence(found, server)


def test_a_closed_client_opens_anew_when_it_is_asked_again() -> None:
    async def play() -> None:
        async with AgentServer().serving() as server, a_client() as client:
            for _ in range(2):
                (found,) = await client.read([server.place], "wordcount", TOKEN)
                assert isinstance(found.reply, AgentReport)
                await client.close()

    asyncio.run(play())


def test_an_agent_gives_its_last_look_well_within_the_deadline_of_a_request() -> None:
    source = REPOSITORY / "agent/agent/src/main/java/dev/streamapp/agent/report/Prober.java"
    (waits,) = re.findall(r"TIMEOUT_MILLIS = (\d+);", source.read_text())
    assert int(waits) / 1000 <= DEADLINE_SECONDS / 2
