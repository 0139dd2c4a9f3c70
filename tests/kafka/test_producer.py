"""Writing the flight record's lines to a topic: what arrives, and what is said where it does not."""

import asyncio
from collections.abc import Sequence

import pytest
from kio.records.readers import read_batch
from kio.records.schema import RecordBatch
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.produce.v9.request import ProduceRequest
from kio.schema.produce.v9.response import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from kio.schema.types import TopicName
from kio.static.primitive import i64
from kio.static.protocol import RequestPayload, ResponsePayload

from streamapp.kafka.connection.errors import KafkaAccessError, NotAuthorisedError, TopicUnknownError
from streamapp.kafka.producer import Message, Producer
from streamapp.wire.batches import decode_batches
from tests.kafka import answers
from tests.kafka.scripted import NO_THROTTLE, ScriptedBroker

TOPIC = "records"
SENT = [Message(f"shop/app-{number % 4}".encode(), f'{{"seq":{number}}}'.encode()) for number in range(40)]


def produced(request: RequestPayload, code: ErrorCode = ErrorCode.none) -> ProduceResponse:
    assert isinstance(request, ProduceRequest)
    [topic] = request.topic_data
    told = tuple(
        PartitionProduceResponse(index=one.index, error_code=code, base_offset=i64(0), record_errors=())
        for one in topic.partition_data
    )
    of_topic = TopicProduceResponse(name=TopicName(TOPIC), partition_responses=told)
    return ProduceResponse(responses=(of_topic,), throttle_time=NO_THROTTLE)


async def sent(
    broker: ScriptedBroker,
    messages: Sequence[Message] = SENT,
    *,
    code: ErrorCode = ErrorCode.none,
    partitions: int = 3,
    is_silent: bool = False,
) -> None:
    async def where(_: RequestPayload) -> MetadataResponse:
        leaders = {TOPIC: [0] * partitions} if partitions else {}
        return answers.cluster([broker.address], leaders, {} if partitions else {TOPIC: answers.UNKNOWN_TOPIC})

    async def take(request: RequestPayload) -> ResponsePayload:
        return produced(request, code)

    broker.handlers = {"Metadata": where} if is_silent else {"Metadata": where, "Produce": take}
    async with broker.running():
        producer = Producer(broker.settings(), TOPIC)
        try:
            await producer.send(messages, 1)
        finally:
            producer.close()


def batches(broker: ScriptedBroker) -> dict[int, RecordBatch]:
    requests = [one.request for one in broker.seen if isinstance(one.request, ProduceRequest)]
    found = {}
    for request in requests:
        assert request.acks == -1
        for partition in request.topic_data[0].partition_data:
            assert partition.records is not None
            assert decode_batches(bytes(partition.records)).cut == 0
            batch, size = read_batch(bytes(partition.records), 0)
            assert size == len(partition.records)
            found[int(partition.index)] = batch
    return found


def test_every_line_arrives_once_and_those_of_one_application_in_one_partition_in_their_order() -> None:
    broker = ScriptedBroker()
    asyncio.run(sent(broker))
    found = batches(broker)
    arrived = [(number, one.key, one.value) for number, batch in found.items() for one in batch.records]
    assert sorted((key, value) for _, key, value in arrived) == sorted((one.key, one.value) for one in SENT)
    places = {key: number for number, key, _ in arrived}
    assert all(places[key] == number for number, key, _ in arrived)
    for key in places:
        assert [value for _, other, value in arrived if other == key] == [one.value for one in SENT if one.key == key]


def test_one_record_makes_a_batch_too() -> None:
    broker = ScriptedBroker()
    asyncio.run(sent(broker, SENT[:1]))
    [batch] = batches(broker).values()
    assert [one.value for one in batch.records] == [SENT[0].value]


@pytest.mark.parametrize(
    ("code", "partitions", "kind", "text"),
    [
        (answers.DENIED, 3, NotAuthorisedError, "WRITE on topic records"),
        (ErrorCode.not_enough_replicas, 3, KafkaAccessError, "not_enough_replicas"),
        (ErrorCode.none, 0, TopicUnknownError, "it is not on the cluster"),
    ],
)
def test_what_was_not_written_is_an_error(
    code: ErrorCode, partitions: int, kind: type[KafkaAccessError], text: str
) -> None:
    with pytest.raises(kind, match=text):
        asyncio.run(sent(ScriptedBroker(), code=code, partitions=partitions))


def test_a_broker_that_stays_silent_costs_the_deadline() -> None:
    async def run() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(KafkaAccessError):
            await sent(ScriptedBroker(), is_silent=True)
        return loop.time() - began

    assert 0.9 < asyncio.run(run()) < 10
