"""Readings of the group: how many there must be, how far apart, and what is kept of older ones.

One reading may lie: a member about to be thrown out is still listed, a layout lasts for one generation. So whatever is
removed was seen to be dispensable twice in a row. The gatherer keeps the history with `remember`.

Two readings may lie in the same way. A coordinator answers as of the high watermark of `__consumer_offsets`
(`CoordinatorRuntime.scheduleReadOperation` in Kafka). A new coordinator knows the high watermark that it was told as a
follower, until a replica in sync fetches from it: so it can show an older state of the group for long. `step_back`
recognizes such a state by what never falls.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from types import MappingProxyType

from streamapp.core.facts.agent_reports import AgentReport, LocalTask
from streamapp.core.facts.group import (
    GroupDescription,
    GroupReading,
    GroupState,
    GroupUnreadable,
    Member,
    OffsetSum,
    fingerprint,
)
from streamapp.core.facts.ids import TaskId
from streamapp.core.facts.lag import EndOffsets, EndsUnreadable
from streamapp.core.facts.policy import Timing
from streamapp.core.facts.tasks import TaskFacts, TaskSet
from streamapp.core.reasons import Reason

KEPT_FOR = timedelta(minutes=1)
"""Every poll of so long is kept."""
MOST_ENTRIES = 600_000
"""Tasks, positions and ends in all readings that are kept, equal ones counted once: some 80 MB. Two joins of a group
that is as large as any that is read have 400,000. Any broker can show such a group anew at each look."""
RESTLESS_FOR, STILL_FOR = timedelta(seconds=45), timedelta(seconds=5)
"""A group that stands still nowhere within so long for so long does not come to rest."""
RESTLESS_REBALANCES = 3
"""It was seen to leave the state Stable, or to have another layout, so often at least."""
_MEMBER = 8
"""A member takes as much memory as so many of them."""


def remember(history: Sequence[GroupReading], reading: GroupReading) -> tuple[GroupReading, ...]:
    """The history with one more reading, newest first, without what nobody will ask for.

    Kept: every poll of the last minute, and the newest poll of each of the last two joins, however old. Older ones of
    very large groups that differ from look to look are not: a judgement that needs them waits.
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
    return tuple(_bounded(kept))


def _bounded(newest_first: Sequence[GroupReading]) -> Iterator[GroupReading]:
    seen, size = set[int](), 0
    for number, one in enumerate(newest_first):
        ends = None if one.rebalance is None else one.rebalance.ends
        for part in (one.group, ends):
            if part is not None and id(part) not in seen:
                seen.add(id(part))
                size += _entries(part)
        if size > MOST_ENTRIES and number > 0:
            return
        yield one


def _entries(part: GroupDescription | GroupUnreadable | EndOffsets | EndsUnreadable) -> int:
    if isinstance(part, EndOffsets):
        return len(part.partitions)
    return sum(map(_entries_of_member, part.members)) if isinstance(part, GroupDescription) else 0


def _entries_of_member(member: Member) -> int:
    said = 0 if member.subscription is None else len(member.subscription.offsets)
    given = 0 if member.assignment is None else len(member.assignment.active) + len(member.assignment.standby)
    return _MEMBER + said + given


def step_back(before: GroupDescription, group: GroupDescription) -> str:
    """Why a description is of an older state than one that was seen before; empty if nothing says so.

    A member of a classic group never joins from an older generation than at its join before, and a broker gives the ID
    of a member once. The epoch of a streams group never falls.
    """
    if before.streams is not None and group.streams is not None:
        is_older = group.streams.epoch < before.streams.epoch
        return f"it shows epoch {group.streams.epoch} after {before.streams.epoch}" if is_older else ""
    known = _generations(before)
    for member, generation in _generations(group).items():
        if generation < known.get(member, generation):
            return f"member {member} came from generation {generation}, and from {known[member]} before"
    return ""


def _generations(group: GroupDescription) -> dict[str, int]:
    """The generations that the members came from, as far as they say so."""
    told = {one.id: one.subscription.generation for one in group.members if one.subscription is not None}
    return {member: generation for member, generation in told.items() if generation is not None}


def changed_since(judged: GroupReading | None, readings: Sequence[GroupReading]) -> str:
    """What the newest reading shows otherwise than the one that a judgement rests on; empty if nothing.

    Between a judgement and its write answers of the API server are awaited, and the group is read on. Offsets alone are
    no change: members of the streams protocol report them now and then. Nothing rests on a group that was not Stable.
    """
    if judged is None or not readings or readings[0].ended_at <= judged.ended_at:
        return ""
    newest = readings[0]
    before, now = judged.group, newest.group
    if now is before and newest.rebalance == judged.rebalance:
        return ""
    if not isinstance(before, GroupDescription) or before.state is not GroupState.STABLE:
        return ""
    if isinstance(now, GroupUnreadable):
        return f"the group is unknown since: {now.detail}"
    if now.state is not before.state:
        return f"the group is {now.state.value} since"
    is_same = fingerprint(now) == fingerprint(before) and newest.rebalance == judged.rebalance
    return "" if is_same else "the group has rebalanced since"


def with_earlier_offsets(group: GroupDescription, readings: Sequence[GroupReading]) -> GroupDescription:
    """The group, with offsets that its members reported to the brokers before (Kafka 4.4).

    They are in the memory of the coordinator alone. A new one does not know them, and members report again within a
    minute: it can know them by the time that a pod leaves.
    """
    known: dict[str, dict[TaskId, OffsetSum]] = {}
    for reading in reversed(readings):
        members = reading.group.members if isinstance(reading.group, GroupDescription) else ()
        for member in members:
            if member.subscription is not None and member.subscription.offsets:
                known.setdefault(member.id, {}).update(member.subscription.offsets)
    return replace(group, members=tuple(_with_offsets(member, known.get(member.id, {})) for member in group.members))


def _with_offsets(member: Member, earlier: dict[TaskId, OffsetSum]) -> Member:
    if member.subscription is None or not earlier:
        return member
    offsets = MappingProxyType({**earlier, **member.subscription.offsets})
    return replace(member, subscription=replace(member.subscription, offsets=offsets))


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
        return latest.as_of - earlier.ended_at
    if latest.rebalance is None or earlier.rebalance is None:
        return None
    return latest.rebalance.settled_at - earlier.rebalance.settled_at


def of_the_last_minute(readings: Sequence[GroupReading]) -> tuple[GroupReading, ...]:
    """The readings, newest first, without those that are kept for longer than every poll is."""
    return tuple(one for one in readings if readings[0].ended_at - one.ended_at <= KEPT_FOR)


def comes_to_rest(readings: Sequence[GroupReading]) -> bool:
    """Whether the group may come to rest by itself, as far as it was watched within the last minute.

    Members of two versions can rebalance without end: a leader of the newer one gives an older member partitions that
    it does not subscribe to, so that it joins again at once. Only who saw several rebalances, and no rest between them,
    says so: an unread group, one without members, or a single long rebalance shows nothing of the kind.
    """
    young = of_the_last_minute(readings)
    if not young or young[0].ended_at - young[-1].ended_at < RESTLESS_FOR or not all(map(_has_members, young)):
        return True
    pairs = tuple(pairwise(young))
    if sum(_is_stable(older) and not _is_as_it_was(newer, older) for newer, older in pairs) < RESTLESS_REBALANCES:
        return True
    still_until: datetime | None = None
    for newer, one in ((None, young[0]), *pairs):
        if not _is_stable(one):
            still_until = None
            continue
        if newer is None or still_until is None or not _is_as_it_was(newer, one):
            still_until = one.ended_at if newer is None or newer.rebalance is None else newer.rebalance.began_at
        still_since = one.ended_at if one.rebalance is None else one.rebalance.settled_at
        if still_until - still_since >= STILL_FOR:
            return True
    return False


def _has_members(reading: GroupReading) -> bool:
    return isinstance(reading.group, GroupDescription) and bool(reading.group.members)


def _is_stable(reading: GroupReading) -> bool:
    return isinstance(reading.group, GroupDescription) and reading.group.state is GroupState.STABLE


def _is_as_it_was(newer: GroupReading, older: GroupReading) -> bool:
    """Whether no join and no change of the layout lies between two readings, of which the older one was Stable."""
    now, before = newer.group, older.group
    if not isinstance(now, GroupDescription) or not isinstance(before, GroupDescription):
        return False
    return newer.rebalance == older.rebalance and fingerprint(now) == fingerprint(before)


def state_beyond(known: TaskSet, members: Iterable[Member], reports: Iterable[AgentReport]) -> str:
    """Say of which task there is more state than the known tasks have; empty if of none.

    Only a task with a changelog has a standby, or a position. Where a source topic serves as changelog and is narrower
    than its sub-topology, the tasks beyond it have none, and still get standbys.

    Args:
        known: What the topology and the topics gave.
        members: Of the group, at any time since.
        reports: Of agents.
    """
    narrow = {task.id.subtopology for task in known.tasks if task.source_changelogs}
    facts = {task.id: task for task in known.tasks if task.stateful or task.id.subtopology not in narrow}
    what = _state_of_members(facts, members) or _state_by_agents(facts, reports)
    return f"{what}, and no changelog of it is seen; see that the operator may describe every topic" if what else ""


def changelogs_gone(before: TaskSet, now: TaskSet) -> str:
    """Say of which task a changelog is not seen any more; empty if of none."""
    seen = now.changelogs
    for task in before.tasks:
        if task.id in now.ids and (gone := [one for one in task.changelogs if one not in seen]):
            return (
                f"{gone[0].topic} of task {task.id} is not seen any more; see that the operator may describe every "
                f"topic. If it was deleted, restart the application"
            )
    return ""


def _state_of_members(facts: Mapping[TaskId, TaskFacts], members: Iterable[Member]) -> str:
    for member in members:
        standby = frozenset[TaskId]() if member.assignment is None else member.assignment.standby
        told = frozenset[TaskId]() if member.subscription is None else member.subscription.offsets.keys()
        if wrong := sorted(one for one in standby | told if one in facts and not facts[one].stateful):
            return f"task {wrong[0]} has state by the word of {member.client_id}"
    return ""


def _state_by_agents(facts: Mapping[TaskId, TaskFacts], reports: Iterable[AgentReport]) -> str:
    for report in reports:
        for local in report.tasks or ():
            if local.id in facts and (unseen := sorted(local.positions.keys() - _stores(facts[local.id], local))):
                return f"task {local.id} has store {unseen[0]} on ordinal {report.ordinal}"
    return ""


def _stores(task: TaskFacts, local: LocalTask) -> Iterable[str]:
    """The stores that a task can have: any, where only changelogs are known, or a source topic is one of them."""
    is_named = bool(task.stores) and not task.source_changelogs
    return task.stores.keys() if is_named or not task.stateful else local.positions.keys()
