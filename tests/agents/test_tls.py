"""Requests to agents with certificates: real handshakes, and nothing is sent to whom the operator does not trust."""

import asyncio
import base64
import gc
import json
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from streamapp.agents.answers import AgentAddress, AgentReading, AnnouncementOutcome
from streamapp.agents.client import AgentClient
from streamapp.agents.tls import MOST_AUTHORITIES_BYTES, AgentTls, AuthoritiesUnusableError, trusting
from streamapp.core.facts.agent_reports import AgentReport, AgentSilent
from tests.agents.agent_server import TOKEN, AgentServer
from tests.agents.test_client import EPOCH, NEWS, SHORT, a_client, read_from
from tests.brokers.certificates import DAY, Authority, Issued
from tests.support.listening import listening
from tests.wire.agent_reports import FULL

NAME = "wordcount-1.wordcount.demo.svc"
ALL_PODS = ("*.wordcount.demo.svc",)
OURS = Authority("ours")
EXPECTED = AgentTls(trusting(OURS.pem), NAME)


def issued(hosts: tuple[str, ...] = ALL_PODS) -> Issued:
    return OURS.issue("agents", hosts)


def secured(certificate: Issued, expects: AgentTls = EXPECTED) -> AgentServer:
    return AgentServer(serves=certificate.serving(), expects=expects)


def answer_of(server: AgentServer) -> AgentReading:
    async def play() -> AgentReading:
        async with server.serving():
            return await read_from(server.place)()

    return asyncio.run(play())


def refusal(found: AgentReading, port: int) -> str:
    """Why an agent is not trusted, without the words that every such sentence begins with."""
    assert isinstance(found.reply, AgentSilent)
    assert found.reply.is_untrusted
    beginning = f"agent of pod wordcount-1 at 127.0.0.1:{port}: "
    assert found.reply.why.startswith(beginning), found.reply.why
    return found.reply.why.removeprefix(beginning)


@pytest.mark.parametrize("hosts", [ALL_PODS, (NAME,)], ids=["wildcard", "name"])
def test_an_agent_with_a_certificate_for_its_pod_is_asked_at_its_address(hosts: tuple[str, ...]) -> None:
    server = secured(issued(hosts))
    assert isinstance(answer_of(server).reply, AgentReport)
    assert server.tokens == [f"Bearer {TOKEN}"]


@pytest.mark.parametrize("protocol", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_it_can_speak_tls_1_2_or_1_3(protocol: ssl.TLSVersion) -> None:
    server = secured(issued())
    assert server.serves is not None
    server.serves.minimum_version = server.serves.maximum_version = protocol
    assert isinstance(answer_of(server).reply, AgentReport)


ANOTHER = "check that the Secret's `ca.crt` is the authority that issued its `tls.crt`"


@pytest.mark.parametrize(
    ("certificate", "says"),
    [
        (
            lambda: OURS.issue("agents", ALL_PODS, lasts=-DAY),
            "its certificate is not trusted (certificate has expired); renew it: with cert-manager look at the "
            "Certificate's conditions; the agent takes a new one without a restart",
        ),
        (
            lambda: issued(("*.other.demo.svc",)),
            f"its certificate is not valid for {NAME}; add that name to the certificate, or the wildcard for all pods",
        ),
        (
            lambda: issued(("127.0.0.1",)),
            f"its certificate is not valid for {NAME}; add that name to the certificate, or the wildcard for all pods",
        ),
        (
            lambda: Authority("theirs").issue("agents", ALL_PODS),
            f"its certificate is not trusted (unable to get local issuer certificate); {ANOTHER}",
        ),
        (
            lambda: Authority("self").own,
            "its certificate is not trusted (self-signed certificate); its agent has no usable certificate: look in "
            "the pod's log for lines of `streamapp-agent`, or `ca.crt` is another authority",
        ),
    ],
    ids=["expired", "another name", "only its address", "another authority", "a stand-in"],
)
def test_whom_it_does_not_trust_gets_no_token_and_the_cause_is_said(
    certificate: Callable[[], Issued], says: str
) -> None:
    server = secured(certificate())
    assert refusal(answer_of(server), server.port) == says
    assert (server.tokens, server.asked) == ([], [])


def test_an_agent_that_speaks_plain_http_where_its_pod_has_a_certificate_gets_no_token() -> None:
    received = b""

    async def play() -> tuple[AgentReading, int]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal received
            received += await reader.read(4096)
            writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
            await writer.drain()

        async with listening(serve) as port:
            place = replace(AgentServer(expects=EXPECTED).place, port=port)
            return await read_from(place)(), port

    found, port = asyncio.run(play())
    assert refusal(found, port) == (
        "it speaks no TLS although its pod has a certificate, so no token was sent; its agent is older than its "
        "template, or another program listens there: restart the pod"
    )
    assert TOKEN.encode() not in received
    assert b"streamapp" not in received.replace(NAME.encode(), b"")


def test_nothing_is_announced_to_whom_it_does_not_trust() -> None:
    server = secured(Authority("theirs").issue("agents", ALL_PODS))

    async def play() -> None:
        async with server.serving(), a_client() as client:
            (result,) = await client.announce([server.place], NEWS, TOKEN)
            assert (result.outcome, result.epoch) == (AnnouncementOutcome.FAILED, None)
            assert "its certificate is not trusted" in result.why

    asyncio.run(play())
    assert (server.tokens, server.asked) == ([], [])


def test_an_announcement_arrives_over_tls() -> None:
    server = secured(issued())

    async def play() -> None:
        async with server.serving(), a_client() as client:
            (result,) = await client.announce([server.place], NEWS, TOKEN)
            assert (result.outcome, result.epoch) == (AnnouncementOutcome.TAKEN, EPOCH)

    asyncio.run(play())
    assert [method for method, _, _ in server.asked] == ["PUT"]


def test_a_handshake_that_never_ends_is_a_silence_within_the_deadline() -> None:
    async def play() -> AgentReading:
        async def serve(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
            while await reader.read(4096):
                pass

        async with listening(serve) as port:
            place: AgentAddress = replace(AgentServer(expects=EXPECTED).place, port=port)
            return await read_from(place, SHORT)()

    reply = asyncio.run(play()).reply
    assert isinstance(reply, AgentSilent)
    assert not reply.is_untrusted
    assert f"no whole answer within {SHORT:g} s" in reply.why


@dataclass
class WithoutGoodbye:
    """An agent that answers over TLS, and never says that its connection ends, nor reads that the operator's does."""

    certificate: Issued
    ended: threading.Event = field(default_factory=threading.Event)
    """Set when the operator's end of the connection has come."""

    @contextmanager
    def serving(self) -> Iterator[int]:
        """Give its port; on leaving, wait until the connection has ended."""
        with socket.create_server(("127.0.0.1", 0)) as listens, ThreadPoolExecutor(1) as one:
            served = one.submit(self._serve, listens)
            yield listens.getsockname()[1]
            served.result(10)

    def _serve(self, listens: socket.socket) -> None:
        accepted, _ = listens.accept()
        with accepted, self.certificate.serving().wrap_socket(accepted, server_side=True) as connection:
            connection.recv(4096)
            body = json.dumps(FULL).encode()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            with socket.socket(fileno=os.dup(connection.fileno())) as raw:
                raw.settimeout(10)
                while raw.recv(4096):
                    pass
            self.ended.set()


async def until_answered(client: AgentClient, port: int) -> None:
    place: AgentAddress = replace(AgentServer(expects=EXPECTED).place, port=port)
    (found,) = await client.read([place], "wordcount", TOKEN)
    assert isinstance(found.reply, AgentReport)


def test_an_agent_that_never_says_goodbye_keeps_no_socket_longer_than_its_request_may_take() -> None:
    """By itself, asyncio waits for it for 30 seconds."""
    agent = WithoutGoodbye(issued())

    async def play(port: int) -> None:
        async with a_client() as client:
            await until_answered(client, port)
            assert await asyncio.to_thread(agent.ended.wait, 9)

    with agent.serving() as port:
        asyncio.run(play(port))


def test_a_client_that_closes_leaves_no_socket_whose_agent_never_says_goodbye() -> None:
    """Python warns of a socket that is left, and a warning is an error here."""
    agent = WithoutGoodbye(issued())

    async def play(port: int) -> None:
        async with a_client() as client:
            await until_answered(client, port)

    with agent.serving() as port:
        asyncio.run(play(port))
        gc.collect()
    assert agent.ended.is_set()


def _with_a_prime_of_the_servers_choice(bits: int) -> str:
    """Parameters of DHE, as PEM text: any odd number passes for a prime."""
    prime = (1 << (bits - 1) | 12345).to_bytes(bits // 8 + 1, "big")
    integer = b"\x02\x82" + len(prime).to_bytes(2, "big") + prime
    content = integer + b"\x02\x01\x02"
    coded = base64.encodebytes(b"\x30\x82" + len(content).to_bytes(2, "big") + content).decode()
    return f"-----BEGIN DH PARAMETERS-----\n{coded}-----END DH PARAMETERS-----\n"


def test_no_agent_chooses_the_prime_that_the_operator_computes_with(tmp_path: Path) -> None:
    """A prime of 10,000 bits takes a second of the event loop, and an application has many pods."""
    server, parameters = secured(issued()), tmp_path / "dh.pem"
    parameters.write_text(_with_a_prime_of_the_servers_choice(2048))
    assert server.serves is not None
    server.serves.maximum_version = ssl.TLSVersion.TLSv1_2
    server.serves.load_dh_params(str(parameters))
    server.serves.set_ciphers("DHE-RSA-AES256-GCM-SHA384")
    assert isinstance(answer_of(server).reply, AgentSilent)
    assert server.tokens == []


def test_several_authorities_are_trusted_together() -> None:
    theirs = Authority("theirs")
    both = AgentTls(trusting(f"{OURS.pem}{theirs.pem}"), NAME)
    for certificate in (issued(), theirs.issue("agents", ALL_PODS)):
        assert isinstance(answer_of(secured(certificate, both)).reply, AgentReport)


def test_authorities_can_have_names_in_any_language_beside_them() -> None:
    named = AgentTls(trusting(f"# Autorité de certification\n{OURS.pem}"), NAME)
    assert isinstance(answer_of(secured(issued(), named)).reply, AgentReport)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no certificate",
        "aucun certificat délivré",
        "-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----",
        "-----BEGIN CERTIFICATE-----\n\N{REPLACEMENT CHARACTER}\n-----END CERTIFICATE-----",
    ],
)
def test_what_is_no_authority_is_refused_with_the_fix(text: str) -> None:
    with pytest.raises(AuthoritiesUnusableError, match="write certificates as PEM text"):
        trusting(text)


def test_authorities_without_end_are_refused_unread() -> None:
    with pytest.raises(AuthoritiesUnusableError, match="is longer than 65536 bytes"):
        trusting("x" * (MOST_AUTHORITIES_BYTES + 1))
