"""What librdkafka's error codes mean, in the words of `connection.errors`.

Called by `producer`. A code with an underscore is librdkafka's own; any other is the broker's.
"""

from streamapp.kafka.connection.errors import (
    BrokerUnreachableError,
    InvalidSettingsError,
    KafkaAccessError,
    NotAuthenticatedError,
    RecordsTooLargeError,
    TemporarilyUnavailableError,
    TopicUnknownError,
    not_authorised,
)
from streamapp.kafka.producer.frames import Failure

NOT_ALLOWED = "NOT_ALLOWED"
"""The code of the process itself: the cluster has a broker that the administrator did not allow."""
AUTHENTICATION = "_AUTHENTICATION"
FATAL = "_FATAL"
UNUSABLE = "_INVALID_ARG"
"""librdkafka takes a property not as it is, such as a certificate that is none."""

FINAL = frozenset({NOT_ALLOWED, AUTHENTICATION, FATAL, UNUSABLE})
"""After these the process is started anew, with the properties as they are then."""

_UNKNOWN = frozenset({"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"})
_DENIED = frozenset({"TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"})
_TOO_LARGE = frozenset({"MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"})
_UNREACHABLE = frozenset({"_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_SSL", "_TIMED_OUT", "_MSG_TIMED_OUT"})

_KINDS: tuple[tuple[frozenset[str], type[KafkaAccessError], str], ...] = (
    (_TOO_LARGE, RecordsTooLargeError, "raise the topic's max.message.bytes"),
    (_UNKNOWN, TopicUnknownError, "check the name, or create the topic"),
    (frozenset({AUTHENTICATION}), NotAuthenticatedError, "check the Secret; it is read again before the next try"),
    (frozenset({NOT_ALLOWED}), InvalidSettingsError, "add the address to the chart value kafka.allowedBrokers"),
    (frozenset({UNUSABLE}), InvalidSettingsError, "check certificates and keys in the Secret"),
    (
        _UNREACHABLE,
        BrokerUnreachableError,
        "check the brokers, security.protocol, certificates and network policies",
    ),
)


def failure(told: Failure, topic: str) -> KafkaAccessError:
    """Build the error for records that were not written."""
    what = f"topic {topic}: write"
    if told.code in _DENIED:
        return not_authorised(what, f"WRITE and DESCRIBE on topic {topic}")
    for codes, kind, next_step in _KINDS:
        if told.code in codes:
            return kind(what, told.why, next_step)
    return TemporarilyUnavailableError(what, f"{told.why} ({told.code})", "wait, or see the brokers' logs")
