"""Error codes in a broker's answer, in our words.

Used by every module that reads answers. `right` is what the request needs, as `kafka-acls.sh` would grant it.
"""

from kio.schema.errors import ErrorCode

from streamapp.kafka.connection.errors import (
    KafkaAccessError,
    RecordsTooLargeError,
    TemporarilyUnavailableError,
    TopicUnknownError,
    not_authorised,
    unexpected,
)

_DENIED = {
    ErrorCode.cluster_authorization_failed,
    ErrorCode.group_authorization_failed,
    ErrorCode.topic_authorization_failed,
}
_TOO_LARGE = {ErrorCode.message_too_large, ErrorCode.record_list_too_large}


def failure(code: ErrorCode, what: str, right: str) -> KafkaAccessError:
    """Build the error for a code that is not `none`."""
    if code in _DENIED:
        return not_authorised(what, right)
    if code is ErrorCode.unknown_topic_or_partition:
        return TopicUnknownError(what, "it is not on the cluster", "check the name, or wait until it is created")
    if code in _TOO_LARGE:
        return RecordsTooLargeError(what, f"the broker answers {code.name}", "raise the topic's max.message.bytes")
    if code.retriable:
        return TemporarilyUnavailableError(what, f"the broker answers {code.name}", "wait, or see the brokers' logs")
    return unexpected(what, f"the broker answers {code.name} ({code.value})")
