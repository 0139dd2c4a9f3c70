"""Tokens from a server that the project did not write, judged by a broker that fetches the server's keys itself."""

import asyncio
import re
from collections.abc import Iterator, Mapping

import pytest

from lab.settings import REPOSITORY
from streamapp.core.facts.group import GroupDescription, GroupState
from streamapp.core.facts.ids import TopicPartition
from streamapp.core.facts.lag import EndOffsets, PartitionEnd
from streamapp.core.facts.tasks import TaskSet
from streamapp.kafka.connection.settings import read_settings
from streamapp.kafka.producer import frames
from streamapp.kafka.producer.producer import Producer
from tests.brokers import secured
from tests.brokers.access import Properties, eventually, group, looked, looked_over, oauth, of_secrets, quoted
from tests.brokers.authorization_server import server
from tests.brokers.authorization_server.server import AuthorizationServer, Client
from tests.brokers.conftest import documented
from tests.brokers.members import CHANGELOG, SOURCE, joined
from tests.brokers.secured import PASSWORD, USER, Cluster, Issuer, Right

pytestmark = [pytest.mark.brokers, pytest.mark.timeout(300)]

EMPTY = GroupDescription(GroupState.EMPTY, ())
LIFETIME_SECONDS = 6
HAVE_RIGHTS = (USER, "brief", "odd")
CLIENTS: Mapping[str, Client] = {
    USER: Client(PASSWORD),
    "brief": Client("of-brief", lifetime_seconds=LIFETIME_SECONDS),
    # Of signs that URL encoding changes: `+` is a space to a server that decodes, `%2F` a slash.
    "odd": Client("a+b%2Fc="),
    "without-rights": Client("of-without-rights"),
    "of-another-audience": Client("of-of-another-audience"),
    "in-the-body": Client("of-in-the-body", method="client_secret_post"),
    "with-another-grant": Client("of-with-another-grant", grant="authorization_code"),
}


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuthorizationServer]:
    """Give the server that issues the tokens."""
    with server.running(tmp_path_factory.mktemp("issuer"), CLIENTS) as one:
        yield one


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory, issuer: AuthorizationServer) -> Iterator[Cluster]:
    """Give a broker that accepts this issuer's tokens alone, and grants some clients the documented rights."""
    accepted = Issuer(
        issuer.keys_url,
        audiences=tuple(name for name in CLIENTS if name != "of-another-audience"),
        name=issuer.issuer(),
        certificates=issuer.authority.pem,
    )
    with secured.running(tmp_path_factory.mktemp("brokers"), issuer=accepted) as one:
        one.create(SOURCE, CHANGELOG)
        one.fill(CHANGELOG)
        for name in HAVE_RIGHTS:
            one.allow(name, *documented())
        assert not isinstance(eventually(one.at("ADMIN"), {}, seconds=60), str)
        asyncio.run(left(one))
        yield one


async def left(brokers: Cluster) -> None:
    """Make the group, and leave it empty: it is the same for each test then."""
    async with joined(brokers.at("ADMIN")):
        pass


def login(
    brokers: Cluster, issuer: AuthorizationServer, client: str = USER, secret: str | None = None, **options: str
) -> Properties:
    """Give what a Secret says of one client."""
    own = {"clientId": client, "ssl.truststore.certificates": issuer.authority.pem, **options}
    return {
        **oauth(brokers, CLIENTS[client].secret if secret is None else secret, **own),
        "sasl.oauthbearer.token.endpoint.url": issuer.url(),
    }


def page_secret(issuer: AuthorizationServer) -> dict[str, str]:
    """Give the Secret of docs/kafka-security.md with this server, this client and its secret in it."""
    page = (REPOSITORY / "docs" / "kafka-security.md").read_text()
    blocks = re.findall(r"^```properties\n(.+?)^```", page, re.MULTILINE | re.DOTALL)
    (block,) = [block for block in blocks if "OAUTHBEARER" in block]
    properties = dict(line.split("=", 1) for line in block.splitlines())
    url, jaas = "sasl.oauthbearer.token.endpoint.url", "sasl.jaas.config"
    assert properties[url].startswith("https://login.example/")
    given = properties[jaas].replace('"streamapp"', quoted(USER)).replace('"…"', quoted(PASSWORD))
    assert given.count(USER) == given.count(quoted(PASSWORD)) == 1
    own = f" ssl.truststore.certificates={quoted(issuer.authority.pem)};"
    return {**properties, url: issuer.url(), jaas: given.removesuffix(";") + own}


def test_the_secret_of_the_page_reads_a_group_its_changelogs_and_its_end_offsets(
    brokers: Cluster, issuer: AuthorizationServer
) -> None:
    properties = of_secrets({}, tokens=page_secret(issuer), cluster_ca={"ca.crt": brokers.authority.pem})
    assert eventually(brokers.at("OAUTH"), properties) == EMPTY

    async def play() -> tuple[GroupDescription | str, object]:
        async with joined(brokers.at("ADMIN")):
            one = group(brokers.at("OAUTH"), properties)
            try:
                found, tasks = await looked_over(one), await one.task_set()
                assert isinstance(tasks, TaskSet), tasks
                return found, await one.ends(tasks)
            finally:
                one.close()

    found, ends = asyncio.run(play())
    assert isinstance(found, GroupDescription), found
    assert (found.state, len(found.members)) == (GroupState.STABLE, 3)
    assert isinstance(ends, EndOffsets), ends
    assert ends.partitions == {
        TopicPartition(CHANGELOG, number): PartitionEnd(log_start=0, end=1) for number in range(6)
    }


def test_the_user_is_the_client_and_has_the_clients_rights_alone(brokers: Cluster, issuer: AuthorizationServer) -> None:
    found = looked(brokers.at("OAUTH"), login(brokers, issuer, "without-rights"))
    assert "grant DESCRIBE on group counter" in str(found)


def test_tokens_are_renewed_for_two_of_their_lifetimes(brokers: Cluster, issuer: AuthorizationServer) -> None:
    """The broker ends a session with its token, and accepts no token a second longer."""
    properties = login(brokers, issuer, "brief")
    assert eventually(brokers.at("OAUTH"), properties) == EMPTY
    before = issuer.statuses()

    async def play() -> list[object]:
        one = group(brokers.at("OAUTH"), properties)
        found: list[object] = []
        try:
            for _ in range(2 * LIFETIME_SECONDS + 1):
                found.append(await looked_over(one))
                await asyncio.sleep(1)
        finally:
            one.close()
        return found

    assert asyncio.run(play()) == [EMPTY] * (2 * LIFETIME_SECONDS + 1)
    asked = issuer.statuses()[len(before) :]
    # One for each 4.8 s, not one for each connection or look.
    assert set(asked) == {200}
    assert 2 <= len(asked) <= 5


# What the server refuses

SUSPECTS = "client ID, client secret and scope"
WITH_ENCODING = "client ID, client secret, scope and sasl.oauthbearer.header.urlencode"

REFUSED: dict[str, tuple[str, dict[str, str], str, str]] = {
    "a wrong secret": (USER, {"secret": "wrong"}, "401: invalid_client", SUSPECTS),
    "a client that is not there": (USER, {"clientId": "nobody"}, "401: invalid_client", WITH_ENCODING),
    "a scope that the client has not": (USER, {"scope": "kafka admin"}, "400: invalid_scope", WITH_ENCODING),
    "a client with another grant": ("with-another-grant", {}, "400: unauthorized_client", SUSPECTS),
    "a client that must show its secret in the body": ("in-the-body", {}, "401: invalid_client", SUSPECTS),
}


@pytest.mark.parametrize(("client", "given", "why", "suspects"), REFUSED.values(), ids=REFUSED.keys())
def test_a_refusal_is_told_by_its_code(
    brokers: Cluster, issuer: AuthorizationServer, client: str, given: dict[str, str], why: str, suspects: str
) -> None:
    found = looked(brokers.at("OAUTH"), login(brokers, issuer, client, **given))
    assert found == f"token server 127.0.0.1:{issuer.port}: it answers {why} (check {suspects} in the Secret)"


def test_a_secret_that_url_encoding_changes_needs_the_property_for_a_server_that_decodes(
    brokers: Cluster, issuer: AuthorizationServer
) -> None:
    plain = login(brokers, issuer, "odd")
    found = looked(brokers.at("OAUTH"), plain)
    assert f"127.0.0.1:{issuer.port}: it answers 401: invalid_client (check " in str(found)
    assert "sasl.oauthbearer.header.urlencode in the Secret" in str(found)
    assert eventually(brokers.at("OAUTH"), {**plain, "sasl.oauthbearer.header.urlencode": "true"}) == EMPTY


def test_a_server_whose_authority_is_not_trusted_gets_no_secret(brokers: Cluster, issuer: AuthorizationServer) -> None:
    before = issuer.statuses()
    foreign = {"ssl.truststore.certificates": brokers.authority.pem}
    found = str(looked(brokers.at("OAUTH"), login(brokers, issuer, **foreign)))
    assert f"token server 127.0.0.1:{issuer.port}: its certificate is not trusted: " in found
    assert issuer.statuses() == before


# What the broker refuses

ADVICE = "(compare the token's issuer and audience with those that the broker expects; the broker's log has the reason)"


def test_a_token_for_another_audience_is_refused_by_the_broker(brokers: Cluster, issuer: AuthorizationServer) -> None:
    found = str(looked(brokers.at("OAUTH"), login(brokers, issuer, "of-another-audience")))
    assert "invalid_token" in found
    assert found.endswith(ADVICE)
    assert "Audience (aud) claim [of-another-audience] doesn't contain an acceptable identifier" in log(brokers)


def test_a_token_of_another_issuer_is_refused_by_the_broker(brokers: Cluster, issuer: AuthorizationServer) -> None:
    """The same server under another name: it is the issuer that the client called, and signs with the same key."""
    other = {"sasl.oauthbearer.token.endpoint.url": issuer.url("localhost")}
    found = str(looked(brokers.at("OAUTH"), {**login(brokers, issuer), **other}))
    assert "invalid_token" in found
    assert found.endswith(ADVICE)
    assert f"Issuer (iss) claim value ({issuer.issuer('localhost')}) doesn't match expected value" in log(brokers)


def log(brokers: Cluster) -> str:
    return brokers.brokers[0].process.log.read_text()


# The flight record, whose client is another one


def test_the_flight_record_is_written_with_a_token(brokers: Cluster, issuer: AuthorizationServer) -> None:
    brokers.create("flights")
    brokers.allow(USER, Right("WRITE", "topic", "flights"))
    settings = read_settings(brokers.at("OAUTH"), login(brokers, issuer))
    ended: list[object] = []

    async def play() -> object:
        one = Producer(lambda: settings, "flights", ended.append)
        try:
            return await one.send([frames.Message(b"shop/counter", b"{}")] * 10)
        finally:
            await one.close()

    assert asyncio.run(play()) == [None] * 10
    assert ended == []
