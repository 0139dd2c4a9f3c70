"""The hold record: the one durable memory of a scale-down, an annotation on the StatefulSet.

Three parts that live apart: the hold (why pods are kept, since when, how far), the open step (what was just taken away
and is not finished), and a setting of the group that must be put back. Nothing in it ever counts as "done": every step
is judged afresh from live facts.

`decide` decides what it shall say, `hold_annotation` turns it into text and back, the applier writes it.
"""

import hashlib
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from enum import Enum
from operator import attrgetter

from streamapp.core.facts.containers import ObservedMembers
from streamapp.core.reasons import Reason


@dataclass(frozen=True, slots=True, order=True)
class Epoch:
    """Which write is the later one: first by the Lease's transitions, then by a counter."""

    lease: int
    counter: int

    def next(self, lease: int, now: datetime) -> "Epoch":
        """The epoch of the next write.

        The counter never falls behind the clock, so that it goes on rising after the record was removed and begun anew;
        nor does the lease fall, where the count of transitions began anew with another Lease.
        """
        return Epoch(lease=max(self.lease, lease), counter=max(self.counter + 1, int(now.timestamp())))


NO_EPOCH = Epoch(lease=0, counter=0)


NOISE = 0.01
"""A gain of less than this share of what is left is none yet: compaction alone makes a changelog a little shorter."""


class ForcedBy(Enum):
    """Who said that coverage does not matter."""

    POLICY = "policy"
    OVERRIDE = "override"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class Forced:
    """A user's word against coverage, on record."""

    by: ForcedBy
    why: str
    """In the user's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How long the next pod has been waited for, and what has come of that.

    The wait runs on whatever a pass can see, and also while no operator runs: its user gave it a deadline.
    """

    best: int | None = None
    """The least number of records that stood in the way so far; None before the first complete pass."""
    improved_at: datetime
    """When that last became less."""
    waited: timedelta = timedelta(0)
    """The wait until `counted_at`."""
    counted_at: datetime | None = None
    """From then on the wait runs; None: it does not, since a step is open or nothing is prepared for the hold."""

    def after(self, records_to_go: int | None, now: datetime) -> "Progress":
        """The wait after one more pass that judged the next pod.

        Args:
            records_to_go: Records that stand in the way, None where this pass could not see all of them.
            now: The time of the pass.
        """
        running = self if self.counted_at is not None else replace(self, counted_at=now)
        if records_to_go is None or (self.best is not None and records_to_go >= self.best * (1 - NOISE)):
            return running
        return replace(running, best=records_to_go, improved_at=now)

    def waited_by(self, now: datetime) -> timedelta:
        """How long the next pod has been waited for.

        By this process's wall clock and that of the process that began to wait: spans of one clock end with a process.
        So a node whose clock is ahead by the whole deadline brings it at once, when its operator begins to lead. Then
        a user's word lets a pod go too early; whatever else protects data is still asked.
        """
        return self.waited if self.counted_at is None else self.waited + max(timedelta(0), now - self.counted_at)

    def before_next_wait(self, now: datetime) -> "Progress":
        """The same if no wait runs; else one that begins anew with the next pass that judges."""
        return self if self.counted_at is None else Progress(improved_at=now)


LEFT_OVER = -1
"""In place of the current replicas: no StatefulSet has as many, so the next decision begins another hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A scale-down that waits, or goes on step by step."""

    id: str
    from_replicas: int
    """Granted when it began."""
    target: int
    granted: int
    """Granted when this was written. If it is anything else now, this is left over from an earlier scale-down."""
    since: datetime
    reason: Reason
    """The latest verdict's."""
    progress: Progress
    forced: Forced | None = None
    dropped_by_half: bool = False
    """Desired replicas fell by more than half at once, and have not risen since."""
    gave_up_at: int | None = None
    """The generation of the StreamApp at which it was given up; a newer one begins a new hold."""
    generation: int | None = None
    """The generation of the StreamApp that an operator last looked at in this hold; None: an earlier version wrote it.

    It stands beside the record, since earlier versions read no record that says more than their own.
    """

    def before_next_wait(self, now: datetime) -> "Hold":
        """The same while nothing is prepared for it: the deadline counts anew from the end of that."""
        return replace(self, progress=self.progress.before_next_wait(now))


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStep:
    """Replicas that were taken away, until their members are gone and every task runs elsewhere."""

    hold_id: str
    from_replicas: int
    to_replicas: int
    granted_at: datetime
    reason: Reason
    forced: Forced | None = None
    observed: tuple[ObservedMembers, ...] = ()


class RaiseState(Enum):
    """How far a raise of the group's standbys is."""

    WANTED = "wanted"
    """Written or not: the brokers have not shown the raised value yet."""
    SEEN = "seen"
    """The brokers have shown it."""
    FOREIGN = "foreign"
    """Another hand has changed the setting while it was needed, and keeps it."""
    RETURNING = "returning"
    """The old value is written until the brokers show it: that it is back then is not another hand's doing."""
    RETURNED = "returned"
    """Nothing needed standbys any more, and the brokers have shown the old value again, or another hand's.

    A raise that an operator sent before it froze can still arrive.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class RaisedStandbys:
    """`streams.num.standby.replicas` that the operator raised, so that it is put back whatever becomes of the hold."""

    before: int | None
    """What was set for the group, lastly by another hand; None: nothing, the brokers' default applied."""
    instead_of: int
    """What applied when this was written."""
    is_second: bool = False
    """The operator itself had set that before."""
    to: int
    at: datetime
    """When this was last written; once the brokers showed it, or another hand's value, when they were read."""
    state: RaiseState = RaiseState.WANTED
    lease: int | None = None
    """Transitions of the operator's Lease when it first raised them; None: an earlier version did not tell."""
    cluster: str | None = None
    """ID of the Kafka cluster where they are raised; None: an earlier version, or the brokers, did not say."""

    @property
    def at_rest(self) -> int:
        """How many standbys apply when the old value is back; where none was set, as many as before the first raise."""
        return self.instead_of - self.is_second if self.before is None else self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldRecord:
    """Everything that is written down."""

    epoch: Epoch
    hold: Hold | None = None
    step: OpenStep | None = None
    standbys: RaisedStandbys | None = None
    """A setting of the group that must be put back."""

    def dated_until(self, now: datetime) -> "HoldRecord":
        """The same without dates after `now`, which another process wrote by a clock that was ahead.

        A raise of standbys is dated now: what that process sent can arrive for a while from now on, and its clock may
        as well be behind. One that another hand changed before this hold stays older than the hold.
        """
        hold, step, standbys = self.hold, self.step, self.standbys
        if hold is not None:
            counted = hold.progress.counted_at
            progress = replace(
                hold.progress,
                improved_at=min(hold.progress.improved_at, now),
                counted_at=None if counted is None else min(counted, now),
            )
            hold = replace(hold, since=min(hold.since, now), progress=progress)
        if step is not None:
            step = replace(step, granted_at=min(step.granted_at, now))
        if standbys is not None:
            is_earlier = self.hold is not None and hold is not None and self.hold.since > standbys.at
            is_foreign = standbys.state is RaiseState.FOREIGN
            before_hold = now if hold is None else min(standbys.at, hold.since - _SHORTEST)
            standbys = replace(standbys, at=before_hold if is_foreign and is_earlier else now)
        return replace(self, hold=hold, step=step, standbys=standbys)

    def found_at(self, generation: int) -> "HoldRecord":
        """The same for a process that did not look on before: if the StreamApp has changed, its hold is left over.

        The desired replicas can have risen in between, which ends a hold, and have fallen again. Nothing tells: an
        autoscaler's write has no date. So neither the wait nor an override must count for what is held now.

        Args:
            generation: Of the StreamApp, now.
        """
        hold = self.hold
        if hold is None or hold.generation in {None, generation}:
            return self
        return replace(self, hold=replace(hold, granted=LEFT_OVER))

    def followed_to(self, generation: int) -> "HoldRecord":
        """The same for a process that looked on, in its next pass: if it missed a change, the hold is left over.

        Each change of the spec raises the generation by one. A pass can last for long, and a write of the record can
        fail: the desired replicas can have risen and fallen again meanwhile, as in `found_at`.

        Args:
            generation: Of the StreamApp, as this pass read it.
        """
        hold = self.hold
        if hold is None or hold.generation is None or generation <= hold.generation + 1:
            return self
        return self.found_at(generation)

    @property
    def without_clock(self) -> tuple[object, ...]:
        """What the record says without its clock and counter; if nothing else differs, a write is not urgent."""
        hold = self.hold
        if hold is None:
            return (self.epoch.lease, self.step, self.standbys)
        # Since when the wait runs is kept, how far the copies are is not.
        runs = (hold.progress.waited, hold.progress.counted_at)
        return (self.epoch.lease, self.step, self.standbys, runs, *_WITHOUT_PROGRESS(hold))


_SHORTEST = timedelta(microseconds=1)
_WITHOUT_PROGRESS = attrgetter(*(field.name for field in fields(Hold) if field.name != "progress"))


@dataclass(frozen=True, slots=True)
class RecordUnreadable:
    """The annotation is there but cannot be understood; it may hide an open step."""

    detail: str


def new_hold_id(app_uid: str, resource_version: str, now: datetime) -> str:
    """An ID that no other hold of the application has: each writes the StatefulSet and so moves its version."""
    seed = f"{app_uid}/{resource_version}/{now.isoformat()}"
    return f"h-{hashlib.sha256(seed.encode()).hexdigest()[:10]}"
