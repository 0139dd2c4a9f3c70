"""What a reader of committed records sees of a partition, asked of the broker by another client than the product's."""

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # their stub forgets it

DEADLINE_SECONDS = 20


def last_stable(admin: AdminClient, topic: str, partition: int) -> int:
    """Give the offset where the first open transaction begins, or the end where none is open."""
    wanted = TopicPartition(topic, partition)
    asked = admin.list_offsets(
        {wanted: OffsetSpec.latest()},  # type: ignore[no-untyped-call]
        isolation_level=IsolationLevel.READ_COMMITTED,
        request_timeout=DEADLINE_SECONDS,
    )
    return int(asked[wanted].result(DEADLINE_SECONDS).offset)
