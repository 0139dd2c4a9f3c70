"""Learners on demand in a group of the streams protocol: the group's standbys, raised for a hold or a rollout.

Brokers place standbys within seconds after `streams.num.standby.replicas` of the group is raised, without a restart.
The hold record has the old value before the first write, so that whoever decides next puts it back: when nothing needs
the standbys any more, or when they are called off. A value that another hand set meanwhile stays. Called by `plan`.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from streamapp.core.actions.decision import BranchResult, Event, SetStandbys
from streamapp.core.actions.rollout import Restart
from streamapp.core.evidence.capacity.disk_space import Room, RoomUnknown, room_for_standbys
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.learner_source import streams_group
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.group import StandbySetting
from streamapp.core.facts.hold_record import HoldRecord, RaisedStandbys, RaiseState
from streamapp.core.facts.policy import DisruptionPolicy, LearnerSource, RolloutPolicy
from streamapp.core.facts.workload import Pod
from streamapp.core.gates.drain_gates import budget_used
from streamapp.core.reasons import Reason

MOST = 2
"""What brokers allow by default (`group.streams.max.standby.replicas`)."""
LATE = timedelta(seconds=30)
"""A write that was sent can reach the brokers as late: until then it is not known that there is nothing to put back."""

_HELPED = {Reason.NoLearners, Reason.WouldMoveCold}
"""What another standby can bring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What could need more standbys."""

    for_hold: BranchResult | None
    """The branch, while a hold goes on."""
    for_rollout: Restart | Refusal | Pod | None
    """The next restart, the pod that may be evicted from its node, or what one of them waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandbysNow:
    """What becomes of the group's standbys with this decision."""

    record: RaisedStandbys | None
    """What must stand in the hold record."""
    steps: tuple[SetStandbys, ...] = ()
    """What is written to the brokers now: only what the record has had since an earlier pass."""
    events: tuple[Event, ...] = ()


def or_waits_for_place(evidence: Evidence, refusal: Refusal) -> Refusal:
    """The refusal; or what keeps another standby of each task, if one would be asked for now: no disk, or no place."""
    setting, place = _setting(evidence), evidence.snapshot.place
    is_first = refusal.reason in _HELPED and _on_record(evidence) is None
    if not is_first or setting is None or evidence.policy.source is not LearnerSource.ON_DEMAND:
        return refusal
    room = _room(evidence, setting) if _is_allowed(evidence, setting) else None
    if isinstance(room, Room) and not room.is_enough:
        return Refusal(Reason.NoRoomForLearners, str(room), refusal.waits, needs_rebalance=False)
    return budget_used(evidence) if not place.is_free and _can_rise(evidence, setting) else refusal


def unchanged(evidence: Evidence) -> StandbysNow:
    """Leave everything as it is."""
    return StandbysNow(record=_on_record(evidence))


def standbys_now(evidence: Evidence, wanted: Wanted) -> StandbysNow:
    """Raise, keep or put back."""
    raised, setting = _on_record(evidence), _setting(evidence)
    if setting is None:
        return unchanged(evidence)
    missing = _missing(evidence, wanted)
    if raised is None:
        return StandbysNow(record=None) if missing is None else _first_raise(evidence, setting, missing)
    raised = _as_seen(raised, setting)
    if _is_needed(evidence, wanted):
        return _kept(evidence, raised, setting, missing)
    if is_ours(raised, setting) and _are_tasks_on_their_way(evidence):
        return StandbysNow(record=raised)
    return _put_back(evidence, raised, setting)


def is_ours(raised: RaisedStandbys, setting: StandbySetting) -> bool:
    """Tell whether the brokers show a value that the operator wrote, so that the old one must be put back."""
    written = {raised.to, raised.instead_of} if raised.is_second else {raised.to}
    return raised.state is not RaiseState.FOREIGN and setting.is_set and setting.replicas in written


def _first_raise(evidence: Evidence, setting: StandbySetting, missing: Refusal) -> StandbysNow:
    if not _can_rise(evidence, setting):
        return StandbysNow(record=None)
    raised = RaisedStandbys(
        before=setting.replicas if setting.is_set else None,
        instead_of=setting.replicas,
        to=setting.replicas + 1,
        at=evidence.snapshot.now,
    )
    why = f"{setting.replicas} to {raised.to}: {missing.reason.name}"
    return StandbysNow(record=raised, events=(Event(Reason.StandbysRaised, why),))


def _kept(evidence: Evidence, raised: RaisedStandbys, setting: StandbySetting, missing: Refusal | None) -> StandbysNow:
    if raised.state is RaiseState.WANTED:
        is_on_record = _on_record(evidence) == raised
        step = SetStandbys(replicas=raised.to, reason=Reason.StandbysRaised)
        return StandbysNow(record=raised, steps=(step,) if is_on_record else ())
    is_more_wanted = missing is not None and missing.reason is Reason.WouldMoveCold
    if raised.state is RaiseState.SEEN and is_more_wanted and _can_rise(evidence, setting):
        to, now = raised.to + 1, evidence.snapshot.now
        more = replace(raised, instead_of=raised.to, is_second=True, to=to, at=now, state=RaiseState.WANTED)
        return StandbysNow(record=more, events=(Event(Reason.StandbysRaised, f"{raised.to} to {to}"),))
    return StandbysNow(record=raised)


def _put_back(evidence: Evidence, raised: RaisedStandbys, setting: StandbySetting) -> StandbysNow:
    """Write the old value until the brokers show it, or another hand's; a raise that is on its way is waited for."""
    if is_ours(raised, setting):
        return StandbysNow(record=raised, steps=(SetStandbys(replicas=raised.before, reason=Reason.StandbysRestored),))
    if raised.state is RaiseState.WANTED and evidence.snapshot.now - raised.at < LATE:
        return StandbysNow(record=raised)
    is_as_before = (setting.replicas if setting.is_set else None) == raised.before
    left = "" if is_as_before else ", which another hand has set"
    return StandbysNow(record=None, events=(Event(Reason.StandbysRestored, f"{setting.replicas}{left}"),))


def _as_seen(raised: RaisedStandbys, setting: StandbySetting) -> RaisedStandbys:
    """The record, brought up to what the brokers show."""
    if raised.state is RaiseState.FOREIGN:
        return raised
    if setting == StandbySetting(raised.to, is_set=True):
        return replace(raised, state=RaiseState.SEEN)
    # A value that another hand sets explicitly is its own, also if it equals the default that applied before.
    was_set = raised.is_second or raised.before is not None
    is_unwritten = raised.state is RaiseState.WANTED and setting == StandbySetting(raised.instead_of, is_set=was_set)
    return raised if is_unwritten else replace(raised, state=RaiseState.FOREIGN)


def _is_needed(evidence: Evidence, wanted: Wanted) -> bool:
    policy = evidence.policy
    is_awaited = policy.rollout is RolloutPolicy.WHEN_CAUGHT_UP or policy.disruption is DisruptionPolicy.WHEN_CAUGHT_UP
    is_rolling = wanted.for_rollout is not None and is_awaited
    return policy.source is LearnerSource.ON_DEMAND and (wanted.for_hold is not None or is_rolling)


def _are_tasks_on_their_way(evidence: Evidence) -> bool:
    """Whether a pod that was let go, restarted or evicted is still there, or members of it are.

    Without their standbys, brokers would move its tasks to pods without state. A StreamApp that is being deleted waits
    for no pod.
    """
    return not evidence.snapshot.app.deleting and (_has_open_step(evidence) or _are_members_leaving(evidence))


def _has_open_step(evidence: Evidence) -> bool:
    record = _record(evidence)
    return record is not None and record.step is not None


def _are_members_leaving(evidence: Evidence) -> bool:
    """Whether the brokers list a member of a pod that does not run, or of a container that has ended."""
    latest, snapshot = evidence.latest, evidence.snapshot
    if latest is None:
        return True
    running = {pod.ordinal: pod.container.id for pod in snapshot.workload.pods if pod.is_running}
    if any(ordinal not in running for ordinal in latest.placement.by_ordinal):
        return True
    listed = latest.group.member_ids
    ended = (seen for seen in snapshot.observed if seen.container_id not in running.values())
    return any(key.id in listed for seen in ended for key in seen.members)


def _missing(evidence: Evidence, wanted: Wanted) -> Refusal | None:
    """What is waited for, if another standby can bring it."""
    if not _is_needed(evidence, wanted):
        return None
    of_hold = None if wanted.for_hold is None else wanted.for_hold.could_be_rebalanced
    of_rollout = wanted.for_rollout if isinstance(wanted.for_rollout, Refusal) else None
    return next((one for one in (of_hold, of_rollout) if one is not None and one.reason in _HELPED), None)


def _can_rise(evidence: Evidence, setting: StandbySetting) -> bool:
    """One more standby of each task is allowed, and every disk has room for its share of all of them."""
    if not _is_allowed(evidence, setting):
        return False
    room = _room(evidence, setting)
    return not isinstance(room, RoomUnknown) and room.is_enough


def _is_allowed(evidence: Evidence, setting: StandbySetting) -> bool:
    statefulset = evidence.snapshot.workload.statefulset
    return setting.replicas < MOST and statefulset is not None and statefulset.replicas > setting.replicas + 1


def _room(evidence: Evidence, setting: StandbySetting) -> Room | RoomUnknown:
    return room_for_standbys(evidence.fresh_reports, evidence.snapshot.task_set, setting.replicas + 1)


def _on_record(evidence: Evidence) -> RaisedStandbys | None:
    record = _record(evidence)
    return None if record is None else record.standbys


def _record(evidence: Evidence) -> HoldRecord | None:
    """The hold record of the StatefulSet; None if there is none, or it cannot be read."""
    statefulset = evidence.snapshot.workload.statefulset
    record = None if statefulset is None else statefulset.record
    return record if isinstance(record, HoldRecord) else None


def _setting(evidence: Evidence) -> StandbySetting | None:
    """What the brokers show now; None where that is not known, or the group is not of the streams protocol."""
    streams, newest = streams_group(evidence), evidence.snapshot.latest
    if streams is None or newest is None or not isinstance(streams.standbys, StandbySetting):
        return None
    is_fresh = evidence.snapshot.now - newest.ended_at <= evidence.policy.timing.fact_age
    return streams.standbys if is_fresh else None
