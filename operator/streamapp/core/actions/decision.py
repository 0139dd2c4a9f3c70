"""What a decision is: a verdict with its reason, what is waited for, and the writes to make, as data.

Made by `decide.decide`; the applier turns each step into one call, the status translation reads the rest. A step says
what it rests on (fence, time of the judgement), so that the applier can refuse it when the world has moved on.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from streamapp.core.evidence.coverage import TaskWait
from streamapp.core.evidence.eta import Estimate
from streamapp.core.evidence.learner_source import LearnerSourceStatus
from streamapp.core.evidence.membership import MemberPlacement
from streamapp.core.evidence.refusal import Refusal
from streamapp.core.facts.agent_reports import Rebalance
from streamapp.core.facts.containers import ContainerEnd, MemberKey
from streamapp.core.facts.group import StandbySetting
from streamapp.core.facts.hold_record import Epoch, Forced, Hold, HoldRecord, OpenStep, RecordUnreadable
from streamapp.core.facts.ids import Ordinal, ProcessId
from streamapp.core.facts.workload import Budget, KeptState, Pod
from streamapp.core.gates.convergence import Convergence
from streamapp.core.reasons import Reason


class Verdict(Enum):
    """What one pass comes to, in one word; the branches of the decision, in their order."""

    STALLED = "Stalled"
    PAUSED = "Paused"
    CREATE = "Create"
    GROW = "Grow"
    CLOSE_STEP = "CloseStep"
    STEADY = "Steady"
    HOLD = "Hold"
    STEP = "Step"


@dataclass(frozen=True, slots=True)
class Fence:
    """The StatefulSet that was judged; a write to any other version of it must fail."""

    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateStatefulSet:
    """Create it."""

    replicas: int
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantReplicas:
    """PATCH the StatefulSet's replicas and its hold record, both in one write."""

    from_replicas: int
    to_replicas: int
    record: HoldRecord | RecordUnreadable | None
    """None removes the annotation; an unreadable one is left as it is."""
    fence: Fence
    judged_at: datetime
    """A removal older than `Timing.fact_age`, by the monotonic clock, must not be sent."""
    reason: Reason

    @property
    def is_removal(self) -> bool:
        """Tell whether pods go."""
        return self.to_replicas < self.from_replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteHoldRecord:
    """PATCH the hold record alone."""

    record: HoldRecord | None
    """None removes it, and with it everything that was prepared."""
    fence: Fence
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseBudget:
    """Set the PodDisruptionBudget to `maxUnavailable: 0`, so that nobody evicts a pod."""

    reason: Reason
    follows_coverage: bool = False
    """Whether the budget is one that follows coverage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBudget:
    """Set it to `maxUnavailable: 1`, or leave one pod out of it."""

    reason: Reason
    evictable: Ordinal | None = None
    """The one pod that may be evicted; None: any one."""
    judged_at: datetime | None = None
    """When coverage was judged that this rests on; too old, it must not be sent. None: it rests on none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerRebalance:
    """Let a probe member join and leave, so that the group rebalances."""

    like_member: str
    """The member whose versions and process ID the probe member copies; it is in the lowest ordinal that stays."""
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Announce:
    """Tell agents which processes leave, or that none does; a renewal repeats epoch and content."""

    to: tuple[Ordinal, ...]
    process_ids: tuple[ProcessId, ...]
    epoch: Epoch
    rebalance: Rebalance
    ttl: timedelta
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class CapHeartbeats:
    """Ask agents to shorten the heartbeat interval of their members of a streams group for a while."""

    to: tuple[Ordinal, ...]
    cap: timedelta
    ttl: timedelta
    """Zero ends it."""
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class SetStandbys:
    """Set `streams.num.standby.replicas` of the group: raise it for a hold, or put it back."""

    replicas: int | None
    """None removes the group's own value, so that the brokers' default applies."""
    instead_of: StandbySetting
    """What the brokers showed when this was decided; they are asked again right before the write."""
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Evict:
    """LeaveGroup for exactly these members."""

    members: tuple[MemberKey, ...]
    end: ContainerEnd | None
    """The end that makes it harmless; None only for our own probe member."""
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordProcessId:
    """Annotate an ordinal's volume claim with the process ID that its members show."""

    ordinal: Ordinal
    process_id: ProcessId
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordState:
    """Annotate the volume claim of a removed pod with what lies there; only predictions read it."""

    ordinal: Ordinal
    state: KeptState
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandVolume:
    """Have an ordinal's volume claim ask for as much as the StreamApp says now: more, and never less."""

    ordinal: Ordinal
    to_bytes: int
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTemplate:
    """Write the StreamApp's pod template into the StatefulSet (`OnDelete`: no pod restarts by it)."""

    fence: Fence
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepClaims:
    """Write `Retain` into the StatefulSet's retention policy where the StreamApp has it, and nothing else."""

    fence: Fence
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPod:
    """Delete one pod, which comes back with the newest template and its volume."""

    ordinal: Ordinal
    pod_uid: str
    judged_at: datetime
    reason: Reason


Step = (
    CreateStatefulSet
    | GrantReplicas
    | WriteHoldRecord
    | CloseBudget
    | OpenBudget
    | TriggerRebalance
    | Announce
    | CapHeartbeats
    | SetStandbys
    | Evict
    | RecordProcessId
    | RecordState
    | ExpandVolume
    | WriteTemplate
    | KeepClaims
    | RestartPod
)

Plan = tuple[Step, ...]
"""Steps in the order in which they are to be made; the first that fails ends the pass."""


class Answer(Enum):
    """The status of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition of the resource, without the times, which are the status's business."""

    type: str
    status: Answer
    reason: Reason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened with this decision, told once."""

    reason: Reason
    detail: str = ""


class RestoreNeed(Enum):
    """What a decision wants of its cluster's budget."""

    NONE = "None"
    WAITING = "Waiting"
    """It would ask for learners, and has no place."""
    LEARNING = "Learning"
    """It asks for learners with this decision, or did so before and they are not done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreClaim:
    """The claim on a place of the budget, and how far its learners are."""

    need: RestoreNeed = RestoreNeed.NONE
    leaving: frozenset[Ordinal] = frozenset()
    """The pods that are drained."""
    records_to_go: int | None = None
    """Until all learners are caught up; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedStep:
    """A step that this decision finds finished, for `status.lastSteps`."""

    hold_id: str
    from_replicas: int
    to_replicas: int
    granted_at: datetime
    took: timedelta
    forced: Forced | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Disruptions:
    """What evictions are to be allowed, and why."""

    allows: Budget
    reason: Reason
    detail: str = ""
    evictable: Pod | None = None
    """The one pod, where they are allowed for one."""
    drains: Ordinal | None = None
    """The pod that is drained, so that it can be evicted."""
    waits_for: Refusal | None = None
    """What keeps a pod that is on a node that must be drained from being evicted."""
    drained_node: str = ""
    """A node that must be drained and has pods of this application."""
    follows_coverage: bool = True

    @property
    def has_news_due(self) -> bool:
        """Whether somebody waits for an eviction, or the budget could open on newer facts."""
        return self.waits_for is not None or self.evictable is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Everything one pass comes to."""

    verdict: Verdict
    reason: Reason
    detail: str
    """The particulars of the reason; together with `reason.note` a sentence for the user."""
    waiting_for: tuple[TaskWait, ...]
    eta: Estimate
    """When those will be caught up."""
    plan: Plan
    withheld: Plan
    """What a dry run would have done."""
    record: HoldRecord | RecordUnreadable | None
    """What the hold record says when the plan is done."""
    convergence: Convergence
    placement: MemberPlacement | None
    """Which member runs in which pod, by the latest reading; None if it does not describe the group."""
    conditions: tuple[Condition, ...]
    events: tuple[Event, ...]
    warnings: tuple[Event, ...]
    """What is wrong for as long as it stands here, without keeping anything from being done; told when it begins."""
    closed_step: CompletedStep | None
    source: LearnerSourceStatus
    """Where learners come from, and why not on demand."""
    requeue_after: timedelta
    """When to decide again even if nothing is heard."""
    needs_fresh_group: bool
    """Whether a rollout, a step or raised standbys wait, which a look at the group that is a minute old never ends."""
    disruptions: Disruptions
    """What evictions are allowed, and why."""
    waits_for_news: bool
    """Whether only what is heard can change it: neither a rebalance nor a restart nor an agent's word is due by the
    clock."""
    restores: RestoreClaim

    def events_after(self, made: Collection[Step]) -> tuple[Event, ...]:
        """The Events that are true if only these steps of the plan were made; the next decision has the others again.

        Most of them are about what the one write of the pass says: replicas or the hold record.
        """
        unmade = [step for step in self.plan if step not in made]
        if any(isinstance(step, GrantReplicas | WriteHoldRecord) for step in unmade):
            return ()
        untrue = {Reason.StatefulSetChanged} if any(isinstance(step, WriteTemplate) for step in unmade) else set()
        if any(isinstance(step, OpenBudget) for step in unmade):
            untrue.add(self.disruptions.reason)
        return tuple(event for event in self.events if event.reason not in untrue)

    @property
    def message(self) -> str:
        """The reason with its particulars, as resource and command line show it."""
        return f"{self.reason.note} {self.detail}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Another number of replicas, either way."""

    to_replicas: int
    step: OpenStep | None = None
    """For a removal whose end must be watched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchResult:
    """A branch's answer."""

    verdict: Verdict
    reason: Reason
    detail: str = ""
    waits: tuple[TaskWait, ...] = ()
    hold: Hold | None = None
    """The part of the hold record that says why pods are kept; None: no scale-down is under way."""
    staying: int | None = None
    """Replicas that will stay in the end, where pods are about to leave."""
    drained: int | None = None
    """Pods from this ordinal on are to be drained, where learners come on demand; None: none are."""
    grant: Grant | None = None
    create: int | None = None
    """Replicas of a StatefulSet to be created."""
    could_be_rebalanced: Refusal | None = None
    """What is missing that a rebalance may bring."""
    events: tuple[Event, ...] = ()
