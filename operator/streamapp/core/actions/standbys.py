"""Learners on demand in a group of the streams protocol: the group's standbys, raised for a hold or a rollout.

Brokers place standbys within seconds after `streams.num.standby.replicas` of the group is raised, without a restart.
The hold record has the old value before the first write, so that whoever decides next puts it back: when nothing needs
the standbys any more, when they are called off, or when the group has changed to the classic protocol. A value that
another hand set meanwhile stays. The record stays as long as a raise that was sent before can still arrive, so that it
is put back even then. Called by `plan`.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from streamapp.core.actions.decision import BranchResult, Event, SetStandbys
from streamapp.core.actions.rollout import Restart
from streamapp.core.evidence.capacity.disk_space import Room, RoomUnknown, room_for_standbys
from streamapp.core.evidence.eviction import has_outlived
from streamapp.core.evidence.evidence import Evidence
from streamapp.core.evidence.learner_source import source_in_force, standbys_unread, streams_group
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.group import StandbySetting, StandbySettingUnread
from streamapp.core.facts.hold_record import Hold, RaisedStandbys, RaiseState
from streamapp.core.facts.policy import DisruptionPolicy, LearnerSource, RolloutPolicy
from streamapp.core.facts.workload import Budget, Pod
from streamapp.core.gates.drain_gates import budget_used
from streamapp.core.reasons import Reason

MOST = 2
"""What brokers allow by default (`group.streams.max.standby.replicas`)."""
LATE = timedelta(seconds=30)
"""A write that was sent can reach the brokers as late: until then it is not known that there is nothing to put back.

A write is sent while its date on record is no older than that, so twice as long after the date there is none under way.
"""

BEHIND = timedelta(seconds=10)
"""Any broker tells the setting. One that is further behind is fenced by then (`broker.session.timeout.ms` is 9 s)."""

_HELPED = {Reason.NoLearners, Reason.WouldMoveCold}
"""What another standby can bring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What could need more standbys."""

    for_hold: BranchResult | None
    """The branch, while a hold goes on."""
    for_rollout: Restart | Refusal | Pod | None
    """The next restart, the pod that may be evicted from its node, or what one of them waits for."""
    takes_a_pod: bool = False
    """This decision takes a pod, or lets one be evicted, on the copies as they are: nothing is set in the same pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandbysNow:
    """What becomes of the group's standbys with this decision."""

    record: RaisedStandbys | None
    """What must stand in the hold record."""
    steps: tuple[SetStandbys, ...] = ()
    """What is written to the brokers now: only what the record has had since an earlier pass."""
    events: tuple[Event, ...] = ()


def or_waits_for_place(evidence: Evidence, refusal: Refusal, hold: Hold | None) -> Refusal:
    """The refusal; or what keeps another standby of each task, if one could be asked for now.

    The brokers refuse to tell or to raise them, a disk has no room, or other applications have the restore places. Once
    one is asked for, it is waited for.

    Args:
        evidence: What follows from the facts.
        refusal: What is waited for.
        hold: The hold that goes on; None if there is none.
    """
    streams = streams_group(evidence)
    if streams is None or refusal.reason not in _HELPED or evidence.policy.source is not LearnerSource.ON_DEMAND:
        return refusal
    setting, raised, place = _setting(evidence), _on_record(evidence), evidence.snapshot.place
    if setting is None:
        return standbys_unread(streams) or refusal
    if raised is not None and not _is_over(raised, hold):
        return _or_waits_for_brokers(evidence, refusal, raised, setting)
    tight = _tight_disk(evidence, setting.replicas + 1) if _is_allowed(evidence, setting) else None
    if tight is not None:
        return Refusal(Reason.NoRoomForLearners, str(tight), refusal.waits, needs_rebalance=False)
    return budget_used(evidence) if not place.is_free and _can_rise(evidence, setting) else refusal


def _or_waits_for_brokers(
    evidence: Evidence, refusal: Refusal, raised: RaisedStandbys, setting: StandbySetting
) -> Refusal:
    """The refusal; or what is waited for once standbys were asked for: room for them, then that brokers place them."""
    tight = _tight_disk(evidence, raised.to) if raised.state is RaiseState.WANTED else None
    if tight is not None:
        return Refusal(Reason.NoRoomForLearners, str(tight), refusal.waits, needs_rebalance=False)
    if refusal.reason is not Reason.NoLearners or raised.state not in {RaiseState.WANTED, RaiseState.SEEN}:
        return refusal
    waits = tuple(
        replace(one, reason=Reason.LearnersNotPlaced) if one.reason is Reason.NoLearners else one
        for one in refusal.waits
    )
    is_shown = raised.state is RaiseState.SEEN or _raise_shown(raised, setting) == raised
    how_far = "were raised" if is_shown else "are being raised"  # brokers can refuse what is on record
    detail = f"Standbys {how_far} from {raised.instead_of} to {raised.to}. {refusal.detail}".strip()
    return Refusal(Reason.LearnersNotPlaced, detail, waits, needs_rebalance=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standbys:
    """`streams.num.standby.replicas` of a group, and what the operator would make of it."""

    now: int
    at_rest: int
    """What the operator puts back."""
    most: int
    """What the operator raises it to if it must; `now` where the operator raises nothing."""


def standbys_for_predictions(evidence: Evidence) -> Standbys | None:
    """The setting and its bounds, for predictions alone; None where the brokers do not tell it."""
    streams = streams_group(evidence)
    if streams is None or not isinstance(streams.standbys, StandbySetting):
        return None
    setting, raised, most = streams.standbys, _on_record(evidence), streams.standbys
    at_rest = setting.replicas
    if raised is not None and is_ours(raised, setting):
        at_rest = raised.at_rest
    while source_in_force(evidence).raises_standbys and most.replicas < MOST:
        room = _room(evidence, most.replicas + 1)
        if isinstance(room, RoomUnknown) or not room.is_enough:
            break
        most = replace(most, replicas=most.replicas + 1)
    return Standbys(now=setting.replicas, at_rest=at_rest, most=most.replicas)


def unchanged(evidence: Evidence) -> StandbysNow:
    """Leave everything as it is."""
    return StandbysNow(record=_wherever_raised(evidence))


def standbys_now(evidence: Evidence, wanted: Wanted) -> StandbysNow:
    """Raise, keep or put back."""
    raised, setting = _on_record(evidence), _setting(evidence)
    if setting is None:
        return unchanged(evidence)
    missing = _missing(evidence, wanted)
    if raised is None:
        first = StandbysNow(record=None) if missing is None else _first_raise(evidence, setting, missing)
        return replace(first, events=(*_left_elsewhere(evidence, setting), *first.events))
    seen = _as_seen(evidence, raised, setting)
    if _is_needed(evidence, wanted):
        if _is_over(seen, None if wanted.for_hold is None else wanted.for_hold.hold):
            return _raised_anew(evidence, seen, setting, missing)
        # The old value is on its way already: only when it is back a raise can be told from another hand's.
        if seen.state is not RaiseState.RETURNING or missing is None:
            kept = _kept(evidence, seen, setting, missing)
            return replace(kept, steps=()) if wanted.takes_a_pod else kept
    if is_ours(seen, setting) and (wanted.takes_a_pod or _are_tasks_on_their_way(evidence)):
        return StandbysNow(record=seen)
    return _put_back(evidence, raised, seen, setting)


def waits_for_right(evidence: Evidence) -> bool:
    """Whether the record has nothing but a raise that cannot be put back for want of a right, in a classic group.

    No look at the group changes that soon, and nothing waits for it.
    """
    record, latest = evidence.hold_record, evidence.latest
    if record is None or record.hold is not None or record.step is not None or latest is None:
        return False
    return isinstance(latest.group.unused_standbys, StandbySettingUnread)


def is_ours(raised: RaisedStandbys, setting: StandbySetting) -> bool:
    """Tell whether the brokers show a value that the operator wrote, so that the old one must be put back.

    A second raise can reach just what another hand had set before the first one arrived late.
    """
    is_written = raised.state is not RaiseState.FOREIGN and _raise_shown(raised, setting) is not None
    return is_written and _value(setting) != raised.before


def is_elsewhere(raised: RaisedStandbys, setting: StandbySetting) -> bool:
    """Tell whether the raise was made on another Kafka cluster than that of the brokers that show the setting."""
    return None not in (raised.cluster, setting.cluster) and raised.cluster != setting.cluster


def _left_elsewhere(evidence: Evidence, setting: StandbySetting) -> tuple[Event, ...]:
    """Say what stays on another Kafka cluster, as the record ends: the operator has no access to it any more.

    The old value means nothing to the group of the same ID on the present cluster, so it is not written there.
    """
    left = _wherever_raised(evidence)
    if left is None or left.state in {RaiseState.RETURNED, RaiseState.FOREIGN}:
        return ()
    key = "streams.num.standby.replicas"
    change = f"--delete-config {key}" if left.before is None else f"--add-config {key}={left.before}"
    told = (
        f"{left.to} may stay on Kafka cluster {left.cluster}: `spec.kafka` leads to cluster {setting.cluster} now. "
        f"Put it back there: kafka-configs.sh --alter --entity-type groups --entity-name APPLICATION_ID {change}"
    )
    return (Event(Reason.StandbysRestored, told),)


def _first_raise(evidence: Evidence, setting: StandbySetting, missing: Refusal) -> StandbysNow:
    if not _can_rise(evidence, setting):
        return StandbysNow(record=None)
    raised = RaisedStandbys(
        before=_value(setting),
        instead_of=setting.replicas,
        to=setting.replicas + 1,
        at=evidence.snapshot.now,
        lease=evidence.snapshot.lease,
        cluster=setting.cluster,
    )
    why = f"{setting.replicas} to {raised.to}: {missing.reason.name}"
    return StandbysNow(record=raised, events=(Event(Reason.StandbysRaised, why),))


def _raised_anew(
    evidence: Evidence, seen: RaisedStandbys, setting: StandbySetting, missing: Refusal | None
) -> StandbysNow:
    """Begin a record of its own, once nothing that an operator sent under another Lease can arrive.

    Its late raise would be left behind where the new record ends at once, or is for a lower value. Its late old value
    would look like another hand's.
    """
    if missing is None or _can_arrive(evidence, seen):
        return StandbysNow(record=seen)
    anew = _first_raise(evidence, setting, missing)
    return StandbysNow(record=seen) if anew.record is None else anew


def _kept(evidence: Evidence, raised: RaisedStandbys, setting: StandbySetting, missing: Refusal | None) -> StandbysNow:
    if raised.state is RaiseState.WANTED:
        if _age(evidence, raised) >= LATE:
            # what is sent again can arrive again late, so the record is dated anew before
            return StandbysNow(record=replace(raised, at=evidence.snapshot.now))
        record = evidence.hold_record
        is_on_record = record is not None and record.standbys == raised
        # Fewer replicas can be desired than when this was put on record.
        has_no_room = _tight_disk(evidence, raised.to) is not None
        step = SetStandbys(replicas=raised.to, instead_of=setting, reason=Reason.StandbysRaised)
        return StandbysNow(record=raised, steps=(step,) if is_on_record and not has_no_room else ())
    is_more_wanted = missing is not None and missing.reason is Reason.WouldMoveCold
    if raised.state is RaiseState.SEEN and is_more_wanted and _can_rise(evidence, setting):
        to, at = raised.to + 1, _read_at(evidence)
        more = replace(raised, instead_of=raised.to, is_second=True, to=to, at=at, state=RaiseState.WANTED)
        return StandbysNow(record=more, events=(Event(Reason.StandbysRaised, f"{raised.to} to {to}"),))
    return StandbysNow(record=raised)


def _put_back(evidence: Evidence, raised: RaisedStandbys, seen: RaisedStandbys, setting: StandbySetting) -> StandbysNow:
    """Write the old value until the brokers show it, or another hand's; then a raise can still arrive late."""
    if is_ours(seen, setting):
        step = SetStandbys(replicas=seen.before, instead_of=setting, reason=Reason.StandbysRestored)
        return StandbysNow(record=replace(seen, state=RaiseState.RETURNING), steps=(step,))
    was_shown = raised.state in {RaiseState.SEEN, RaiseState.RETURNING}
    is_returned = was_shown and _value(setting) == raised.before
    is_foreign = seen.state is RaiseState.FOREIGN and not is_returned
    is_unwritten = seen.state is RaiseState.WANTED
    # Another hand's value counts for what needed the standbys; what needs some next may raise anew.
    left = replace(raised if is_returned else seen, state=seen.state if is_unwritten else RaiseState.RETURNED)
    is_past = not _can_arrive(evidence, left)
    by_whom = ", which another hand has set" if is_foreign else ""
    event = Event(Reason.StandbysRestored, f"{setting.replicas}{by_whom}")
    is_told = raised.state is RaiseState.RETURNED or (is_unwritten and not is_past)
    return StandbysNow(record=None if is_past else left, events=() if is_told else (event,))


def _as_seen(evidence: Evidence, raised: RaisedStandbys, setting: StandbySetting) -> RaisedStandbys:
    """The record, brought up to what the brokers show.

    A raise that is shown after another hand's value, or after the old one, was sent by an operator that froze before
    the brokers got it, if that is not too long ago. Later it is another hand's.
    """
    # A value that another hand sets explicitly is its own, also if it equals the default that applied before.
    was_set = raised.is_second or raised.before is not None
    is_unwritten = raised.state is RaiseState.WANTED and setting == StandbySetting(raised.instead_of, is_set=was_set)
    is_left = raised.state in {RaiseState.FOREIGN, RaiseState.RETURNED} and _value(setting) == raised.before
    shown = _raise_shown(raised, setting)
    if is_unwritten or is_left or (shown == raised and raised.state is RaiseState.SEEN):
        return raised
    if raised.state is RaiseState.RETURNING and _value(setting) == raised.before:
        return replace(raised, state=RaiseState.RETURNED)
    if raised.state is RaiseState.RETURNING and shown is not None:
        return raised
    if shown is not None and (raised.state is RaiseState.WANTED or _can_arrive(evidence, raised)):
        return replace(shown, state=RaiseState.SEEN, at=_read_at(evidence))
    return replace(raised, state=RaiseState.FOREIGN, before=_value(setting), at=_read_at(evidence))


def _raise_shown(raised: RaisedStandbys, setting: StandbySetting) -> RaisedStandbys | None:
    """The raise whose value the brokers show: the last one, or the first of two; None for any other value."""
    if setting == StandbySetting(raised.to, is_set=True):
        return raised
    is_first = raised.is_second and setting == StandbySetting(raised.instead_of, is_set=True)
    return replace(raised, to=raised.instead_of, is_second=False) if is_first else None


def _can_arrive(evidence: Evidence, raised: RaisedStandbys) -> bool:
    """Whether a raise that was sent can still reach the brokers.

    Once they have shown it, only another operator can have sent one: an operator that froze before it lost its Lease.
    It knows by the record that another one has decided since.
    """
    record = evidence.hold_record
    terms = {raised.lease, evidence.snapshot.lease if record is None else record.epoch.lease}
    is_of_others = raised.state is RaiseState.WANTED or terms != {evidence.snapshot.lease}
    return is_of_others and _age(evidence, raised) < 2 * LATE


def _age(evidence: Evidence, raised: RaisedStandbys) -> timedelta:
    return evidence.snapshot.now - raised.at


def _value(setting: StandbySetting) -> int | None:
    """What is set for the group; None: nothing, the brokers' default applies."""
    return setting.replicas if setting.is_set else None


def _is_over(raised: RaisedStandbys, hold: Hold | None) -> bool:
    """Whether the raise belongs to a hold that is over, so that the present one may ask for standbys of its own."""
    is_of_an_earlier_one = hold is not None and hold.since > raised.at
    return raised.state is RaiseState.RETURNED or (raised.state is RaiseState.FOREIGN and is_of_an_earlier_one)


def _is_needed(evidence: Evidence, wanted: Wanted) -> bool:
    policy = evidence.policy
    is_awaited = policy.rollout is RolloutPolicy.WHEN_CAUGHT_UP or policy.disruption is DisruptionPolicy.WHEN_CAUGHT_UP
    first = wanted.for_rollout
    is_left_to_users = isinstance(first, Refusal) and first.reason.row.waits_for_user
    is_rolling = first is not None and is_awaited and not is_left_to_users
    can_help = policy.source is LearnerSource.ON_DEMAND and streams_group(evidence) is not None
    return can_help and (wanted.for_hold is not None or is_rolling)


def _are_tasks_on_their_way(evidence: Evidence) -> bool:
    """Whether a pod that was let go, restarted or evicted is still there, or members of it are; or one can be evicted.

    Without their standbys, brokers would move its tasks to pods without state. A StreamApp that is being deleted waits
    for no pod.
    """
    is_leaving = _has_open_step(evidence) or _are_members_leaving(evidence) or _can_be_evicted(evidence)
    return is_leaving and not evidence.snapshot.app.deleting


def _can_be_evicted(evidence: Evidence) -> bool:
    """Whether the budget was open for a pod when it was read: what was evicted since is seen once it is closed."""
    workload = evidence.snapshot.workload
    is_open = workload.budget is Budget.OPEN_FOR_ONE
    return is_open and any(pod.is_running for pod in workload.pods if pod.ordinal == workload.evictable)


def _has_open_step(evidence: Evidence) -> bool:
    record = evidence.hold_record
    return record is not None and record.step is not None


def _are_members_leaving(evidence: Evidence) -> bool:
    """Whether the brokers list a member of a pod that does not run, or of a container that has ended.

    A member that is listed long after that end is of the container that followed.
    """
    latest, snapshot = evidence.latest, evidence.snapshot
    if latest is None or snapshot.latest is None:
        return True
    running = {pod.ordinal: pod.container.id for pod in snapshot.workload.pods if pod.is_running}
    if any(ordinal not in running for ordinal in latest.placement.by_ordinal):
        return True
    listed = latest.group.member_ids
    ended = (seen for seen in snapshot.observed if seen.container_id not in running.values())
    still = (seen for seen in ended if any(key.id in listed for key in seen.members))
    return any(not has_outlived(seen, snapshot.container_ends, snapshot.latest) for seen in still)


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
    room = _room(evidence, setting.replicas + 1)
    return not isinstance(room, RoomUnknown) and room.is_enough


def _is_allowed(evidence: Evidence, setting: StandbySetting) -> bool:
    statefulset = evidence.snapshot.workload.statefulset
    return setting.replicas < MOST and statefulset is not None and statefulset.replicas > setting.replicas + 1


def _room(evidence: Evidence, standbys: int) -> Room | RoomUnknown:
    """They stay raised until the scale-down is over: the pods that are left then have all copies."""
    reports, snapshot = evidence.fresh_reports, evidence.snapshot
    staying = max(1, min(snapshot.app.desired.replicas, len(reports) - 1))
    return room_for_standbys(reports, snapshot.task_set, standbys, staying)


def _tight_disk(evidence: Evidence, standbys: int) -> Room | None:
    """The disk that is known to lack room for so many; None where all have it, or nobody knows."""
    room = _room(evidence, standbys)
    return room if isinstance(room, Room) and not room.is_enough else None


def _on_record(evidence: Evidence) -> RaisedStandbys | None:
    """What must be put back on this Kafka cluster, by the hold record or the one that is gone."""
    raised, latest = _wherever_raised(evidence), evidence.latest
    setting = None if latest is None else latest.group.standbys
    is_left = raised is not None and isinstance(setting, StandbySetting) and is_elsewhere(raised, setting)
    return None if is_left else raised


def _wherever_raised(evidence: Evidence) -> RaisedStandbys | None:
    """What the hold record says of a raise, or the one that is gone: it is written anew first."""
    record = evidence.hold_record
    return evidence.snapshot.lost_standbys if record is None else record.standbys


def _setting(evidence: Evidence) -> StandbySetting | None:
    """What the brokers show now; None where that is not known, or nothing must be put back in a classic group."""
    newest = evidence.snapshot.latest
    setting = None if evidence.latest is None else evidence.latest.group.standbys
    if newest is None or not isinstance(setting, StandbySetting):
        return None
    read_at = newest.ended_at
    is_fresh = evidence.snapshot.now - read_at <= evidence.policy.timing.fact_age
    is_older = _is_older_than_record(evidence, read_at) or _is_of_a_broker_behind(evidence, setting, read_at)
    return setting if is_fresh and not is_older else None


def _is_of_a_broker_behind(evidence: Evidence, setting: StandbySetting, read_at: datetime) -> bool:
    """Whether the brokers show what was set before a raise that one of them has shown, and so soon that one can lag.

    Each answer can be of another broker. Taken for another hand's doing, or for the old value that is back, it would
    end the record, and the raise would stay.
    """
    raised = _on_record(evidence)
    if raised is None or raised.state not in {RaiseState.SEEN, RaiseState.RETURNING}:
        return False
    earlier = {raised.before, raised.instead_of} if raised.is_second else {raised.before}
    return _value(setting) in earlier and read_at - raised.at < BEHIND


def _is_older_than_record(evidence: Evidence, read_at: datetime) -> bool:
    """Whether the brokers were asked before another operator saw what the record says that they showed.

    For seconds two operators can act: one that was frozen, and its successor. The older reading would make the
    successor's raise look like one that another hand took back. A date that is not past was cut: it tells nothing.
    """
    raised = _on_record(evidence)
    if raised is None or (raised.state is RaiseState.WANTED and not raised.is_second):
        return False
    return read_at < raised.at < evidence.snapshot.now


def _read_at(evidence: Evidence) -> datetime:
    """When the newest answer of the brokers was in."""
    newest = evidence.snapshot.latest
    return evidence.snapshot.now if newest is None else newest.ended_at
