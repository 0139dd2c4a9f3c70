"""Passwords, tokens and certificates that change while the operator is connected."""

import asyncio

import pytest

from streamapp.core.facts.group import GroupDescription, GroupState
from tests.brokers.access import (
    eventually,
    group,
    looked,
    looked_over,
    oauth,
    of_secrets,
    over_tls,
    scram,
)
from tests.brokers.certificates import Authority, Issued
from tests.brokers.secured import PASSWORD, USER, Cluster

pytestmark = pytest.mark.brokers

EMPTY = GroupDescription(GroupState.DEAD, ())


def test_a_new_password_is_asked_of_new_connections_alone(cluster: Cluster) -> None:
    """As Kafka has it: who is connected stays, so the Secret can follow the password without a gap."""

    async def play() -> tuple[object, object]:
        connected = group(cluster.at("SCRAM"), scram(cluster))
        fresh = group(cluster.at("SCRAM"), scram(cluster))
        try:
            assert await looked_over(connected) == EMPTY
            await asyncio.to_thread(cluster.set_password, USER, "another")
            await asyncio.sleep(1)
            return await looked_over(connected), await looked_over(fresh)
        finally:
            connected.close()
            fresh.close()

    try:
        old, fresh = asyncio.run(play())
        assert old == EMPTY
        assert isinstance(fresh, str)
        assert "invalid credentials" in fresh
        assert eventually(cluster.at("SCRAM"), scram(cluster, password="another")) == EMPTY
    finally:
        cluster.set_password(USER, PASSWORD)
    assert eventually(cluster.at("SCRAM"), scram(cluster)) == EMPTY


def test_tokens_are_renewed_before_the_broker_ends_their_sessions(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session lasts as long as its token; every look for two lifetimes succeeds."""
    monkeypatch.setattr(cluster.tokens, "lifetime_seconds", 6)
    cluster.tokens.scopes.clear()

    async def play() -> list[object]:
        one = group(cluster.at("OAUTH"), oauth(cluster))
        found: list[object] = []
        try:
            for _ in range(10):
                found.append(await looked_over(one))
                await asyncio.sleep(1.3)
        finally:
            one.close()
        return found

    assert asyncio.run(play()) == [EMPTY] * 10
    # One for each 4.8 s, not one for each connection or look.
    assert 2 <= len(cluster.tokens.scopes) <= 5
    assert set(cluster.tokens.scopes) == {"kafka"}


def test_a_token_server_is_asked_once_while_it_refuses(cluster: Cluster) -> None:
    before = cluster.tokens.refusals

    async def play() -> set[object]:
        one = group(cluster.at("OAUTH"), oauth(cluster, "wrong"))
        try:
            return {await looked_over(one) for _ in range(5)}
        finally:
            one.close()

    (found,) = asyncio.run(play())
    assert "invalid_client" in str(found)
    assert cluster.tokens.refusals == before + 1


# The brokers' certificates


def answered(cluster: Cluster, *trusted: Authority) -> object:
    keys = {("ca.crt" if number == 0 else f"ca-{number}.crt"): one.pem for number, one in enumerate(trusted)}
    return looked(cluster.at("TLS"), of_secrets({"security.protocol": "SSL"}, cluster_ca=keys))


def test_a_broker_with_another_certificate_of_its_authority_needs_nothing(cluster: Cluster) -> None:
    async def play(issued: Issued) -> list[object]:
        connected = group(cluster.at("TLS"), over_tls(cluster, "SSL"))
        fresh = group(cluster.at("TLS"), over_tls(cluster, "SSL"))
        try:
            first = await looked_over(connected)
            await asyncio.to_thread(cluster.use_certificate, issued, "TLS")
            return [first, await looked_over(connected), await looked_over(fresh)]
        finally:
            connected.close()
            fresh.close()

    assert asyncio.run(play(cluster.authority.issue("broker"))) == [EMPTY] * 3


def test_a_new_authority_is_trusted_as_soon_as_a_secret_has_it(cluster: Cluster) -> None:
    """Strimzi keeps the old one under another key until all brokers have certificates of the new one."""
    new = Authority("brokers")
    try:
        cluster.use_certificate(new.issue("broker"), "TLS")
        old = answered(cluster, cluster.authority)
        both = answered(cluster, new, cluster.authority)
    finally:
        cluster.use_certificate(cluster.authority.issue("broker"), "TLS")
    assert "its certificate is not trusted: " in str(old)
    assert both == EMPTY
    assert answered(cluster, new, cluster.authority) == EMPTY


def test_a_certificate_for_another_host_is_refused(cluster: Cluster) -> None:
    """The certificate is for the address alone."""
    bootstrap = cluster.at("TLS").replace("127.0.0.1", "localhost")
    unchecked = {**over_tls(cluster, "SSL"), "ssl.endpoint.identification.algorithm": ""}
    assert "certificate is not valid for 'localhost'" in str(looked(bootstrap, over_tls(cluster, "SSL")))
    assert looked(bootstrap, unchecked) == EMPTY
