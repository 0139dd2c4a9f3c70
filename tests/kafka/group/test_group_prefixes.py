"""Other applications whose ids continue this one's: found on every broker, or not believed to be absent."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from kio.schema.errors import ErrorCode
from kio.static.protocol import ResponsePayload

from streamapp.kafka.cluster import KafkaCluster
from streamapp.kafka.connection.errors import BrokerUnreachableError, NotAuthorisedError
from tests.kafka import answers
from tests.kafka.scripted import ScriptedBroker, always


async def read(*each: ResponsePayload | None) -> frozenset[str]:
    """Ask a cluster whose brokers answer so; one that answers None is gone."""
    brokers = [ScriptedBroker({} if answer is None else {"ListGroups": always(answer)}) for answer in each]
    async with AsyncExitStack() as stack:
        for broker, answer in zip(brokers, each, strict=True):
            if answer is None:
                async with broker.running():
                    pass  # it has had a port, where nobody listens any more
            else:
                await stack.enter_async_context(broker.running())
        brokers[0].handlers["Metadata"] = always(answers.cluster([one.address for one in brokers], {}))
        cluster = KafkaCluster(brokers[0].settings(), "orders")
        try:
            return await cluster.prefixes.longer_ids("orders", 5)
        finally:
            cluster.close()


def test_groups_whose_name_continues_the_applications_are_found_on_every_broker() -> None:
    first = answers.groups("orders", "orders-eu", "ordersplain", "other")
    assert asyncio.run(read(first, answers.groups("orders-us", "eu-orders-eu"))) == {"orders-eu", "orders-us"}


def test_a_broker_that_does_not_answer_may_know_another_one() -> None:
    with pytest.raises(BrokerUnreachableError):
        asyncio.run(read(answers.groups("orders"), None))


def test_a_refusal_is_no_empty_list() -> None:
    with pytest.raises(NotAuthorisedError):
        asyncio.run(read(answers.groups(code=ErrorCode.group_authorization_failed)))
