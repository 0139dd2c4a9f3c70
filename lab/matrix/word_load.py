"""What the applications of the matrix read: words, first each once for a state, then some of them at an even pace.

Key and value are the same word, and the partition is that of Java's clients: so WordCountDemo's repartitioning by word
leaves every word in its partition, and one measurement fits all applications.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle

from confluent_kafka import KafkaError, Message, Producer

from lab.errors import LabError
from lab.matrix.broker import PARTITIONS

_STEADY_WORDS = 40
"""Of each partition."""
_FLUSH_SECONDS = 60.0


def preload(bootstrap: str, topic: str, count: int) -> list[list[str]]:
    """Write so many different words, each once; give some of each partition for the steady load."""
    producer = _producer(bootstrap, linger_ms=20)
    words: list[list[str]] = [[] for _ in range(PARTITIONS)]
    failures: list[KafkaError] = []

    def written(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)
            return
        of_partition = words[message.partition() or 0]
        if len(of_partition) < _STEADY_WORDS:
            of_partition.append((message.key() or b"").decode())

    for number in range(count):
        word = f"word{number}"
        while True:
            try:
                producer.produce(topic, word, word, on_delivery=written)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 1000 == 0:
            producer.poll(0)
    left = producer.flush(_FLUSH_SECONDS)
    if failures or left:
        why = str(failures[0]) if failures else f"{left} records were not taken within {_FLUSH_SECONDS:g} s"
        raise LabError(f"topic {topic}: not preloaded", why, "look at the broker's log")
    return words


@contextmanager
def steady(bootstrap: str, topic: str, words: list[list[str]], rate: int) -> Iterator[None]:
    """Write `rate` records a second, partition after partition, for the time of the block."""
    stopping = threading.Event()
    thread = threading.Thread(target=_write, args=(bootstrap, topic, words, rate, stopping), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(_FLUSH_SECONDS)


def _write(bootstrap: str, topic: str, words: list[list[str]], rate: int, stopping: threading.Event) -> None:
    producer = _producer(bootstrap, linger_ms=2)
    turns = [cycle(of_partition) for of_partition in words]
    start, sent = time.monotonic(), 0
    while not stopping.is_set():
        due = int((time.monotonic() - start) * rate)
        while sent < due:
            word = next(turns[sent % PARTITIONS])
            producer.produce(topic, word, word)
            sent += 1
        producer.poll(0)
        stopping.wait(0.005)
    producer.flush(_FLUSH_SECONDS)


def _producer(bootstrap: str, *, linger_ms: int) -> Producer:
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "partitioner": "murmur2",
            "linger.ms": linger_ms,
            "enable.idempotence": True,
            "queue.buffering.max.messages": 100_000,
            "message.timeout.ms": 30_000,
            "log_level": 2,
        }
    )
