"""Every way to authenticate, against a real broker: what works, and what a user reads where it does not."""

import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from streamapp.core.facts.group import GroupDescription, GroupState
from tests.brokers.access import Properties, eventually, looked, mutual, oauth, of_secrets, over_tls, plain, scram
from tests.brokers.certificates import Authority
from tests.brokers.secured import PASSWORD, USER, Cluster
from tests.brokers.token_server import TokenServer

pytestmark = pytest.mark.brokers

EMPTY = GroupDescription(GroupState.DEAD, ())

Way = tuple[str, Callable[[Cluster], Properties]]

WAYS: dict[str, Way] = {
    "TLS": ("TLS", lambda cluster: over_tls(cluster, "SSL")),
    "mutual TLS": ("MTLS", lambda cluster: mutual(cluster, cluster.clients.issue(USER))),
    "PLAIN": ("PLAIN", plain),
    "SCRAM-SHA-256": ("SCRAM", lambda cluster: scram(cluster, 256)),
    "SCRAM-SHA-512": ("SCRAM", scram),
    "OAUTHBEARER": ("OAUTH", oauth),
}


@pytest.mark.parametrize(("listener", "properties"), WAYS.values(), ids=WAYS.keys())
def test_the_group_can_be_read(cluster: Cluster, listener: str, properties: Callable[[Cluster], Properties]) -> None:
    if listener == "TLS":
        # Without a certificate and without a password the user is anonymous, here the super user.
        assert looked(cluster.at(listener), properties(cluster)) == EMPTY
    assert eventually(cluster.at(listener), properties(cluster)) == EMPTY


def test_a_strimzi_user_and_cluster_are_read_as_they_are(cluster: Cluster) -> None:
    own = cluster.clients.issue(USER)
    properties = of_secrets(
        {"security.protocol": "SSL"},
        my_user={
            "ca.crt": cluster.clients.pem,
            "user.crt": own.chain,
            "user.key": own.key,
            "user.p12": own.p12,
            "user.password": "store",
        },
        my_cluster_ca={"ca.crt": cluster.authority.pem, "ca.p12": b"\x00\x82", "ca.password": "store"},
    )
    assert eventually(cluster.at("MTLS"), properties) == EMPTY


def test_a_strimzi_user_with_a_password_is_read_as_it_is(cluster: Cluster) -> None:
    properties = of_secrets(
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"},
        my_user={"password": PASSWORD, "sasl.jaas.config": scram(cluster)["sasl.jaas.config"] + "\n"},
        my_cluster_ca={"ca.crt": cluster.authority.pem},
    )
    assert eventually(cluster.at("SCRAM"), properties) == EMPTY


FOREIGN = Authority("foreign")

REFUSED: dict[str, tuple[str, Callable[[Cluster], Properties], str]] = {
    "a wrong password of PLAIN": ("PLAIN", lambda c: plain(c, "wrong"), "Authentication failed: Invalid username or"),
    "a wrong password of SCRAM": ("SCRAM", lambda c: scram(c, password="wrong"), "invalid credentials with SASL mech"),
    "a user of SCRAM that is not there": ("SCRAM", lambda c: scram(c, user="x"), "invalid credentials with SASL mech"),
    "a mechanism that the listener has not": ("SCRAM", plain, ", not PLAIN (check sasl.mechanism"),
    "a wrong secret of the token's client": ("OAUTH", lambda c: oauth(c, "wrong"), "it answers 401: invalid_client"),
    "no certificate of the client": (
        "MTLS",
        lambda c: over_tls(c, "SSL"),
        "it refuses the client's certificate: ",
    ),
    "a certificate of an authority that the broker does not trust": (
        "MTLS",
        lambda c: mutual(c, FOREIGN.issue(USER)),
        "it refuses the client's certificate: ",
    ),
    "a certificate of the client that has ended": (
        "MTLS",
        lambda c: mutual(c, c.clients.issue(USER, lasts=timedelta(hours=-1))),
        "it refuses the client's certificate: ",
    ),
    "a broker of an authority that the client does not trust": (
        "TLS",
        lambda c: {**over_tls(c, "SSL"), "ssl.truststore.certificates": FOREIGN.pem},
        "its certificate is not trusted: unable to get local issuer certificate",
    ),
    "no encryption to a listener with it": ("TLS", lambda _: {}, "it seems to speak TLS"),
    "encryption to a listener without it": ("ADMIN", lambda c: over_tls(c, "SSL"), "check bootstrapServers, security"),
}


@pytest.mark.parametrize(("listener", "properties", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_the_reason_names_the_broker_and_the_cause(
    cluster: Cluster, listener: str, properties: Callable[[Cluster], Properties], why: str
) -> None:
    found = looked(cluster.at(listener), properties(cluster))
    assert isinstance(found, str)
    assert why in found
    assert PASSWORD not in found
    assert cluster.at(listener) in found or found.startswith("token server 127.0.0.1:")


# Tokens


def test_a_token_for_another_audience_is_refused_by_the_broker(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster.tokens, "audience", "another")
    found = looked(cluster.at("OAUTH"), oauth(cluster))
    assert isinstance(found, str)
    assert 'the broker refuses the token: {"status":"invalid_token"}' in found or "invalid_token" in found


def test_a_token_of_foreign_keys_is_refused_by_the_broker(cluster: Cluster) -> None:
    with TokenServer({USER: PASSWORD}).running() as foreign:
        found = looked(cluster.at("OAUTH"), {**oauth(cluster), "sasl.oauthbearer.token.endpoint.url": foreign.url()})
    assert isinstance(found, str)
    assert "invalid_token" in found


@pytest.mark.parametrize(
    ("status", "why"), [(500, "it answers 500: server_error"), (302, "it answers 302: server_error")]
)
def test_a_token_server_that_fails_is_named(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, status: int, why: str
) -> None:
    monkeypatch.setattr(cluster.tokens, "status", status)
    found = looked(cluster.at("OAUTH"), oauth(cluster))
    assert found == (
        f"token server 127.0.0.1:{cluster.tokens.port}: {why} "
        "(check client ID, client secret, scope and sasl.oauthbearer.header.urlencode in the Secret)"
    )


def test_a_token_server_that_is_away_is_named(cluster: Cluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"http://127.0.0.1:{port}/token"
    found = looked(cluster.at("OAUTH"), {**oauth(cluster), "sasl.oauthbearer.token.endpoint.url": url})
    assert isinstance(found, str)
    assert found.startswith(f"token server 127.0.0.1:{port}: ")


def test_a_token_server_over_tls_is_verified(cluster: Cluster, tmp_path: Path) -> None:
    authority = Authority("tokens")
    issued = authority.issue("token-server")
    (tmp_path / "server.pem").write_text(issued.key + issued.chain)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    # The same keys at another port: the broker fetches them where it always does.
    with replace(cluster.tokens).running(context) as secured:
        own = {"sasl.oauthbearer.token.endpoint.url": secured.url("https")}
        trusted = {"ssl.truststore.certificates": authority.pem}
        found = eventually(cluster.at("OAUTH"), {**oauth(cluster, **trusted), **own})
        refused = looked(cluster.at("OAUTH"), {**oauth(cluster), **own})
    assert found == EMPTY
    assert isinstance(refused, str)
    assert "its certificate is not trusted: " in refused
