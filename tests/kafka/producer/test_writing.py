"""The real process of the producer and a scripted broker: what is said where a line is not written."""

import asyncio
from collections.abc import Sequence

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.produce.v9.request import ProduceRequest
from kio.static.protocol import RequestPayload, ResponsePayload

from streamapp.kafka.connection.allowed_brokers import AllowedBrokers
from streamapp.kafka.connection.errors import (
    BrokerUnreachableError,
    InvalidSettingsError,
    KafkaAccessError,
    NotAuthorisedError,
    RecordsTooLargeError,
    TopicUnknownError,
)
from streamapp.kafka.connection.settings import KafkaSettings
from streamapp.kafka.producer.frames import Message
from streamapp.kafka.producer.producer import Producer
from tests.kafka import answers
from tests.kafka.scripted import ScriptedBroker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

TOPIC = "records"
SENT = [Message(f"shop/app-{number % 4}".encode(), f'{{"seq":{number}}}'.encode()) for number in range(40)]
EVERY = AllowedBrokers()


async def results(
    broker: ScriptedBroker,
    *,
    code: ErrorCode = ErrorCode.none,
    partitions: int = 3,
    allowed: AllowedBrokers = EVERY,
    is_silent: bool = False,
) -> Sequence[KafkaAccessError | None]:
    async def where(_: RequestPayload) -> MetadataResponse:
        leaders = {TOPIC: [0] * partitions} if partitions else {}
        return answers.cluster([broker.address], leaders, {} if partitions else {TOPIC: answers.UNKNOWN_TOPIC})

    async def identify(_: RequestPayload) -> ResponsePayload:
        return answers.producer_id()

    async def take(request: RequestPayload) -> ResponsePayload:
        assert isinstance(request, ProduceRequest)
        assert request.acks == -1
        return answers.produced(request, code)

    if not is_silent:
        broker.handlers = {"Metadata": where, "InitProducerId": identify, "Produce": take}
    async with broker.running():
        settings = KafkaSettings((broker.address,), allowed=allowed)
        producer = Producer(lambda: settings, TOPIC, lambda error: pytest.fail(str(error)))
        try:
            return await producer.send(SENT)
        finally:
            await producer.close()


def test_every_line_is_written_by_an_idempotent_producer() -> None:
    broker = ScriptedBroker()
    assert asyncio.run(results(broker)) == [None] * len(SENT)
    assert "InitProducerId" in broker.names()
    assert "Produce" in broker.names()


@pytest.mark.parametrize(
    ("code", "partitions", "kind", "text"),
    [
        (answers.DENIED, 3, NotAuthorisedError, "WRITE and DESCRIBE on topic records"),
        (ErrorCode.message_too_large, 3, RecordsTooLargeError, "raise the topic's max.message.bytes"),
        (ErrorCode.none, 0, TopicUnknownError, "create the topic"),
    ],
)
def test_what_was_not_written_is_an_error(
    code: ErrorCode, partitions: int, kind: type[KafkaAccessError], text: str
) -> None:
    found = asyncio.run(results(ScriptedBroker(), code=code, partitions=partitions))
    assert {type(one) for one in found} == {kind}
    assert text in str(found[0])


def test_nothing_is_sent_while_metadata_names_a_broker_that_is_not_allowed() -> None:
    broker = ScriptedBroker()
    found = asyncio.run(results(broker, allowed=AllowedBrokers(("127.0.0.1:1",))))
    assert {type(one) for one in found} == {InvalidSettingsError}
    assert f"did not allow the broker {broker.address}" in str(found[0])
    assert "Produce" not in broker.names()


def test_a_broker_that_stays_silent_costs_its_bound() -> None:
    found = asyncio.run(results(ScriptedBroker(), is_silent=True))
    assert {type(one) for one in found} == {BrokerUnreachableError}
