"""How one application may be scaled: the user's choices and the operator's time limits, validated.

Made by `api` from the StreamApp's spec, read by everything that decides. Durations are `timedelta`, lags are records.
"""

from dataclasses import dataclass, fields
from datetime import timedelta
from enum import Enum

from streamapp.core.facts.agent_reports import Rebalance


class ScaleDownPolicy(Enum):
    """Whether coverage is needed."""

    HOLD = "Hold"
    IMMEDIATE = "Immediate"


class OnTimeout(Enum):
    """What becomes of a hold that waits for its next pod for too long."""

    WAIT = "Wait"
    GIVE_UP = "GiveUp"
    PROCEED = "Proceed"


class RolloutPolicy(Enum):
    """How pods get a changed template."""

    WHEN_CAUGHT_UP = "WhenCaughtUp"
    PAUSED = "Paused"
    IMMEDIATE = "Immediate"


class DisruptionPolicy(Enum):
    """When the Eviction API may take a pod, as a node drain does."""

    ONE_AT_A_TIME = "OneAtATime"
    WHEN_CAUGHT_UP = "WhenCaughtUp"


class LearnerSource(Enum):
    """The ways in which a caught-up copy can come to be before its owner goes."""

    ON_DEMAND = "OnDemand"
    """Our assignor in all pods: copies are made when they are needed, and tasks move before their pod goes."""
    STANDBYS = "Standbys"
    """`num.standby.replicas` of at least 1: the copies are always there."""
    NONE = "None"
    """No standby, stock assignor: nothing outside can make a copy while the owner is well."""


class Assignor(Enum):
    """What the application declares to assign its tasks with."""

    HIGH_AVAILABILITY = "HighAvailability"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The operator's own limits; they are the same for every application."""

    fact_age: timedelta = timedelta(seconds=10)
    """Older answers of Kubernetes or of the group decide nothing; a judgement older than this removes nothing."""
    position_age: timedelta = timedelta(seconds=60)
    """A join that settled longer ago says nothing about positions any more."""
    reading_gap: timedelta = timedelta(seconds=10)
    """Two readings in a row lie at least so far apart."""
    reading_window: timedelta = timedelta(minutes=2)
    """And not further than this."""
    report_gap: timedelta = timedelta(seconds=3)
    """Two words of an agent that confirm each other lie so far apart: each is exact, so less than between two joins."""
    eviction_margin: timedelta = timedelta(seconds=10)
    """A member must have been seen so long before its container ended; also covers skew between clocks."""
    rebalance_gap: timedelta = timedelta(seconds=10)
    """At most one triggered rebalance in such a time."""
    move_gap: timedelta = timedelta(seconds=3)
    """The same where agents show that tasks will move by it."""
    rebalance_gap_longest: timedelta = timedelta(minutes=5)
    """The longest wait between two triggered rebalances while something is waited for."""
    step_slow: timedelta = timedelta(minutes=10)
    """A step open for longer no longer keeps the disruption budget closed."""
    announcement: timedelta = timedelta(seconds=50)
    """How long an announcement holds after it was last renewed; agents take ten minutes at most."""
    announcement_of_empty: timedelta = timedelta(minutes=8)
    """The same while the leaving processes hold no task: without it they would get tasks back, and lose them again."""
    heartbeat_cap: timedelta = timedelta(milliseconds=300)
    """The longest heartbeat interval of a streams group while its tasks are on their way: 100 ms to 5 s."""
    heartbeat_cap_lasts: timedelta = timedelta(minutes=1)
    """How long agents keep to it after they were last asked; they take two minutes at most."""
    record_gap: timedelta = timedelta(seconds=10)
    """That copies came nearer is written down no more often."""

    def __post_init__(self) -> None:
        """Check.

        Raises:
            ValueError: A limit is not positive, or the window cannot hold two readings.
        """
        for limit in fields(self):
            if getattr(self, limit.name) <= timedelta(0):
                raise ValueError(f"timing: {limit.name} must be positive")
        if self.reading_window <= self.reading_gap:
            raise ValueError("timing: reading_window must be longer than reading_gap")
        if self.rebalance_gap_longest < self.rebalance_gap:
            raise ValueError("timing: rebalance_gap_longest must not be shorter than rebalance_gap")
        if not timedelta(milliseconds=100) <= self.heartbeat_cap <= timedelta(seconds=5):
            raise ValueError("timing: heartbeat_cap must be from 100 ms to 5 s")
        if not timedelta(seconds=1) <= self.heartbeat_cap_lasts <= timedelta(minutes=2):
            raise ValueError("timing: heartbeat_cap_lasts must be from 1 s to 2 minutes")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPolicy:
    """What the user chose, field by field as in the StreamApp's spec."""

    scale_down: ScaleDownPolicy = ScaleDownPolicy.HOLD
    stabilization_window: timedelta = timedelta(seconds=30)
    """Desired replicas must have been lower for so long before anything is prepared."""
    timeout: timedelta = timedelta(hours=1)
    """From the beginning of the wait for the next pod."""
    on_timeout: OnTimeout = OnTimeout.WAIT
    force_reason: str = ""
    """Why coverage may be overridden; needed for Immediate and Proceed."""
    allow_zero: bool = False
    max_step: int | None = None
    """The most pods that leave, or are drained, at once; None: no limit."""
    min_copies: int | None = None
    """The fewest copies of each stateful task, the running one among them, that a removal leaves; None: one."""
    min_zones: int | None = None
    """The fewest zones that these copies lie in; None: zones do not matter."""
    acceptable_recovery_lag: int = 10_000
    """Records; a copy no further behind is caught up."""
    assignor: Assignor = Assignor.HIGH_AVAILABILITY
    trigger_rebalance: bool = True
    agent: bool = False
    """`agent.enabled`: an agent belongs into every pod."""
    max_learners: int | None = None
    """The most learners that a scale-down asks for at once; None: no limit. One pod's are always asked for."""
    memory_per_task: int | None = None
    """Bytes outside of the heap that a copy of a stateful task takes at most, by the user's word; None: not said."""
    source: LearnerSource | None = None
    """`learners.source`: what the user demands; None: whatever is detected."""
    rebalance: Rebalance = Rebalance.CONSERVATIVE
    rollout: RolloutPolicy = RolloutPolicy.WHEN_CAUGHT_UP
    disruption: DisruptionPolicy = DisruptionPolicy.ONE_AT_A_TIME
    timing: Timing = Timing()

    def __post_init__(self) -> None:
        """Check what the resource's schema checks too, since a policy may come from elsewhere.

        Raises:
            ValueError: A negative duration or lag, a limit below 1, or a forcing choice without a reason.
        """
        if self.stabilization_window < timedelta(0) or self.timeout <= timedelta(0):
            raise ValueError("policy: stabilization_window must not be negative, timeout must be positive")
        if self.acceptable_recovery_lag < 0:
            raise ValueError("policy: acceptable_recovery_lag must not be negative")
        if any(limit is not None and limit < 1 for limit in (self.max_step, self.max_learners)):
            raise ValueError("policy: max_step and max_learners must be at least 1")
        if any(least is not None and least < 1 for least in (self.min_copies, self.min_zones)):
            raise ValueError("policy: min_copies and min_zones must be at least 1")
        forces = self.scale_down is ScaleDownPolicy.IMMEDIATE or self.on_timeout is OnTimeout.PROCEED
        if forces and not self.force_reason:
            raise ValueError("policy: Immediate and Proceed need a reason")
