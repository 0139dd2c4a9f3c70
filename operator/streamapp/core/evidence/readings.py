"""Readings of the group: how many there must be, how far apart, and what is kept of older ones.

One reading may lie: a member about to be thrown out is still listed, a layout lasts for one generation. So whatever is
removed was seen to be dispensable twice in a row. The gatherer keeps the history with `remember`.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from streamapp.core.facts.group import GroupDescription, GroupReading, GroupUnreadable, fingerprint
from streamapp.core.facts.policy import Timing
from streamapp.core.reasons import Reason

KEPT_FOR = timedelta(minutes=1)


def remember(history: Sequence[GroupReading], reading: GroupReading) -> tuple[GroupReading, ...]:
    """The history with one more reading, newest first, without what nobody will ask for.

    Kept: every poll of the last minute, and the newest poll of each of the last two joins, however old.
    """
    others = (one for one in history if one.ended_at != reading.ended_at)
    newest_first = sorted([*others, reading], key=lambda one: one.ended_at, reverse=True)
    joins: list[datetime] = []
    kept = []
    for one in newest_first:
        is_of_new_join = one.rebalance is not None and one.rebalance.settled_at not in joins
        if one.rebalance is not None and is_of_new_join:
            joins.append(one.rebalance.settled_at)
        if reading.ended_at - one.ended_at <= KEPT_FOR or (is_of_new_join and len(joins) <= 2):
            kept.append(one)
    return tuple(kept)


def earlier_reading(
    readings: Sequence[GroupReading], timing: Timing, *, of_another_join: bool, apart: timedelta | None = None
) -> GroupReading | Reason:
    """The reading that must agree with the newest one, `readings[0]`.

    Args:
        readings: Newest first.
        timing: How far apart they must be.
        apart: At least so far, where it is not `Timing.reading_gap`.
        of_another_join: Positions count, so each reading needs a join of its own; otherwise two polls will do.

    Returns:
        The newest one that is old enough, if every poll since then was readable and showed the same members with the
        same tasks; `ReadingsPending` if there is none, `GroupChanged` if something changed since.
    """
    latest = readings[0]
    if not isinstance(latest.group, GroupDescription):
        return latest.group.reason
    same, gap = fingerprint(latest.group), timing.reading_gap if apart is None else apart
    for reading in readings[1:]:
        if isinstance(reading.group, GroupUnreadable) or latest.ended_at - reading.ended_at > timing.reading_window:
            break
        if not reading.group.is_decoded:
            continue
        if fingerprint(reading.group) != same:
            return Reason.GroupChanged
        between = _apart(latest, reading, of_another_join=of_another_join)
        if between is not None and gap <= between <= timing.reading_window:
            return reading
    return Reason.ReadingsPending


def _apart(latest: GroupReading, earlier: GroupReading, *, of_another_join: bool) -> timedelta | None:
    if not of_another_join:
        return latest.ended_at - earlier.ended_at
    if latest.rebalance is None or earlier.rebalance is None:
        return None
    return latest.rebalance.settled_at - earlier.rebalance.settled_at
