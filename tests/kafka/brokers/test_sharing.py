"""Applications of one cluster share its connections; none of them loses an answer, a turn or time to another one."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import pytest
from kio.schema.describe_groups.v5.request import DescribeGroupsRequest
from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v1.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.static.protocol import RequestPayload, ResponsePayload

from streamapp.kafka.brokers import shared_brokers
from streamapp.kafka.brokers.shared_brokers import PLACES
from streamapp.kafka.brokers.shared_clusters import SharedClusters
from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.answer_limits import AnswerLimits
from streamapp.kafka.connection.errors import AnswerTooLargeError, BrokerUnreachableError, KafkaTimeoutError
from streamapp.kafka.connection.settings import KafkaSettings, Sasl
from streamapp.kafka.group.groups import ClassicGroupState, read_group
from tests.kafka import answers
from tests.kafka.scripted import CloseConnectionError, ScriptedBroker, always, coordinator_answer

DEADLINE = 5.0


@dataclass
class Broker(ScriptedBroker):
    """Coordinates every group; each has a state of its own, so that an answer to another question is found."""

    held: dict[str, asyncio.Event] = field(default_factory=dict)
    """Groups whose descriptions wait."""
    under_way: int = 0
    open: int = 0

    def __post_init__(self) -> None:
        self.handlers |= {"FindCoordinator": self._find, "DescribeGroups": self._describe}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            await super()._serve(reader, writer)
        finally:
            self.open -= 1

    async def _find(self, request: RequestPayload) -> ResponsePayload:
        return coordinator_answer(self.address, *getattr(request, "coordinator_keys"))  # noqa: B009 (of its type)

    async def _describe(self, request: RequestPayload) -> ResponsePayload:
        assert isinstance(request, DescribeGroupsRequest)
        (group,) = request.groups
        if group in self.held:
            self.under_way += 1
            await self.held[group].wait()
        return answers.described("Empty", group=group)

    @property
    def accepted(self) -> int:
        """Connections since the beginning."""
        return self._connections


Open = Callable[..., KafkaCluster]


@asynccontextmanager
async def a_fleet() -> AsyncIterator[tuple[Broker, SharedClusters, Open]]:
    """Give a broker, and what opens the cluster of an application on it."""
    clusters = SharedClusters()
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(Broker().running())
        assert isinstance(broker, Broker)
        stack.callback(clusters.close)

        def opened(
            group: str, settings: KafkaSettings | None = None, limits: AnswerLimits | None = None
        ) -> KafkaCluster:
            one = KafkaCluster(
                settings or broker.settings(), group, limits or AnswerLimits(), clusters=clusters, tenant=group
            )
            stack.callback(one.close)
            return one

        yield broker, clusters, opened


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition; the test's own timeout ends it."""
    while not condition():  # noqa: ASYNC110 (a broker tells nobody)
        await asyncio.sleep(0.005)


async def reads(cluster: KafkaCluster, deadline: float = DEADLINE) -> tuple[str, ClassicGroupState]:
    found = await read_group(cluster.group, deadline)
    return found.group_id, found.state


def test_applications_with_equal_settings_share_a_connection() -> None:
    async def main() -> tuple[int, int, list[str]]:
        async with a_fleet() as (broker, clusters, opened):
            apps = [opened(f"app-{number}") for number in range(20)]
            found = [await reads(app) for app in apps]
            assert found == [(f"app-{number}", ClassicGroupState.EMPTY) for number in range(20)]
            return broker.accepted, clusters.count, broker.names()[:2]

    assert asyncio.run(main()) == (1, 1, ["FindCoordinator", "DescribeGroups"])


def test_many_that_ask_at_once_share_a_few() -> None:
    async def main() -> int:
        async with a_fleet() as (broker, _, opened):
            apps = [opened(f"app-{number}") for number in range(50)]
            found = await asyncio.gather(*map(reads, apps))
            assert [group for group, _ in found] == [f"app-{number}" for number in range(50)]
            return broker.accepted

    assert asyncio.run(main()) <= PLACES


OTHERS: dict[str, Callable[[KafkaSettings], KafkaSettings]] = {
    "another password": lambda own: replace(own, sasl=Sasl("PLAIN", "reader", "other")),
    "another user": lambda own: replace(own, sasl=Sasl("PLAIN", "other", "s3cret")),
    "no login": lambda own: replace(own, sasl=None),
    "more brokers": lambda own: replace(own, bootstrap=own.bootstrap * 2),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
def test_whoever_says_anything_else_shares_nothing(other: Callable[[KafkaSettings], KafkaSettings]) -> None:
    own = replace(Broker().settings(), sasl=Sasl("PLAIN", "reader", "s3cret"))
    clusters = SharedClusters()
    first, second, third = clusters.enter(own), clusters.enter(other(own)), clusters.enter(replace(own))
    assert first is third
    assert first is not second
    for one in (first, second, third):
        clusters.leave(one)
    assert clusters.count == 0


def test_the_last_application_that_leaves_closes_the_connections_and_leaving_twice_is_leaving_once() -> None:
    async def main() -> None:
        async with a_fleet() as (broker, clusters, opened):
            one, other = opened("one"), opened("other")
            await asyncio.gather(reads(one), reads(other))
            one.close()
            one.close()
            assert (await reads(other))[0] == "other"
            assert (clusters.count, broker.open > 0) == (1, True)
            other.close()
            await until(lambda: broker.open == 0)
            assert (clusters.count, clusters.connections) == (0, 0)

    asyncio.run(main())


def test_new_credentials_make_new_connections_and_the_old_ones_are_closed_when_nobody_uses_them() -> None:
    async def main() -> list[int]:
        async with a_fleet() as (broker, clusters, opened):
            broker.handlers["SaslHandshake"] = always(
                SaslHandshakeResponse(error_code=ErrorCode.none, mechanisms=("PLAIN",))
            )
            broker.handlers["SaslAuthenticate"] = always(
                SaslAuthenticateResponse(error_code=ErrorCode.none, error_message=None, auth_bytes=b"")
            )
            old, rotated = (broker.settings(sasl=Sasl("PLAIN", "reader", secret)) for secret in ("old", "new"))
            before = [opened("one", old), opened("other", old)]
            for app in before:
                await reads(app)
            counts = [clusters.count]
            after = []
            for app in before:
                app.close()
                after.append(opened("new", rotated))
                await reads(after[-1])
                counts.append(clusters.count)
            await until(lambda: broker.open == 1)
            return [*counts, broker.accepted]

    assert asyncio.run(main()) == [1, 2, 1, 2]


def test_a_request_that_is_cancelled_while_its_answer_is_due_leaves_no_answer_to_others() -> None:
    async def main() -> None:
        async with a_fleet() as (broker, _, opened):
            hasty, patient = opened("hasty"), opened("patient")
            await asyncio.gather(reads(hasty), reads(patient))
            broker.held["hasty"] = asyncio.Event()
            for _ in range(3):
                asking = asyncio.create_task(reads(hasty))
                await until(lambda: broker.under_way > 0)
                others = [asyncio.create_task(reads(patient)) for _ in range(3)]
                asking.cancel()
                broker.held["hasty"].set()
                assert {await one for one in others} == {("patient", ClassicGroupState.EMPTY)}
                broker.held["hasty"], broker.under_way = asyncio.Event(), 0
                with pytest.raises(asyncio.CancelledError):
                    await asking

    asyncio.run(main())


def test_an_application_that_is_closed_ends_its_own_request_alone() -> None:
    async def main() -> None:
        async with a_fleet() as (broker, _, opened):
            going, staying = opened("going"), opened("staying")
            await asyncio.gather(reads(going), reads(staying))
            broker.held |= {"going": asyncio.Event(), "staying": asyncio.Event()}
            both = [asyncio.create_task(reads(one)) for one in (going, staying)]
            await until(lambda: broker.under_way == 2)
            going.close()
            broker.held["staying"].set()
            with pytest.raises(BrokerUnreachableError):
                await both[0]
            assert await both[1] == ("staying", ClassicGroupState.EMPTY)

    asyncio.run(main())


def test_a_connection_that_breaks_is_made_anew_for_each_request_that_was_on_it() -> None:
    async def main() -> None:
        async with a_fleet() as (broker, _, opened):
            apps = [opened(f"app-{number}") for number in range(8)]
            await asyncio.gather(*map(reads, apps))
            describe, broken = broker.handlers["DescribeGroups"], [0]

            async def break_some(request: RequestPayload) -> ResponsePayload:
                broken[0] += 1
                if broken[0] <= PLACES:
                    raise CloseConnectionError
                return await describe(request)

            broker.handlers["DescribeGroups"] = break_some
            assert [group for group, _ in await asyncio.gather(*map(reads, apps))] == [f"app-{n}" for n in range(8)]

    asyncio.run(main())


@pytest.mark.slow  # real time
def test_groups_that_answer_slowly_or_never_delay_no_other_group_of_the_same_brokers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow_seconds = 0.3
    monkeypatch.setattr(shared_brokers, "SLOW_SECONDS", slow_seconds)

    async def main() -> tuple[float, float]:
        async with a_fleet() as (broker, _, opened):
            slow, quick = [opened(f"slow-{number}") for number in range(10 * PLACES)], opened("quick")
            await asyncio.gather(*map(reads, [*slow, quick]))
            broker.held |= {f"slow-{number}": asyncio.Event() for number in range(10 * PLACES)}
            took = []
            for _ in range(2):
                waiting = [asyncio.create_task(reads(one, 1.0)) for one in slow]
                await asyncio.sleep(0)
                began = time.monotonic()
                assert (await reads(quick))[0] == "quick"
                took.append(time.monotonic() - began)
                ends = await asyncio.gather(*waiting, return_exceptions=True)
                assert {type(end) for end in ends} == {KafkaTimeoutError}
            return took[0], took[1]

    first, again = asyncio.run(main())
    assert slow_seconds < first < 0.9  # not until all of them have given their places away
    assert again < slow_seconds  # those who were slow take no place any more


def test_a_group_whose_answer_is_too_large_is_refused_to_its_own_application_alone() -> None:
    async def main() -> None:
        async with a_fleet() as (broker, _, opened):
            small = AnswerLimits(most_bytes=60)
            large, other = opened("a-name-" * 20, limits=small), opened("other")
            with pytest.raises(AnswerTooLargeError):
                await reads(large)
            assert (await reads(other))[0] == "other"
            asked = len(broker.names())
            with pytest.raises(AnswerTooLargeError):
                await reads(large)  # left alone for a while
            assert (await reads(other))[0] == "other"
            assert len(broker.names()) == asked + 1

    asyncio.run(main())


# Requests whose answer is the same for all


def listing(broker: Broker, began: asyncio.Event, gate: asyncio.Event) -> None:
    """Have the broker name itself, as soon as the gate is open."""

    async def metadata(_: RequestPayload) -> ResponsePayload:
        began.set()
        await gate.wait()
        return answers.cluster([broker.address], {})

    broker.handlers["ListGroups"] = always(answers.groups("one", "one-more", "other"))
    broker.handlers["Metadata"] = metadata


def test_what_is_the_same_for_all_is_asked_for_once_by_all_who_wait() -> None:
    async def main() -> list[str]:
        async with a_fleet() as (broker, _, opened):
            began, gate = asyncio.Event(), asyncio.Event()
            listing(broker, began, gate)
            apps = [opened("one"), *(opened("other") for _ in range(30))]
            first = asyncio.create_task(apps[0].prefixes.longer_ids("one", DEADLINE))
            await began.wait()
            others = [asyncio.create_task(app.prefixes.longer_ids("other", DEADLINE)) for app in apps[1:]]
            await asyncio.sleep(0.01)
            gate.set()
            assert await first == {"one-more"}
            assert await asyncio.gather(*others) == [frozenset()] * 30
            return broker.names()

    # One that was sent before the others asked is not theirs: they share the next one.
    assert sorted(asyncio.run(main())) == ["ListGroups", "ListGroups", "Metadata", "Metadata"]


def test_one_that_leaves_takes_the_answer_from_nobody_and_the_last_one_that_leaves_ends_the_request() -> None:
    async def main() -> None:
        async with a_fleet() as (broker, clusters, opened):
            began, gate = asyncio.Event(), asyncio.Event()
            listing(broker, began, gate)
            apps = [opened("one"), opened("other")]
            asking = [asyncio.create_task(app.prefixes.longer_ids("one", DEADLINE)) for app in apps]
            await began.wait()
            asking[0].cancel()
            apps[0].close()
            gate.set()
            assert await asking[1] == {"one-more"}
            gate.clear()
            began.clear()
            last = asyncio.create_task(apps[1].prefixes.longer_ids("one", DEADLINE))
            await began.wait()
            last.cancel()
            await asyncio.gather(last, return_exceptions=True)
            assert clusters.connections == 0
            gate.set()
            assert await apps[1].prefixes.longer_ids("one", DEADLINE) == {"one-more"}

    asyncio.run(main())


def test_a_request_that_all_shared_and_that_failed_is_an_error_for_each_and_asked_anew() -> None:
    async def main() -> None:
        async with a_fleet() as (broker, _, opened):
            broker.hidden = frozenset({"Metadata"})
            apps = [opened("one"), opened("other")]
            ask = [partial(app.topics.changelogs, "app", DEADLINE) for app in apps]
            ends: list[BaseException | object] = await asyncio.gather(*(each() for each in ask), return_exceptions=True)
            assert [type(end).__name__ for end in ends] == ["BrokerUnsupportedError"] * 2

    asyncio.run(main())
