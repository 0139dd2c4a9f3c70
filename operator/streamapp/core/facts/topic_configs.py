"""The settings of a topic that decide how long it keeps what a copy of a task has missed.

Read by `streamapp.kafka.topics.topics`, judged by `state_age`.
"""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """How long records and tombstones are kept."""

    cleanup_policies: frozenset[str]
    """`compact`, `delete`, or both."""
    retention: timedelta | None
    """`retention.ms`; None for unlimited. Without meaning where nothing is deleted by age."""
    delete_retention: timedelta
    """`delete.retention.ms`: how long a tombstone stays readable after compaction."""


@dataclass(frozen=True, slots=True)
class ConfigUnread:
    """The settings of a topic could not be read."""

    why: str
    """The request, the cause and what would settle it."""
