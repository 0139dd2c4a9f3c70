"""Whether state that lay unused can still be brought up to date: `state.maxIdleTime` against the changelogs.

A copy goes on from where it stopped. From a compacted changelog deletions vanish after `delete.retention.ms`: a copy
that comes back later never hears of them, and serves the deleted keys. From one that deletes by age everything vanishes
after `retention.ms`: such a copy is behind the start of the log, and Kafka Streams throws it away while it starts.

Called by `conditions` and `decide`. A warning and never a gate: a scale-down serves no old state, and growing must
not wait for a setting of a topic.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from streamapp.core.actions.decision import Event
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.topic_configs import ConfigUnread, TopicConfig
from streamapp.core.reasons import Reason

_UNIT = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """What a topic keeps for the shortest time."""

    topic: str
    setting: str
    lasts: timedelta


def warning(snapshot: Snapshot) -> Event | None:
    """Name the changelog that keeps things for no longer than state may lie unused; None where none is known to."""
    max_idle_time = snapshot.app.max_idle_time
    if max_idle_time is None:
        return None
    short = sorted(
        (kept for kept in _kept(snapshot.topic_configs) if kept.lasts <= max_idle_time),
        key=lambda kept: (kept.lasts, kept.topic, kept.setting),
    )
    if not short:
        return None
    worst, topics = short[0], {kept.topic for kept in short}
    others = len(topics) - 1
    more = f", and {others} more topic{'s' * (others > 1)}" if others else ""
    return Event(
        Reason.MaxIdleTimeTooLong,
        f"topic {worst.topic}: {worst.setting} is {worst.lasts // _UNIT} ({worst.lasts}), "
        f"`state.maxIdleTime` is {max_idle_time}{more}",
    )


def unchecked(snapshot: Snapshot) -> str:
    """Say why it is not known of some changelog; empty where it is known of all that were asked for."""
    if snapshot.app.max_idle_time is None:
        return ""
    unknown = [config.why for _, config in sorted(snapshot.topic_configs.items()) if isinstance(config, ConfigUnread)]
    return f"whether `state.maxIdleTime` is short enough is not known: {unknown[0]}" if unknown else ""


def _kept(configs: Mapping[str, TopicConfig | ConfigUnread]) -> Iterator[_Kept]:
    for topic, config in configs.items():
        if isinstance(config, ConfigUnread):
            continue
        if "compact" in config.cleanup_policies:
            yield _Kept(topic=topic, setting="delete.retention.ms", lasts=config.delete_retention)
        if "delete" in config.cleanup_policies and config.retention is not None:
            yield _Kept(topic=topic, setting="retention.ms", lasts=config.retention)
