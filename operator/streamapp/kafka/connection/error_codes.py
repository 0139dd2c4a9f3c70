"""Error codes in a broker's answer, in our words.

Used by every module that reads answers. `right` is what the request needs, as `kafka-acls.sh` would grant it.
"""

from kio.schema.errors import ErrorCode

from streamapp.kafka.connection.errors import (
    KafkaAccessError,
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


def failure(code: ErrorCode, what: str, right: str) -> KafkaAccessError:
    """Build the error for a code that is not `none`."""
    if code in _DENIED:
        return not_authorised(what, right)
    if code is ErrorCode.unknown_topic_or_partition:
        return TopicUnknownError(what, "it is not on the cluster", "check the name, or wait until it is created")
    if code.retriable:
        return TemporarilyUnavailableError(what, f"the broker answers {code.name}", "wait, or see the brokers' logs")
    return unexpected(what, f"the broker answers {code.name} ({code.value})")
