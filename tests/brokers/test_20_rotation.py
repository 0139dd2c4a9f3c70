"""What changes while the operator is connected: passwords, tokens, certificates, and the broker that coordinates."""

import asyncio
import time
from collections.abc import Iterator, Sequence

import pytest

from streamapp.controller.apps.group_poller import GroupPoller, PollIntervals
from streamapp.controller.apps.memory import Memory
from streamapp.core.facts.group import GroupDescription, GroupState, GroupUnreadable, ObservedRebalance
from tests.brokers import secured
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
from tests.brokers.conftest import documented
from tests.brokers.members import APPLICATION, CHANGELOG, SOURCE, joined
from tests.brokers.secured import PASSWORD, USER, Broker, Cluster

pytestmark = pytest.mark.brokers

EMPTY = GroupDescription(GroupState.DEAD, ())
FAILOVER_SECONDS = 50.0
"""Less than the session of the members, who send nothing: the new coordinator would remove them after it."""
OLDER = (EMPTY, GroupDescription(GroupState.EMPTY, ()))
"""What the group was before its members joined. A new coordinator answers as of its high watermark, and that can
lie before the last record of the group for a while: see `SnapshottableCoordinator.lastCommittedOffset` in Kafka."""
STAYS_SECONDS = 3.0
"""A high watermark never falls: what was shown once the older state has given way must stay."""


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


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Give three brokers, each with a copy of everything, for a user with the documented rights."""
    with secured.running(tmp_path_factory.mktemp("brokers"), 3) as cluster:
        cluster.create(SOURCE, CHANGELOG)
        cluster.fill(CHANGELOG)
        cluster.set_password(USER, PASSWORD)
        cluster.allow(USER, *documented())
        eventually(cluster.at("SCRAM"), scram(cluster), 30)
        yield cluster


def coordinator(cluster: Cluster) -> Broker:
    """Give the broker that coordinates the group."""
    (described,) = cluster.admin.describe_consumer_groups([APPLICATION]).values()
    number = described.result(20).coordinator.id
    return next(broker for broker in cluster.brokers if broker.number == number)


Reading = GroupDescription | str


class Watch:
    """The product's own watch of the group, over one connection."""

    def __init__(self, cluster: Cluster) -> None:
        self.group = group(cluster.at("SCRAM"), scram(cluster))
        self._memory = Memory("u")
        self._poller = GroupPoller(self.group, self._memory, PollIntervals(1, 1, 1), lambda: None)

    async def look(self) -> tuple[Reading, ObservedRebalance | None]:
        """Look once; give the group, or why it is unknown, and the rebalance that it shows."""
        await self._poller.poll()
        reading = self._memory.readings[0]
        if isinstance(reading.group, GroupUnreadable):
            return reading.group.detail, None
        return reading.group, reading.rebalance


async def read_through_a_failover(cluster: Cluster, watch: Watch) -> list[tuple[float, Reading]]:
    """Kill the coordinator, and read the group until it is as it was before, and for `STAYS_SECONDS` after that.

    Gives each reading with its second after the kill; the first one is from before.
    """
    before, rebalance = await watch.look()
    assert rebalance is not None, before
    (await asyncio.to_thread(coordinator, cluster)).process.running.kill()
    began, readings = time.monotonic(), [(0.0, before)]
    until, is_back = began + FAILOVER_SECONDS, False
    while time.monotonic() < until:
        reading, shown = await watch.look()
        if reading == before:
            # The same join, which proves nothing any more: this coordinator can have a later one.
            assert shown is None
            until, is_back = until if is_back else time.monotonic() + STAYS_SECONDS, True
        readings.append((time.monotonic() - began, reading))
        await asyncio.sleep(0.2)
    return readings


def changes(readings: Sequence[tuple[float, Reading]]) -> list[tuple[float, Reading]]:
    """Give the readings that differ from the one before."""
    return [each for number, each in enumerate(readings) if number == 0 or readings[number - 1][1] != each[1]]


def described(reading: Reading) -> str:
    return reading if isinstance(reading, str) else f"{reading.state.name} with {len(reading.members)} members"


async def play(cluster: Cluster) -> None:
    """Unknown is an answer for a while, and so is what the group was before; another group is none."""
    watch = Watch(cluster)
    try:
        assert (await watch.look())[0] in OLDER
        async with joined(cluster.at("ADMIN")):
            readings = await read_through_a_failover(cluster, watch)
            print("; ".join(f"{at:.1f} s: {described(reading)}" for at, reading in changes(readings)))  # noqa: T201
            known = [(at, reading) for at, reading in readings if isinstance(reading, GroupDescription)]
            (_, before), *after = known
            assert (before.state, len(before.members)) == (GroupState.STABLE, 3)
            shown = [reading for _, reading in changes(after)]
            assert shown == [*(one for one in OLDER if one in shown), before]
            anew = await asyncio.to_thread(eventually, cluster.at("SCRAM"), scram(cluster))
            assert anew == before
    finally:
        watch.group.close()
    # The block has evicted the members from the new coordinator.


@pytest.mark.timeout(300)
def test_the_same_group_is_read_from_the_next_coordinator_and_members_can_be_evicted_there(three: Cluster) -> None:
    living = len(three.brokers)
    asyncio.run(play(three))
    assert [broker.process.lives for broker in three.brokers].count(True) == living - 1
    assert eventually(three.at("SCRAM"), scram(three)) == GroupDescription(GroupState.EMPTY, ())
