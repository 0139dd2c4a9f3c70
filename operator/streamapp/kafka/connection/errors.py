"""Everything that can go wrong between the operator and a Kafka cluster.

    KafkaAccessError
    ├── InvalidSettingsError      the properties cannot be used as they are
    ├── BrokerUnreachableError    no address, no connection, or no trust in the broker's certificate
    ├── NotAuthenticatedError     the broker refuses the credentials
    ├── NotAuthorisedError        the credentials lack a right, which is named
    ├── KafkaTimeoutError         nobody answered within the deadline
    ├── TopicUnknownError         a topic or partition is not on the cluster
    ├── TemporarilyUnavailableError  a coordinator or leader moves or loads
    ├── RecordsTooLargeError      the topic takes no batch of this size
    ├── ProducerEndedError        the process that writes the flight record ended, or gave no answer
    ├── GroupNotClassicError      the group is not a Kafka Streams group, or it changes its protocol
    │   └── StreamsProtocolError  it is a group of the streams protocol
    ├── BrokerUnsupportedError    the broker is too old for a request
    └── UnexpectedAnswerError     the broker answered something else
        └── AnswerTooLargeError   the answer is larger than the operator takes

Errors carry what failed, why, and what to do next; conditions and Events show them as they are. None ever carries a
password or a key. What a broker said in them is cut to a length that a status can have.
"""

import ssl
from dataclasses import dataclass

LONGEST_CAUSE = 500
"""Characters of a cause; a broker can send megabytes."""


@dataclass
class KafkaAccessError(Exception):
    """A call to a Kafka cluster that gave no result."""

    what: str
    """The object and what failed, for example `group counter: describe`."""
    why: str
    """The cause, in the broker's or the client's words."""
    next_step: str
    """What a person can do about it."""

    def __post_init__(self) -> None:
        """Cut what a broker said."""
        if len(self.why) > LONGEST_CAUSE:
            self.why = f"{self.why[:LONGEST_CAUSE]}…"

    def __str__(self) -> str:
        return f"{self.what}: {self.why} ({self.next_step})"


class InvalidSettingsError(KafkaAccessError):
    """The client properties cannot be used."""


class BrokerUnreachableError(KafkaAccessError):
    """No broker could be connected to."""


class NotAuthenticatedError(KafkaAccessError):
    """The broker does not accept the credentials."""


@dataclass
class NotAuthorisedError(KafkaAccessError):
    """The credentials are accepted but lack a right."""

    acl: str
    """The missing right, as `kafka-acls.sh` would grant it, for example `READ on group counter`."""


class KafkaTimeoutError(KafkaAccessError):
    """The deadline passed without an answer."""


class TopicUnknownError(KafkaAccessError):
    """A topic or partition is not on the cluster."""


class TemporarilyUnavailableError(KafkaAccessError):
    """A coordinator or a partition's leader is moving or loading; a later attempt will find it."""


class RecordsTooLargeError(KafkaAccessError):
    """A batch is larger than its topic takes."""


class ProducerEndedError(KafkaAccessError):
    """The process that writes the flight record to its topic ended unasked, or gave no answer."""


class GroupNotClassicError(KafkaAccessError):
    """The group exists but not as a Kafka Streams group of the classic protocol."""


class StreamsProtocolError(GroupNotClassicError):
    """The group exists and uses the streams protocol (`group.protocol=streams`): `streams_groups` reads it."""


class BrokerUnsupportedError(KafkaAccessError):
    """The broker does not know a request that is needed."""


class UnexpectedAnswerError(KafkaAccessError):
    """The broker's answer cannot be used."""


class AnswerTooLargeError(UnexpectedAnswerError):
    """The broker's answer is larger than the operator takes."""


def cause(error: BaseException) -> str:
    """Say what an exception says, or its name where it says nothing, as a reset connection does."""
    return str(error) or type(error).__name__


def certificate_refusal(error: ssl.SSLError) -> str | None:
    """Say how the other side refused our certificate, in TLS's words; None if it did not."""
    reason = (error.reason or "").lower().replace("_", " ")
    if "alert" not in reason or ("certificate" not in reason and "unknown ca" not in reason):
        return None
    return reason.partition("alert ")[2]


def not_authorised(what: str, acl: str) -> NotAuthorisedError:
    """Build the error for a missing right."""
    return NotAuthorisedError(what, "the broker refuses it to this user", f"grant {acl}", acl)


def timed_out(what: str, seconds: float) -> KafkaTimeoutError:
    """Build the error for a deadline that passed in silence."""
    return KafkaTimeoutError(
        what,
        f"no answer within {seconds:g} s",
        "check that the brokers run and that their advertised listeners are reachable from the operator",
    )


def unexpected(what: str, why: str) -> UnexpectedAnswerError:
    """Build the error for an answer that makes no sense."""
    return UnexpectedAnswerError(what, why, "see the brokers' logs")
