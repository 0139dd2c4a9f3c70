"""The process of the producer, as the operator lives beside it: it aborts, hangs, is killed, changes, and ends.

Most processes here are scripts that stand for the real one, which cannot be made to abort on demand.
"""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from streamapp.kafka.connection.errors import (
    BrokerUnreachableError,
    InvalidSettingsError,
    KafkaAccessError,
    NotAuthenticatedError,
    NotAuthorisedError,
    ProducerEndedError,
    RecordsTooLargeError,
    TemporarilyUnavailableError,
    TopicUnknownError,
)
from streamapp.kafka.connection.settings import Address, KafkaSettings, Sasl, Tls
from streamapp.kafka.producer import child_process, producer
from streamapp.kafka.producer.failures import failure
from streamapp.kafka.producer.frames import Failure, Message
from streamapp.kafka.producer.producer import Producer, Results

pytestmark = pytest.mark.slow

PASSWORD = "s3cret-of-the-flights"
SETTINGS = KafkaSettings((Address("127.0.0.1", 1),), sasl=Sasl("PLAIN", "flights", PASSWORD))
BATCH = [Message(b"shop/orders", b"%d" % number) for number in range(4)]
SCRIPT = """
import json, os, struct, sys, time
def read():
    head = sys.stdin.buffer.read(4)
    return sys.stdin.buffer.read(struct.unpack(">I", head)[0]) if head else os._exit(0)
def answer(failures):
    body = json.dumps(failures).encode()
    sys.stdout.buffer.write(struct.pack(">I", len(body)) + body)
    sys.stdout.buffer.flush()
def written_times(path):
    with open(path, "a") as file:
        file.write("x")
    return os.path.getsize(path)
setup = json.loads(read())
while True:
    batch = read()
"""


@dataclass
class Beside:
    """A producer whose process is a script, and what it said of ended processes."""

    settings: KafkaSettings = SETTINGS
    ended: list[ProducerEndedError] = field(default_factory=list)
    producer: Producer = field(init=False)

    def __post_init__(self) -> None:
        self.producer = Producer(lambda: self.settings, "records", self.ended.append)

    async def send(self) -> Results:
        return await self.producer.send(BATCH)

    def process(self) -> int:
        assert self.producer._child is not None
        return self.producer._child.number


Play = Callable[[Beside], Awaitable[None]]


def play(monkeypatch: pytest.MonkeyPatch, each_batch: str, what: Play) -> None:
    script = SCRIPT + textwrap.indent(textwrap.dedent(each_batch), "    ")
    monkeypatch.setattr(child_process, "COMMAND", (sys.executable, "-I", "-S", "-c", script))

    async def main() -> None:
        one = Beside()
        try:
            await what(one)
        finally:
            await one.producer.close()

    asyncio.run(main())


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_each_line_has_its_result_and_one_process_takes_many_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    async def what(one: Beside) -> None:
        results = await one.send()
        first = one.process()
        assert [type(result) for result in results] == [type(None), RecordsTooLargeError, type(None), TopicUnknownError]
        assert (await one.send(), one.process()) == (results, first)
        assert one.ended == []

    failures = [
        {"code": "MSG_SIZE_TOO_LARGE", "why": "large", "numbers": [1]},
        {"code": "UNKNOWN_TOPIC_OR_PART", "why": "", "numbers": [3]},
    ]
    play(monkeypatch, f"answer({failures})", what)


def test_an_abort_ends_the_process_alone_and_the_next_batch_starts_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(child_process, "END_SECONDS", 30.0)

    async def what(one: Beside) -> None:
        with pytest.raises(ProducerEndedError) as failed:
            await one.send()
        assert str(failed.value) == (
            "producer of topic records: it ended by SIGABRT; its last words: assertion failed with (secret) in it "
            "(No action needed: a new one is started)"
        )
        assert one.ended == [failed.value]
        assert await one.send() == [None] * 4
        assert len(one.ended) == 1

    play(
        monkeypatch,
        f"""
        if written_times({str(tmp_path / "times")!r}) == 1:
            print("assertion failed with", setup["properties"]["sasl.password"], "in it", file=sys.stderr, flush=True)
            os.abort()
        answer([])
        """,
        what,
    )


def test_a_process_that_was_killed_between_two_batches_is_counted_and_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    async def what(one: Beside) -> None:
        assert await one.send() == [None] * 4
        before = one.process()
        os.kill(before, signal.SIGKILL)
        assert one.producer._child is not None
        await one.producer._child._process.wait()
        assert await one.send() == [None] * 4
        assert one.process() != before
        assert [error.why for error in one.ended] == ["it ended by SIGKILL"]

    play(monkeypatch, "answer([])", what)


def test_a_process_that_hangs_is_killed_after_a_bound_while_the_loop_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer, "ANSWER_SECONDS", 0.5)

    async def what(one: Beside) -> None:
        sending = asyncio.create_task(one.send())
        beats = 0
        while not sending.done():
            await asyncio.sleep(0.01)
            beats += 1
        with pytest.raises(ProducerEndedError, match=r"it gave no answer within 0\.5 s; it ended by SIGKILL"):
            await sending
        assert beats > 5
        assert len(one.ended) == 1

    play(monkeypatch, "time.sleep(600)", what)


@pytest.mark.parametrize("garbage", ["b'\\xff' * 4", "struct.pack('>I', 3) + b'not'", "b'\\0\\0\\0\\9ab'"])
def test_an_answer_that_is_none_ends_the_process(monkeypatch: pytest.MonkeyPatch, garbage: str) -> None:
    async def what(one: Beside) -> None:
        with pytest.raises(ProducerEndedError):
            await one.send()
        assert len(one.ended) == 1

    play(monkeypatch, f"sys.stdout.buffer.write({garbage}); sys.stdout.flush(); os._exit(3)", what)


def test_other_properties_start_another_process_and_the_same_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async def what(one: Beside) -> None:
        await one.send()
        first = one.process()
        one.settings = replace(SETTINGS)
        await one.send()
        assert one.process() == first
        one.settings = replace(SETTINGS, sasl=Sasl("PLAIN", "flights", "another"))
        (result, *_) = await one.send()
        assert one.process() != first
        assert not is_alive(first)
        assert "another" not in str(result)
        assert one.ended == [], "it was asked to end"

    play(monkeypatch, "answer([dict(code='X', why=setup['properties']['sasl.password'], numbers=[0])])", what)


def test_after_a_refused_password_the_process_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async def what(one: Beside) -> None:
        assert [type(result) for result in await one.send()] == [NotAuthenticatedError] * 4
        assert one.producer._child is None
        assert one.ended == []

    play(monkeypatch, "answer([dict(code='_AUTHENTICATION', why='no', numbers=[0, 1, 2, 3])])", what)


def test_a_password_is_in_no_argument_and_in_no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://elsewhere.example")

    async def what(one: Beside) -> None:
        await one.send()
        place = Path(f"/proc/{one.process()}")
        shown = (place / "cmdline").read_bytes() + (place / "environ").read_bytes()
        assert PASSWORD.encode() not in shown
        assert b"elsewhere" not in shown

    play(monkeypatch, "answer([])", what)


def test_closing_in_the_middle_of_a_batch_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def what(one: Beside) -> None:
        sending = asyncio.create_task(one.send())
        await asyncio.sleep(1)
        process = one.process()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await asyncio.wait_for(one.producer.close(), 5)
        assert not is_alive(process)
        assert one.ended == []

    play(monkeypatch, "time.sleep(600)", what)


def test_no_process_is_started_with_settings_that_cannot_be_read() -> None:
    def read() -> KafkaSettings:
        raise InvalidSettingsError("client properties", "there are none", "wait")

    async def main() -> None:
        one = Producer(read, "records", lambda _: None)
        with pytest.raises(InvalidSettingsError):
            await one.send(BATCH)
        assert one._child is None

    asyncio.run(main())


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        ("TOPIC_AUTHORIZATION_FAILED", NotAuthorisedError, "grant WRITE and DESCRIBE on topic records"),
        ("_MSG_TIMED_OUT", BrokerUnreachableError, "why"),
        ("NOT_ALLOWED", InvalidSettingsError, "kafka.allowedBrokers"),
        ("NOT_ENOUGH_REPLICAS", TemporarilyUnavailableError, r"why \(NOT_ENOUGH_REPLICAS\)"),
    ],
)
def test_codes_are_errors_with_a_next_step(code: str, kind: type[KafkaAccessError], text: str) -> None:
    with pytest.raises(kind, match=text):
        raise failure(Failure(code, "why", (0,)), "records")


# The real process


async def sent_to(settings: KafkaSettings) -> KafkaAccessError | None:
    one = Producer(lambda: settings, "records", lambda _: None)
    try:
        (result,) = await one.send(BATCH[:1])
        return result
    finally:
        await one.close()


def test_no_broker_is_an_error_that_names_it() -> None:
    result = asyncio.run(sent_to(KafkaSettings((Address("127.0.0.1", 1),))))
    assert isinstance(result, BrokerUnreachableError)
    assert "127.0.0.1:1" in str(result)
    assert "Connection refused" in str(result)


def test_properties_that_librdkafka_does_not_take_are_an_error() -> None:
    result = asyncio.run(sent_to(KafkaSettings((Address("127.0.0.1", 1),), tls=Tls(trusted="no certificate"))))
    assert isinstance(result, InvalidSettingsError)
    assert "ssl.ca.pem" in str(result)


def test_it_never_outlives_the_operator() -> None:
    """An operator that is killed closes nothing; the kernel ends the process all the same."""
    operator = """
import asyncio
from streamapp.kafka.connection.settings import Address, KafkaSettings
from streamapp.kafka.producer.frames import Message
from streamapp.kafka.producer.producer import Producer
async def main():
    one = Producer(lambda: KafkaSettings((Address("127.0.0.1", 1),)), "records", print)
    await one.send([Message(b"k", b"v")])
    print(one._child.number, flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", operator], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        process = int(running.stdout.readline())
        assert is_alive(process)
        running.kill()
    until = time.monotonic() + 20
    while is_alive(process) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_alive(process)


def test_the_operators_process_never_imports_librdkafka() -> None:
    code = "import sys, streamapp.controller.lifecycle; print(sorted(m for m in sys.modules if 'confluent' in m))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
