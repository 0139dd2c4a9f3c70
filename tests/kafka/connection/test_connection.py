"""One connection: TLS, authentication, answers that are none, and what a person is told when it does not come about."""

import asyncio
import datetime as dt
import ipaddress
import ssl
import struct
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.find_coordinator.v4.response import FindCoordinatorResponse
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.sasl_authenticate.v1.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v1.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse

from streamapp.kafka.brokers.pool import MOST_BROKERS, Pool
from streamapp.kafka.brokers.shared_brokers import SharedBrokers
from streamapp.kafka.connection.answer_limits import DEFAULT_LIMITS, AnswerLimits
from streamapp.kafka.connection.connection import Connection
from streamapp.kafka.connection.connector import Connector, Threads
from streamapp.kafka.connection.errors import (
    AnswerTooLargeError,
    BrokerUnreachableError,
    BrokerUnsupportedError,
    InvalidSettingsError,
    KafkaAccessError,
    NotAuthenticatedError,
    UnexpectedAnswerError,
)
from streamapp.kafka.connection.settings import Address, KafkaSettings, Sasl, Tls
from streamapp.kafka.connection.tokens import BearerToken
from streamapp.kafka.topics.topics import metadata
from streamapp.wire.byte_budget import ByteBudget
from tests.kafka.answers import cluster
from tests.kafka.scripted import CloseConnectionError, ScriptedBroker, always, coordinator_answer, in_turn
from tests.support.listening import Serve, listening

ASK = FindCoordinatorRequest(coordinator_keys=("app",))
PLAIN = Sasl("PLAIN", "reader", "s3cret")


async def dialled(settings: KafkaSettings) -> Connection:
    with closing(Threads()) as threads:
        return await Connector(settings, threads).connect(settings.bootstrap[0], "a-test")


@contextmanager
def a_pool(settings: KafkaSettings, limits: AnswerLimits = DEFAULT_LIMITS) -> Iterator[Pool]:
    with closing(Threads()) as threads, closing(SharedBrokers(settings, Connector(settings, threads))) as brokers:
        yield Pool(brokers, limits)


async def asked(broker: ScriptedBroker, tls: Tls | None = None, sasl: Sasl | None = None) -> FindCoordinatorResponse:
    connection = await dialled(broker.settings(tls, sasl))
    try:
        return await connection.ask(ASK, FindCoordinatorResponse)
    finally:
        connection.close()


def answering() -> ScriptedBroker:
    broker = ScriptedBroker()
    broker.coordinates("app")
    return broker


def failing(attempt: Callable[[], Awaitable[object]], kind: type[KafkaAccessError]) -> KafkaAccessError:
    async def main() -> None:
        await attempt()

    with pytest.raises(kind) as caught:
        asyncio.run(main())
    return caught.value


# Answers


def test_a_request_is_answered_and_carries_our_name() -> None:
    async def main() -> tuple[FindCoordinatorResponse, ScriptedBroker]:
        async with answering().running() as broker:
            return await asked(broker), broker

    answer, broker = asyncio.run(main())
    assert answer == coordinator_answer(broker.address, "app")
    assert {each.client_id for each in broker.seen} == {"a-test"}


def test_an_old_broker_is_told_apart_before_anything_is_sent() -> None:
    broker = answering()
    broker.hidden = frozenset({"FindCoordinator"})

    async def attempt() -> None:
        async with broker.running():
            await asked(broker)

    error = failing(attempt, BrokerUnsupportedError)
    assert error.why == "it does not know FindCoordinatorRequest version 4"
    assert broker.names() == []


def test_a_broker_that_hangs_up_is_unreachable_and_the_connection_is_gone() -> None:
    broker = ScriptedBroker({"FindCoordinator": in_turn(CloseConnectionError())})

    async def attempt() -> None:
        async with broker.running():
            connection = await dialled(broker.settings())
            try:
                await connection.ask(ASK, FindCoordinatorResponse)
            finally:
                assert not connection.is_usable
                connection.close()

    assert failing(attempt, BrokerUnreachableError).why == "the broker closed the connection"


@pytest.mark.slow  # real time
def test_a_cancelled_request_closes_the_connection_so_that_its_answer_is_nobodys() -> None:
    async def main() -> bool:
        async with ScriptedBroker().running() as broker:
            connection = await dialled(broker.settings())
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await connection.ask(ASK, FindCoordinatorResponse)
            return connection.is_usable

    assert not asyncio.run(main())


async def against(serve: Serve) -> None:
    async with listening(serve) as port:
        await dialled(KafkaSettings((Address("127.0.0.1", port),)))


def saying(raw: bytes) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(raw)
        await writer.drain()
        writer.close()

    return serve


NONSENSE: dict[str, tuple[bytes, str]] = {
    "a TLS alert": (b"\x15\x03\x03\x00\x02\x02\x46", "it seems to speak TLS"),
    "HTTP": (b"HTTP/1.1 400 Bad Request\r\n\r\n", "it does not seem to speak Kafka's protocol"),
    "a negative length": (struct.pack(">i", -1), "an answer of -1 bytes"),
    "a length beyond all answers": (struct.pack(">i", 2**24), "an answer of 16777216 bytes, at most 65536 are read"),
    "the answer to another request": (struct.pack(">ii", 10, 77) + bytes(6), "it answers request 77, not 1"),
    "too short an answer": (struct.pack(">ii", 5, 1) + bytes(1), "its ApiVersionsResponse cannot be read"),
    "too long an answer": (struct.pack(">ii", 12, 1) + bytes(8), "2 bytes left over"),
    "an error that nobody knows": (struct.pack(">iih", 10, 1, 31000) + bytes(4), "31000 is not a valid ErrorCode"),
}


@pytest.mark.parametrize(("raw", "why"), NONSENSE.values(), ids=NONSENSE.keys())
def test_bytes_that_are_no_answer_are_named(raw: bytes, why: str) -> None:
    assert why in failing(lambda: against(saying(raw)), UnexpectedAnswerError).why


def test_a_port_where_nobody_listens_is_unreachable() -> None:
    error = failing(lambda: dialled(KafkaSettings((Address("127.0.0.1", 1),))), BrokerUnreachableError)
    assert error.what == "broker 127.0.0.1:1"
    assert "bootstrapServers" in error.next_step


def test_a_name_that_does_not_resolve_is_unreachable() -> None:
    settings = KafkaSettings((Address("no-such-host.invalid", 9092),))
    assert failing(lambda: dialled(settings), BrokerUnreachableError).what == "broker no-such-host.invalid:9092"


# Authentication


def sasl_broker(*answers: tuple[ErrorCode, str | None, bytes]) -> ScriptedBroker:
    broker = answering()
    broker.handlers["SaslHandshake"] = always(SaslHandshakeResponse(error_code=ErrorCode.none, mechanisms=("PLAIN",)))
    broker.handlers["SaslAuthenticate"] = in_turn(
        *(SaslAuthenticateResponse(error_code=code, error_message=text, auth_bytes=raw) for code, text, raw in answers)
    )
    return broker


def test_plain_authentication() -> None:
    async def main() -> ScriptedBroker:
        async with sasl_broker((ErrorCode.none, None, b"")).running() as broker:
            await asked(broker, sasl=PLAIN)
            return broker

    sent = [each.request for each in asyncio.run(main()).seen]
    assert SaslAuthenticateRequest(auth_bytes=b"\0reader\0s3cret") in sent


def test_a_wrong_password_is_said_in_the_brokers_words_and_without_the_password() -> None:
    broker = sasl_broker((ErrorCode.sasl_authentication_failed, "Invalid username or password", b""))

    async def attempt() -> None:
        async with broker.running():
            await asked(broker, sasl=PLAIN)

    error = failing(attempt, NotAuthenticatedError)
    assert error.why == "Invalid username or password"
    assert "s3cret" not in str(error)


def test_a_mechanism_that_the_broker_does_not_offer_is_named() -> None:
    broker = sasl_broker()
    broker.handlers["SaslHandshake"] = always(
        SaslHandshakeResponse(error_code=ErrorCode.unsupported_sasl_mechanism, mechanisms=("GSSAPI", "PLAIN"))
    )

    async def attempt() -> None:
        async with broker.running():
            await asked(broker, sasl=Sasl("SCRAM-SHA-256", "reader", "s3cret"))

    assert failing(attempt, NotAuthenticatedError).why == "it offers GSSAPI, PLAIN, not SCRAM-SHA-256"


def test_a_broker_that_cannot_prove_itself_is_not_trusted() -> None:
    broker = sasl_broker((ErrorCode.none, None, b"r=other,s=AAAA,i=4096"))

    async def attempt() -> None:
        async with broker.running():
            await asked(broker, sasl=Sasl("SCRAM-SHA-256", "reader", "s3cret"))

    assert (
        failing(attempt, NotAuthenticatedError).why
        == "the broker answers with a foreign nonce, or adds nothing to ours"
    )


def test_a_token_that_the_broker_refuses_is_no_matter_of_the_login() -> None:
    """A broker says `invalid_token` alone, whatever it dislikes."""
    broker = sasl_broker((ErrorCode.none, None, b'{"status":"invalid_token"}'), (ErrorCode.none, None, b""))

    async def attempt() -> None:
        async with broker.running():
            streams = await asyncio.open_connection(broker.address.host, broker.address.port)
            connection = Connection(broker.address, "a-test", *streams)
            with closing(connection):
                await connection.introduce(BearerToken("a-token"))

    error = failing(attempt, NotAuthenticatedError)
    assert error.why == 'the broker refuses the token: {"status":"invalid_token"}'
    assert error.next_step.startswith("compare the token's issuer and audience with those that the broker expects")
    assert "a-token" not in str(error)


# TLS


class Authority:
    """A certificate authority for one test run."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tests")])
        self.certificate = self._signed(self._name, self._key.public_key(), x509.BasicConstraints(True, None))
        self.pem = self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def issue(self, name: str, password: str | None = None) -> tuple[str, str]:
        """Give the certificate and the key of `name`, as PEM text."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        certificate = self._signed(subject, key.public_key(), address)
        locked = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
        pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
        return certificate.public_bytes(serialization.Encoding.PEM).decode(), pem.decode()

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, extension: x509.ExtensionType
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(extension, critical=False)
            .sign(self._key, hashes.SHA256())
        )


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def server_side(authority: Authority, tmp_path: Path) -> ssl.SSLContext:
    """The broker's side: shows a certificate, and trusts those of the authority."""
    certificate, key = authority.issue("broker")
    both = tmp_path / "broker.pem"
    both.write_text(certificate + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    context.load_verify_locations(cadata=authority.pem)
    return context


def over_tls(server_side: ssl.SSLContext, tls: Tls) -> Callable[[], Awaitable[FindCoordinatorResponse]]:
    async def attempt() -> FindCoordinatorResponse:
        async with answering().running(server_side) as broker:
            return await asked(broker, tls)

    return attempt


async def _result(attempt: Callable[[], Awaitable[FindCoordinatorResponse]]) -> FindCoordinatorResponse:
    return await attempt()


def test_a_trusted_broker_is_talked_to_over_tls(server_side: ssl.SSLContext, authority: Authority) -> None:
    answer = asyncio.run(_result(over_tls(server_side, Tls(trusted=authority.pem))))
    assert [found.key for found in answer.coordinators] == ["app"]


def test_mutual_tls_with_a_locked_key(server_side: ssl.SSLContext, authority: Authority) -> None:
    server_side.verify_mode = ssl.CERT_REQUIRED
    certificate, key = authority.issue("operator", password="s3cret")
    answer = asyncio.run(_result(over_tls(server_side, Tls(authority.pem, certificate, key, "s3cret"))))
    assert [found.key for found in answer.coordinators] == ["app"]


def test_a_broker_that_wants_a_certificate_and_gets_none(server_side: ssl.SSLContext, authority: Authority) -> None:
    server_side.verify_mode = ssl.CERT_REQUIRED
    error = failing(over_tls(server_side, Tls(trusted=authority.pem)), BrokerUnreachableError)
    assert error.what.startswith("broker 127.0.0.1:")


def test_a_broker_of_another_authority_is_not_trusted(server_side: ssl.SSLContext) -> None:
    error = failing(over_tls(server_side, Tls(trusted=Authority().pem)), BrokerUnreachableError)
    assert error.why.startswith("its certificate is not trusted")
    assert error.next_step == "check ssl.truststore.certificates"


def test_a_key_without_its_password_is_a_matter_of_settings(server_side: ssl.SSLContext, authority: Authority) -> None:
    certificate, key = authority.issue("operator", password="s3cret")
    error = failing(over_tls(server_side, Tls(authority.pem, certificate, key)), InvalidSettingsError)
    assert "s3cret" not in str(error)
    assert "PRIVATE" not in str(error)


def test_text_that_is_no_certificate_is_a_matter_of_settings(server_side: ssl.SSLContext) -> None:
    failing(over_tls(server_side, Tls(trusted="not a certificate")), InvalidSettingsError)


# Bounds


def large_metadata(topics: int) -> MetadataResponse:
    return cluster([Address("a", 1)], {f"topic-{number}": [0] for number in range(topics)})


async def asked_for_topics(broker: ScriptedBroker, limits: AnswerLimits) -> MetadataResponse:
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False)
    with closing(Threads()) as threads:
        connection = await Connector(broker.settings(), threads).connect(broker.address, "a-test", limits)
        try:
            return await connection.ask(request, MetadataResponse)
        finally:
            connection.close()


LIMITS: dict[str, tuple[AnswerLimits, str]] = {
    "bytes": (AnswerLimits(most_bytes=100_000), "at most 100000 are read"),
    "values": (AnswerLimits(most_values=1_000), "more than 1000 values"),
    "all applications together": (AnswerLimits(budget=ByteBudget(100_000)), "need more memory than there is"),
}


@pytest.mark.parametrize(("limits", "why"), LIMITS.values(), ids=LIMITS.keys())
def test_an_answer_beyond_a_limit_is_refused_and_its_connection_closed(limits: AnswerLimits, why: str) -> None:
    async def main() -> MetadataResponse:
        broker = ScriptedBroker({"Metadata": always(large_metadata(3_000))})
        async with broker.running():
            assert len((await asked_for_topics(broker, AnswerLimits())).topics) == 3_000
            return await asked_for_topics(broker, limits)

    assert why in failing(main, AnswerTooLargeError).why


def test_a_broker_that_sent_too_much_is_not_asked_again_at_once() -> None:
    async def main() -> int:
        broker = ScriptedBroker({"Metadata": always(large_metadata(3_000))})
        async with broker.running():
            with a_pool(broker.settings(), AnswerLimits(most_bytes=100_000)) as pool:
                for _ in range(5):
                    with pytest.raises(AnswerTooLargeError):
                        await metadata(pool, None)
        return broker.names().count("Metadata")

    assert asyncio.run(main()) == 1


def test_a_cluster_that_names_brokers_without_end_is_not_followed() -> None:
    async def main() -> None:
        async with answering().running() as broker:
            with a_pool(broker.settings()) as pool:
                for port in range(1, MOST_BROKERS + 2):
                    with suppress(BrokerUnreachableError):
                        await pool.ask(Address("127.0.0.1", port), ASK, FindCoordinatorResponse)

    assert "named 500 other addresses" in failing(main, UnexpectedAnswerError).why
