"""Writes inputs, and outputs as the demo application would write them, with faults planted on purpose.

Used by the tests of the meter. Remembers the offset and the append time of every record from the broker's own delivery
reports.
"""

import json
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from confluent_kafka import Message, Producer

from lab.errors import LabError
from lab.meter.gaps import Appends
from lab.meter.topics import Broker

PARTITIONS = 3


def wait_for_leaders(bootstrap: str, topic: str) -> None:
    """Wait until the broker answers for a topic that it has just made."""
    deadline = time.monotonic() + 20
    while True:
        try:
            Broker(bootstrap).starts(topic)
        except LabError:
            assert time.monotonic() < deadline, f"{topic} has no leaders"
            time.sleep(0.1)
        else:
            return


@dataclass
class Written:
    """One record as the broker took it."""

    partition: int
    offset: int
    time_ms: int


@dataclass
class Plant:
    """Writes inputs and the outputs for them, and remembers where the broker put them.

    Outputs go to other partitions than their inputs, as the partitioners of two client libraries make them.
    """

    bootstrap: str
    input_topic: str
    output_topic: str
    transactional: bool = False
    inputs: list[Written] = field(default_factory=list)
    outputs: list[Written] = field(default_factory=list)
    """By the *input's* partition and offset."""

    def __post_init__(self) -> None:
        settings: dict[str, str | int | bool] = {"bootstrap.servers": self.bootstrap, "linger.ms": 0}
        if self.transactional:
            settings["transactional.id"] = f"meter-test-{uuid.uuid4().hex[:12]}"
        self.producer = Producer(settings | {"enable.idempotence": True})
        if self.transactional:
            self.producer.init_transactions(30)

    def put_input(self, partition: int, key: bytes | None = b"k") -> None:
        def delivered(error: object, message: Message) -> None:
            assert error is None, error
            self.inputs.append(Written(partition, message.offset() or 0, message.timestamp()[1]))

        self.producer.produce(self.input_topic, b"word", key, partition, on_delivery=delivered)

    def put_output(self, partition: int, offset: int, count: int = 1, key: bytes | None = b"k") -> None:
        def delivered(error: object, message: Message) -> None:
            assert error is None, error
            self.outputs.append(Written(partition, offset, message.timestamp()[1]))

        value = json.dumps({"partition": partition, "offset": offset, "count": count}).encode()
        self.producer.produce(self.output_topic, value, key, (partition * 2 + 1) % PARTITIONS, on_delivery=delivered)

    def flush(self) -> None:
        assert self.producer.flush(30) == 0

    def inputs_of(self, partition: int) -> list[Written]:
        return sorted((each for each in self.inputs if each.partition == partition), key=lambda each: each.offset)

    def appends(self, records: list[Written]) -> dict[int, Appends]:
        """Sort what the broker took into the partitions, as the meter should have read it."""
        table = np.array([(each.partition, each.offset, each.time_ms) for each in records], np.int64).reshape(-1, 3)
        return {
            number: Appends(table[table[:, 0] == number, 1], table[table[:, 0] == number, 2])
            for number in range(PARTITIONS)
        }


class Application:
    """Answers inputs every 20 ms for some seconds; holds back one partition for a time, then catches up."""

    def __init__(self, plant: Plant) -> None:
        self.plant = plant
        self.answered = 0
        self.held: list[Written] = []
        self.first_held: Written | None = None

    def run(self, seconds: float, *, hold: tuple[int, float, float], no_input: tuple[int, float, float]) -> float:
        """Work for `seconds`; `hold` and `no_input` are (partition, from, to). Give the time of the true hold."""
        begun = time.monotonic()
        held_from = held_to = 0.0
        while (now := time.monotonic() - begun) < seconds:
            for partition in range(PARTITIONS):
                if not (partition == no_input[0] and no_input[1] <= now < no_input[2]):
                    self.plant.put_input(partition)
            time.sleep(0.02)
            self.plant.producer.poll(0)
            holding = hold[1] <= now < hold[2]
            if holding and not held_from:
                held_from = now
            if not holding and held_from and not held_to:
                held_to = now
            self.answer(hold[0] if holding else None)
        self.plant.flush()
        self.answer(None)
        self.plant.flush()
        return held_to - held_from

    def answer(self, held: int | None) -> None:
        new, self.answered = self.held + self.plant.inputs[self.answered :], len(self.plant.inputs)
        self.held = [each for each in new if each.partition == held]
        self.first_held = self.first_held or next(iter(self.held), None)
        for each in new:
            if each.partition != held:
                self.plant.put_output(each.partition, each.offset)


def write_counted(plant: Plant, each: int, keys: int) -> None:
    """Write inputs of `keys` keys per partition and answer them all with right counts."""
    for number in range(each):
        for partition in range(PARTITIONS):
            plant.put_input(partition, key_of(partition, number % keys))
    plant.flush()
    counts: Counter[bytes] = Counter()
    for partition in range(PARTITIONS):
        for number, record in enumerate(plant.inputs_of(partition)):
            key = key_of(partition, number % keys)
            counts[key] += 1
            plant.put_output(partition, record.offset, counts[key], key)
    plant.flush()


def key_of(partition: int, number: int) -> bytes:
    return b"key-%d-%02d" % (partition, number)
