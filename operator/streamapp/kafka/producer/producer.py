"""Sends records to one topic, at least once: the flight record, and nothing else of the operator.

Called by `controller.record.topic_writer`. The process that has librdkafka is started with the first record, again
after it ended for whatever reason, and again when the client properties have changed. If a batch has no answer, its
records are sent again, so readers must recognise duplicates.
"""

import asyncio
from collections.abc import Callable, Sequence

from streamapp.kafka.connection.errors import KafkaAccessError, ProducerEndedError
from streamapp.kafka.connection.settings import KafkaSettings
from streamapp.kafka.producer.child_process import ChildEndedError, ChildProcess
from streamapp.kafka.producer.failures import FINAL, failure
from streamapp.kafka.producer.frames import Failure, Message, Setup, decode_answer, encode_batch
from streamapp.kafka.producer.librdkafka import MESSAGE_SECONDS, client_properties, secrets_of

ANSWER_SECONDS = 3 * MESSAGE_SECONDS
"""For a batch: a look at the brokers, the time of a message, and the start of the process on a busy node."""
_AGAIN = "No action needed: a new one is started"

Results = Sequence[KafkaAccessError | None]
"""For each record of a batch None if it is written, or why it is not, or maybe not."""


class Producer:
    """Writes to one topic; starts its process at first use, from within the event loop."""

    def __init__(
        self, read: Callable[[], KafkaSettings], topic: str, ended: Callable[[ProducerEndedError], object]
    ) -> None:
        """Start nothing yet.

        Args:
            read: Gives the settings as they are now, or KafkaAccessError; called in a thread before each batch.
            topic: Where to write.
            ended: Called for each process that ended unasked or gave no answer.
        """
        self._read = read
        self._topic = topic
        self._ended = ended
        self._child: ChildProcess | None = None
        self._settings: KafkaSettings | None = None

    async def close(self) -> None:
        """End the process: at once if it is idle, else by force. Nothing that was sent waits in an idle one."""
        child, self._child = self._child, None
        if child is not None:
            await child.end()

    async def send(self, messages: Sequence[Message]) -> Results:
        """Write these, in their order within each key; KafkaAccessError if nothing is known of any of them."""
        child = await self._child_for(await asyncio.to_thread(self._read))
        try:
            answer = decode_answer(await child.ask(encode_batch(messages), ANSWER_SECONDS))
        except TimeoutError as error:
            raise await self._lost(child, f"it gave no answer within {ANSWER_SECONDS:g} s; ") from error
        except (ChildEndedError, ValueError) as error:
            raise await self._lost(child) from error
        results: list[KafkaAccessError | None] = [None] * len(messages)
        for one in answer:
            cause = failure(Failure(one.code, child.without_secrets(one.why), ()), self._topic)
            for number in one.numbers:
                results[number] = cause
        if any(one.code in FINAL for one in answer):
            await self.close()
        return results

    async def _child_for(self, settings: KafkaSettings) -> ChildProcess:
        """Give the process that has these settings."""
        child = self._child
        if child is not None and child.has_ended:
            await self._lost(child)
        elif child is not None and settings == self._settings:
            return child
        await self.close()
        setup = Setup(client_properties(settings), self._topic, settings.allowed.patterns)
        try:
            self._child = child = await ChildProcess.start(setup, secrets_of(settings))
        except OSError as error:
            raise self._unasked(f"it cannot be started: {error}") from error
        self._settings = settings
        return child

    async def _lost(self, child: ChildProcess, before: str = "") -> ProducerEndedError:
        """Take leave of a process that ended unasked or hangs."""
        self._child = None
        return self._unasked(before + await child.cause())

    def _unasked(self, why: str) -> ProducerEndedError:
        error = ProducerEndedError(f"producer of topic {self._topic}", why, _AGAIN)
        self._ended(error)
        return error
