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
    """The clock of "no progress". It runs only between passes that saw everything."""

    best: int | None = None
    """The least number of records that stood in the way so far; None before the first complete pass."""
    improved_at: datetime
    waited: timedelta = timedelta(0)
    """Time without improvement, as far as it counts."""
    counted_at: datetime | None = None
    """The last pass that counted; None while the clock stands."""

    def after(self, records_to_go: int | None, now: datetime, longest_pause: timedelta) -> "Progress":
        """The clock after one more pass.

        Args:
            records_to_go: Records that stand in the way, None where this pass could not see all of them.
            now: The time of the pass.
            longest_pause: A longer pause between two passes (an operator that was down) does not count as waiting.
        """
        if records_to_go is None:
            return replace(self, counted_at=None)
        if self.best is None or records_to_go < self.best * (1 - NOISE):
            return Progress(best=records_to_go, improved_at=now, counted_at=now)
        pause = timedelta(0) if self.counted_at is None else max(timedelta(0), now - self.counted_at)
        counted = pause if pause <= longest_pause else timedelta(0)
        return replace(self, waited=self.waited + counted, counted_at=now)


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
    """Another hand has changed the setting since, and keeps it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaisedStandbys:
    """`streams.num.standby.replicas` that the operator raised, so that it is put back whatever becomes of the hold."""

    before: int | None
    """What was set for the group; None: nothing, the brokers' default applied."""
    instead_of: int
    """What applied when this was written."""
    is_second: bool = False
    """The operator itself had set that before."""
    to: int
    at: datetime
    """When this was written."""
    state: RaiseState = RaiseState.WANTED


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldRecord:
    """Everything that is written down."""

    epoch: Epoch
    hold: Hold | None = None
    step: OpenStep | None = None
    standbys: RaisedStandbys | None = None
    """A setting of the group that must be put back."""

    def dated_until(self, now: datetime) -> "HoldRecord":
        """The same without dates after `now`, which another process wrote by a clock that was ahead."""
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
            standbys = replace(standbys, at=min(standbys.at, now))
        return replace(self, hold=hold, step=step, standbys=standbys)

    @property
    def without_clock(self) -> tuple[object, ...]:
        """What the record says without its clock and counter; if nothing else differs, a write is not urgent."""
        hold = self.hold
        if hold is None:
            return (self.epoch.lease, self.step, self.standbys)
        # Whether the clock runs is kept, how far it ran is not.
        runs = hold.progress.counted_at is not None
        return (self.epoch.lease, self.step, self.standbys, runs, *_WITHOUT_PROGRESS(hold))


_WITHOUT_PROGRESS = attrgetter(*(field.name for field in fields(Hold) if field.name != "progress"))


@dataclass(frozen=True, slots=True)
class RecordUnreadable:
    """The annotation is there but cannot be understood; it may hide an open step."""

    detail: str


def new_hold_id(app_uid: str, resource_version: str, now: datetime) -> str:
    """An ID that no other hold of the application has: each writes the StatefulSet and so moves its version."""
    seed = f"{app_uid}/{resource_version}/{now.isoformat()}"
    return f"h-{hashlib.sha256(seed.encode()).hexdigest()[:10]}"
