"""What the operator and the process of the producer write to each other: frames of a length and a body.

Used by `child_process` and `__main__`. The operator writes one setup, then batches; each batch has one answer. The
setup holds passwords, so it goes through the pipe, never through arguments or the environment.

    frame     length of the body (4 bytes, big-endian), body
    setup     JSON: properties, topic, allowed
    batch     for each record: length of its key, length of its value (4 bytes each), key, value
    answer    JSON: a list of failures; every other record of the batch is written
"""

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

LENGTH = struct.Struct(">I")
_LENGTHS = struct.Struct(">II")


@dataclass(frozen=True, slots=True)
class Message:
    """One record."""

    key: bytes
    """Those of one key are in one partition."""
    value: bytes


@dataclass(frozen=True, slots=True)
class Setup:
    """What the process must know before the first batch."""

    properties: Mapping[str, str] = field(repr=False)
    """Of librdkafka, with passwords."""
    topic: str
    allowed: tuple[str, ...] = ()
    """Patterns `host:port` of the brokers that it may use; none allow every broker."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Records of a batch that were not written, or maybe not, for one cause."""

    code: str
    """librdkafka's name of the error, such as `_MSG_TIMED_OUT`."""
    why: str
    numbers: tuple[int, ...]
    """Their places in the batch, from 0."""


def framed(body: bytes) -> bytes:
    """Put the length before a body."""
    return LENGTH.pack(len(body)) + body


def encode_setup(setup: Setup) -> bytes:
    """Give the body of a frame."""
    return json.dumps(asdict(setup)).encode()


def decode_setup(body: bytes) -> Setup:
    """Read what `encode_setup` gave."""
    found = json.loads(body)
    return Setup(found["properties"], found["topic"], tuple(found["allowed"]))


def encode_batch(messages: Iterable[Message]) -> bytes:
    """Give the body of a frame."""
    parts: list[bytes] = []
    for one in messages:
        parts += (_LENGTHS.pack(len(one.key), len(one.value)), one.key, one.value)
    return b"".join(parts)


def decode_batch(body: bytes) -> list[Message]:
    """Read what `encode_batch` gave."""
    messages, at = [], 0
    while at < len(body):
        key, value = _LENGTHS.unpack_from(body, at)
        at += _LENGTHS.size
        messages.append(Message(body[at : at + key], body[at + key : at + key + value]))
        at += key + value
    return messages


def encode_answer(failures: Sequence[Failure]) -> bytes:
    """Give the body of a frame."""
    return json.dumps([asdict(one) for one in failures]).encode()


def decode_answer(body: bytes) -> list[Failure]:
    """Read what `encode_answer` gave."""
    return [Failure(one["code"], one["why"], tuple(one["numbers"])) for one in json.loads(body)]
