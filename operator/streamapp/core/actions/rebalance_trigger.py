"""When a probe member joins and leaves, so that a classic group rebalances now and not in ten minutes.

A rebalance promotes caught-up copies and renews the positions that the group shows; nothing else does, from outside. It
costs a moment, so it is asked for only when it can help: at most one in ten seconds, or in three where agents show
that tasks will move by it, then ever more rarely. Where no scale-down, rollout or step waits, it ends after a few. One
that fails is tried again ever more rarely, too: a right can be missing for long.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from streamapp.core.actions.decision import TriggerRebalance
from streamapp.core.evidence.eta import NOT_KNOWN, Estimate, EtaAt
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.membership import is_probe
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.group import GroupDescription, GroupReading, GroupState, fingerprint
from streamapp.core.facts.policy import Timing
from streamapp.core.facts.snapshot import RebalanceHistory, RefusedTriggers, Snapshot
from streamapp.core.reasons import Reason

REMEMBERED_FOR = timedelta(minutes=30)

_MOST_FOR_THE_TOPOLOGY = 3
"""What nobody shows after so many joins is not there to be shown, and an application may be like that for ever."""

_MOST_FOR_POSITIONS = 3
"""The third join that a new coordinator shows is the first that counts."""

_FOR_ANOTHER_READING = frozenset({Reason.ReadingsPending, Reason.GroupChanged})

MOST_AT_REST = 6
"""The sixth comes five minutes after the first: a start or a backlog shows progress by then. What does not may last for
ever, for example more records a second than `acceptableRecoveryLag` allows."""


FIRST_RETRY = timedelta(seconds=2)
"""After a trigger that failed for the first time: the group may only have been busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What is waited for, and since when."""

    refusal: Refusal
    since: datetime | None
    """Rebalances triggered before were for something else; None: only a new layout begins a new waiting."""
    estimate: Estimate = NOT_KNOWN
    """When the copies will be caught up, where that is what is waited for."""
    is_at_rest: bool = False
    """Neither a hold nor a rollout nor a step waits: triggers end after a few in vain, until something changes."""
    progress_at: datetime | None = None
    """When the lag last showed progress: triggers before were not in vain."""


def rebalance_for(waiting: Waiting, evidence: Evidence) -> TriggerRebalance | None:
    """The triggered rebalance that helps now, if one does."""
    member = _member_to_copy(evidence) if waiting.refusal.needs_rebalance else None
    due = due_at(waiting, evidence.snapshot, evidence.policy.timing)
    if member is None or due is None or due > evidence.snapshot.now:
        return None
    return TriggerRebalance(like_member=member, reason=waiting.refusal.reason)


def sent(rebalances: RebalanceHistory, now: datetime) -> RebalanceHistory:
    """The memory after one more triggered rebalance."""
    recent = tuple(at for at in rebalances.sent if now - at <= REMEMBERED_FOR)
    return RebalanceHistory(sent=(*recent, now), layout_since=rebalances.layout_since)


def seen(rebalances: RebalanceHistory, history: Sequence[GroupReading], after: GroupReading) -> RebalanceHistory:
    """The memory after one more reading: a new layout means that nudging was not in vain.

    Args:
        rebalances: The memory before.
        history: Readings before it, newest first. In a rebalance no layout is seen; the last one before it counts.
        after: The reading.
    """
    before = next((one for one in history if _is_layout(one)), None)
    if before is None or not _is_layout(after) or _layout(before) == _layout(after):
        return rebalances
    is_probe_alone = _layout(before, with_probes=False) == _layout(after, with_probes=False)
    refused = rebalances.refused if is_probe_alone else None
    return RebalanceHistory(sent=rebalances.sent, layout_since=after.ended_at, refused=refused)


def failed(rebalances: RebalanceHistory, now: datetime, why: str) -> RebalanceHistory:
    """The memory after a trigger that failed."""
    times = 1 if rebalances.refused is None else rebalances.refused.times + 1
    return replace(rebalances, refused=RefusedTriggers(times=times, at=now, why=why))


def with_refused(refusal: Refusal, snapshot: Snapshot, timing: Timing) -> Refusal:
    """The refusal; where a rebalance would help whose triggers fail, its detail says so, and when the next follows."""
    refused = snapshot.rebalances.refused
    if refused is None or not refusal.needs_rebalance or not _is_helped(refusal.reason):
        return refusal
    times = "once" if refused.times == 1 else f"{refused.times} times"
    again = f"The next one follows at {_retry_at(refused, timing):%H:%M:%S} UTC."
    told = f"A rebalance trigger failed {times}: {refused.why.removesuffix('.')}. {again}"
    return replace(refusal, detail=f"{refusal.detail.removesuffix('.')}. {told}".removeprefix(". "))


def _is_helped(reason: Reason) -> bool:
    """Whether a rebalance can bring what is missing, or another reading of the group."""
    return reason.row.is_helped_by_rebalance or reason in _FOR_ANOTHER_READING


def _retry_at(refused: RefusedTriggers, timing: Timing) -> datetime:
    return refused.at + min(FIRST_RETRY * (1 << min(refused.times - 1, 32)), timing.rebalance_gap_longest)


def _is_layout(reading: GroupReading) -> bool:
    return isinstance(reading.group, GroupDescription) and reading.group.is_decoded


def _layout(reading: GroupReading, *, with_probes: bool = True) -> object:
    group = reading.group
    if not isinstance(group, GroupDescription):
        return None
    members = (one for one in group.members if with_probes or not is_probe(one))
    return fingerprint(replace(group, members=tuple(members)))


def due_at(waiting: Waiting, snapshot: Snapshot, timing: Timing) -> datetime | None:
    """When it is time for a rebalance if nothing changes until then; None if none helps."""
    reason, all_sent, refused = waiting.refusal.reason, snapshot.rebalances.sent, snapshot.rebalances.refused
    if not _is_helped(reason):
        return None
    gap = timing.move_gap if reason.row.moves_tasks else timing.rebalance_gap
    earliest = all_sent[-1] + gap if all_sent else snapshot.now
    if refused is not None and (waiting.since is None or waiting.since <= refused.at):
        earliest = max(earliest, _retry_at(refused, timing))
    if reason in _FOR_ANOTHER_READING:
        rebalance = None if snapshot.latest is None else snapshot.latest.rebalance
        return earliest if rebalance is None else max(earliest, rebalance.settled_at + timing.reading_gap)
    if reason is Reason.PositionsUnknown and _are_positions_just_lost(snapshot):
        return earliest
    starts = [start for start in (waiting.since, snapshot.rebalances.layout_since) if start is not None]
    in_vain = [at for at in all_sent if not starts or at >= max(starts)]
    if _is_given_up(waiting, in_vain):
        return None
    return max(earliest, _next(in_vain, waiting, timing)) if in_vain else earliest


def _are_positions_just_lost(snapshot: Snapshot) -> bool:
    """Whether few triggers have followed the last join that was watched: those before it showed where copies are.

    They came ever more rarely because copies stood still. At that pace a hold would not see for a quarter of an hour
    that its copies are caught up, and its deadline could come before.
    """
    joins = (one.rebalance for one in snapshot.readings)
    watched = next((one.settled_at for one in joins if one is not None), None)
    since = [at for at in snapshot.rebalances.sent if watched is not None and at > watched]
    return watched is not None and len(since) < _MOST_FOR_POSITIONS


def _is_given_up(waiting: Waiting, in_vain: Sequence[datetime]) -> bool:
    """Tell whether so many were in vain that only a new layout, or progress of the lag, is a reason for another."""
    if waiting.refusal.reason is Reason.TopologyUnknown and len(in_vain) >= _MOST_FOR_THE_TOPOLOGY:
        return True
    progress_at = waiting.progress_at
    without_progress = [at for at in in_vain if progress_at is None or at >= progress_at]
    return waiting.is_at_rest and len(without_progress) >= MOST_AT_REST


def _next(in_vain: Sequence[datetime], waiting: Waiting, timing: Timing) -> datetime:
    """When the next one may help: when the copies will be there, or ever more rarely, whichever is sooner."""
    rarer = in_vain[-1] + _pause(len(in_vain), timing)
    # An estimate only ever brings it forward: a copy that has just begun has hardly a speed, and a backlog ends.
    return min(waiting.estimate.time, rarer) if isinstance(waiting.estimate, EtaAt) else rarer


def _pause(in_vain: int, timing: Timing) -> timedelta:
    """Double from the shortest to the longest."""
    doublings = min(in_vain - 1, 32)  # beyond this any gap is longer than the longest
    return min(timing.rebalance_gap * (1 << doublings), timing.rebalance_gap_longest)


def _member_to_copy(evidence: Evidence) -> str | None:
    """A member of the lowest ordinal, if the group is fit for a triggered rebalance at all."""
    snapshot, policy = evidence.snapshot, evidence.policy
    latest, newest = snapshot.latest, evidence.latest
    if not policy.trigger_rebalance or latest is None or newest is None:
        return None
    group = newest.group
    is_settled = group.state is GroupState.STABLE and group.is_decoded
    if not is_settled or not group.can_be_rebalanced or snapshot.now - latest.ended_at > policy.timing.fact_age:
        return None
    placement = newest.placement
    if placement.probe_members or not placement.by_ordinal:
        return None
    return placement.members(min(placement.by_ordinal))[0].id
