"""The process of the producer: takes batches from standard input, writes them by librdkafka, answers for each.

Started by `child_process` and imported by nothing: if librdkafka ends its process, it ends this one alone. It never
outlives the operator: the end of its input ends it, and where the kernel can, so does the end of the operator. Its
answers leave through a copy of standard output, so that nothing that a library prints gets between them.
"""

import ctypes
import os
import select
import signal
import sys
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException, Producer

from streamapp.kafka.connection.allowed_brokers import AllowedBrokers
from streamapp.kafka.producer.failures import AUTHENTICATION, FATAL, NOT_ALLOWED
from streamapp.kafka.producer.frames import (
    LENGTH,
    Failure,
    Message,
    Setup,
    decode_batch,
    decode_setup,
    encode_answer,
    framed,
)

METADATA_SECONDS = 10.0
"""For the look at the brokers before each batch; the first one connects and asks for a token."""
MOST_MEMORY = 128 * 1024 * 1024
"""Bytes in memory; about 35 MB are usual. The kernel would end the whole container if its limit were reached."""
TOO_MUCH_MEMORY = 77
"""Exit code."""
_DOWN = "_ALL_BROKERS_DOWN"
_PR_SET_PDEATHSIG = 1
_INPUT = 0


class Writer:
    """Has the producer, and waits for its delivery reports."""

    def __init__(self, setup: Setup) -> None:
        self._topic = setup.topic
        self._allowed = AllowedBrokers(setup.allowed)
        self._final: str | None = None
        """Code after which nothing more is written."""
        self._cause = ""
        """What librdkafka last complained of."""
        self._producer = Producer({**setup.properties, "error_cb": self._complain})

    def idle(self) -> None:
        """Let librdkafka say what it has to say."""
        self._producer.poll(0)

    def write(self, messages: Sequence[Message]) -> list[Failure]:
        """Write a batch and wait for its reports, which come within librdkafka's `message.timeout.ms`."""
        refusal = self._refusal()
        if refusal is not None:
            return [Failure(*refusal, tuple(range(len(messages))))]
        errors: dict[int, tuple[str, str] | None] = {}

        def report(number: int, error: KafkaError | None, _: object) -> None:
            errors[number] = None if error is None else self._told(error)

        for number, one in enumerate(messages):
            try:
                self._producer.produce(self._topic, one.value, one.key, on_delivery=partial(report, number))
            except KafkaException as error:
                errors[number] = self._told(error.args[0])
        is_purged = False
        while len(errors) < len(messages):
            self._producer.poll(0.1)
            require_little_memory()
            if self._final is not None and not is_purged:
                self._producer.purge()
                is_purged = True
        if not any(errors.values()):
            self._cause = ""
        return _grouped(errors)

    def _refusal(self) -> tuple[str, str] | None:
        """Ask who the brokers are now: nothing is sent while one of them is not allowed."""
        try:
            found = self._producer.list_topics(self._topic, METADATA_SECONDS)
        except KafkaException as error:
            self.idle()
            return self._told(error.args[0])
        brokers = [(str(one.host), one.port) for one in found.brokers.values()]
        foreign = [f"{host}:{port}" for host, port in brokers if not self._allowed.allow(host, port)]
        if foreign:
            return NOT_ALLOWED, f"the administrator did not allow the broker {', '.join(sorted(foreign)[:3])}"
        of_topic = found.topics[self._topic].error
        return None if of_topic is None else self._told(of_topic)

    def _complain(self, error: KafkaError) -> None:
        """Keep the cause that says most: that all brokers are down follows from another one."""
        if self._final is None and not (self._cause and error.name() == _DOWN):
            self._cause = error.str()
        if error.fatal():
            self._final = FATAL
        elif error.name() == AUTHENTICATION:
            self._final = AUTHENTICATION

    def _told(self, error: KafkaError) -> tuple[str, str]:
        """Give code and cause: a time-out says less than what librdkafka complained of meanwhile."""
        is_own = error.name().startswith("_")
        code = self._final if is_own and self._final is not None else error.name()
        return code, f"{error.str()}: {self._cause}" if is_own and self._cause else error.str()


def _grouped(errors: dict[int, tuple[str, str] | None]) -> list[Failure]:
    numbers: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for number, error in sorted(errors.items()):
        if error is not None:
            numbers[error].append(number)
    return [Failure(code, why, tuple(found)) for (code, why), found in numbers.items()]


class Unwritable:
    """Stands for a producer that librdkafka does not make from these properties."""

    def __init__(self, error: KafkaError) -> None:
        self._error = error

    def idle(self) -> None:
        """Nothing to do."""

    def write(self, messages: Sequence[Message]) -> list[Failure]:
        """Refuse all of them."""
        return [Failure(self._error.name(), self._error.str(), tuple(range(len(messages))))]


def writer(setup: Setup) -> Writer | Unwritable:
    """Make the one that answers."""
    try:
        return Writer(setup)
    except KafkaException as error:
        return Unwritable(error.args[0])


def require_little_memory() -> None:
    """End this process before its memory ends the operator's container."""
    resident = 0
    with suppress(OSError, ValueError, IndexError):
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    if resident > MOST_MEMORY:
        os.write(2, f"more than {MOST_MEMORY} bytes of memory in use: {resident}\n".encode())
        os._exit(TOO_MUCH_MEMORY)


def depend_on_the_operator() -> None:
    """Have the kernel end this process with the operator, or before it; leave no memory behind in a file."""
    if sys.platform == "linux":
        import resource  # noqa: PLC0415 (some systems have none)

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")


def read_frame(one: Writer | Unwritable | None = None) -> bytes | None:
    """Give the next body; None at the end of the input."""
    head = _read(LENGTH.size, one)
    return None if head is None else _read(LENGTH.unpack(head)[0], one)


def _read(size: int, one: Writer | Unwritable | None) -> bytes | None:
    found = bytearray()
    while len(found) < size:
        while not select.select([_INPUT], [], [], 1.0)[0]:
            require_little_memory()
            if one is not None:
                one.idle()
        chunk = os.read(_INPUT, size - len(found))
        if not chunk:
            return None
        found += chunk
    return bytes(found)


def main() -> None:
    """Answer until the input ends."""
    depend_on_the_operator()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    setup = read_frame()
    if setup is not None:
        one = writer(decode_setup(setup))
        while (body := read_frame(one)) is not None:
            answers.write(framed(encode_answer(one.write(decode_batch(body)))))
            answers.flush()
    # Every batch has its answer, so librdkafka has nothing to clear up that would be worth waiting for.
    os._exit(0)


if __name__ == "__main__":
    main()
