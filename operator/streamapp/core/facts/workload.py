"""The Kubernetes side of one application: StatefulSet, pods, volumes and disruption budget, read live in one pass.

Filled by the gatherer from `kube`; read by everything that decides. Pods are known by ordinal and told apart by UID,
and containers by container ID: a restarted container keeps name, IP and process ID.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from streamapp.core.facts.hold_record import HoldRecord, RecordUnreadable
from streamapp.core.facts.ids import Ordinal, ProcessId, TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """The application's container in a pod, now."""

    id: str | None
    """None before the runtime created it."""
    running_since: datetime | None
    """Start of the run that goes on now, by its node's clock; None while it waits or has ended."""
    ever_ran: bool
    """True as soon as any container of this pod ever started."""
    first_seen_at: datetime | None = None
    """When this process first saw that run, by its own clock; None where nothing but the node's clock is known."""

    def __post_init__(self) -> None:
        """Refuse a contradiction.

        Raises:
            ValueError: It runs, but has no ID or never ran.
        """
        if self.running_since is not None and not (self.id and self.ever_ran):
            raise ValueError("container: runs, but has no ID or never ran")

    @property
    def known_since(self) -> datetime | None:
        """Since when the run goes on for certain, as a date that can be compared with those of this process.

        The node's clock may be behind this process's clock: then a run that began after a rebalance would seem to have
        begun before it.
        """
        return self.running_since if self.first_seen_at is None else self.first_seen_at


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFault:
    """Why a pod does not run its application, or why its container was started again, in the words of Kubernetes."""

    reason: str
    """Of a container that waits or has ended, such as CrashLoopBackOff or OOMKilled; or Unschedulable."""
    container: str = ""
    """The container that is meant; empty for a pod without a node."""
    exit_code: int | None = None
    """How its last run ended; None if it never ran."""
    restarts: int = 0
    ran_for: timedelta | None = None
    """How long its last run took; None if it never ran, or if the kubelet lost sight of the run."""
    last_words: str = ""
    """The end of the container's termination message, or what the kubelet or the scheduler says."""


@dataclass(frozen=True, slots=True)
class NodeDrain:
    """A node that its pods are to leave."""

    node: str
    sign: str
    """How that is known: `unschedulable`, or the key of a taint."""

    def __str__(self) -> str:
        return f"node {self.node} is {self.sign}" if self.sign == UNSCHEDULABLE else f"node {self.node} has {self.sign}"


UNSCHEDULABLE = "unschedulable"
"""Somebody has cordoned the node."""


class StateSeen(Enum):
    """What a seeder reported instead of the age of the state."""

    NONE = "none"
    """The volume has no state, so none can become too old."""
    UNKNOWN = "unknown"
    """The report cannot be read, or is that of an older seeder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastUse:
    """The last that is known of the use of a state: by the seeder, or by a run of the application after it."""

    ended_at: datetime
    """When that run ended."""
    idle: timedelta | StateSeen
    """How long the state lay unused until then; nothing at the end of a run of the application."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod of the StatefulSet that exists."""

    ordinal: Ordinal
    uid: str
    revision: str
    """`controller-revision-hash`."""
    ips: tuple[str, ...]
    ready: bool
    terminating: bool
    """Has a deletion timestamp."""
    container: Container
    has_agent: bool | None = None
    """It was made from a template with an agent; None: that is not known."""
    agent_port: int | None = None
    """Where its agent serves, by the template that it was made from; None: that is not known."""
    agent_tls_secret: str | None = None
    """The Secret with its agent's certificate, by the template that it was made from; None: plain HTTP."""
    last_use: LastUse | None = None
    """Of its state, while the application waits to start; None: it runs, or it is not known since when it waits."""
    fault: PodFault | None = None
    """The last one; a pod that runs again keeps it until it is replaced."""
    node: str = ""
    """The node that it was scheduled on; empty before that."""
    created_at: datetime | None = None
    """By the API server's clock, in whole seconds."""
    drain: NodeDrain | None = None
    """Why its node must be drained; None: nothing says so, or nodes are not watched."""
    zone: str = ""
    """The zone of its node, by the pod's own label or by the node's; empty: not known."""

    @property
    def is_running(self) -> bool:
        """Its container runs and nobody asked it to stop."""
        return self.container.running_since is not None and not self.terminating


@dataclass(frozen=True, slots=True)
class KeptState:
    """What lies on a volume without a pod: as it was when its last pod was removed."""

    at: datetime
    """When the removal was decided."""
    positions: Mapping[TaskId, int]
    """By stateful task, the sum of the offsets that were applied, over all changelogs of the task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """The claim of one ordinal, which lives longer than its pods."""

    ordinal: Ordinal
    process_id: ProcessId | None
    """As recorded on the claim for this application; None before the ordinal's first start."""
    uid: str = ""
    """Of the claim: a new claim of the ordinal has another one. Empty where nothing asks for it."""
    deleting: bool = False
    """It goes with its pod: the claim has a deletion timestamp."""
    created_at: datetime | None = None
    """By the API server's clock, in whole seconds."""
    kept: KeptState | None = None
    """Only for predictions; None where nothing was recorded."""
    requested: int | None = None
    """Bytes that the claim asks for; None where it does not say, or has no volume yet."""
    not_expandable: str = ""
    """Why the API server lately refused to let it ask for more; empty where it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatefulSet:
    """The StatefulSet, and what we wrote on it."""

    uid: str
    resource_version: str
    generation: int
    observed_generation: int
    replicas: int
    """Granted."""
    update_revision: str
    template_is_written: bool
    """False while the StreamApp's template differs from the one in the StatefulSet."""
    is_ours: bool
    """Controlled by this StreamApp."""
    record: HoldRecord | RecordUnreadable | None
    drift: str = ""
    """A field that another writer changed, with its value; empty where all are as the operator wrote them."""
    storage_class: str = ""
    """The class in which it makes claims, and the other one that the StreamApp names; empty where they are the same."""
    first_ordinal: int = 0
    """`spec.ordinals.start`, which the operator never sets."""
    is_half_made: bool = False
    """Its creation was cut off: beside a raise, only the write of its template can be made."""
    deletes_kept_claims: bool = False
    """Its retention policy deletes claims that the StreamApp says to retain."""
    deleting: bool = False
    """Somebody deleted it and a finalizer keeps it: Kubernetes makes and removes no pod for it any more."""


class Budget(Enum):
    """What the PodDisruptionBudget allows at present."""

    OPEN = "open"
    """`maxUnavailable: 1`."""
    CLOSED = "closed"
    """`maxUnavailable: 0`."""
    OPEN_FOR_ONE = "open for one"
    """`maxUnavailable: 0` for all pods but one, which the selector leaves out."""
    ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaLimit:
    """A limit of a ResourceQuota that one more pod would pass; amounts as Kubernetes writes them."""

    quota: str
    resource: str
    used: str
    hard: str

    def __str__(self) -> str:
        return f"quota {self.quota}: {self.used} of {self.hard} {self.resource} are used"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """All of it, as of one time."""

    read_at: datetime
    """When the first of the live reads began."""
    statefulset: StatefulSet | None
    pods: tuple[Pod, ...]
    volumes: tuple[Volume, ...]
    """Those that are kept. A claim that is being deleted is none, unless a user wants its pod restarted with a new one.
    Empty where the application keeps no state on disk (identity is then pod plus member)."""
    budget: Budget
    evictable: Ordinal | None = None
    """The pod that the budget leaves out, where it is open for one."""
    budget_lease: int | None = None
    """Transitions of the Lease under which the budget was last written; None where it does not follow coverage."""
    sees_nodes: bool = False
    """Nodes are watched, and the watch has spoken lately."""
    quota_limits: tuple[QuotaLimit, ...] = ()
    """What keeps the next missing pod from being made; empty where none is missing, or quotas are not known."""

    def __post_init__(self) -> None:
        """Sort by ordinal.

        Raises:
            ValueError: An ordinal twice.
        """
        for name, things in (("pods", self.pods), ("volumes", self.volumes)):
            if len({thing.ordinal for thing in things}) != len(things):
                raise ValueError(f"workload: two {name} of one ordinal")
        object.__setattr__(self, "pods", tuple(sorted(self.pods, key=lambda pod: pod.ordinal)))
        object.__setattr__(self, "volumes", tuple(sorted(self.volumes, key=lambda volume: volume.ordinal)))

    @property
    def lasting_statefulset(self) -> StatefulSet | None:
        """The StatefulSet, unless it is being deleted."""
        return None if self.statefulset is None or self.statefulset.deleting else self.statefulset

    @property
    def staying_pods(self) -> frozenset[str]:
        """The UIDs of the pods that are not terminating."""
        return frozenset(pod.uid for pod in self.pods if not pod.terminating)

    def pod(self, ordinal: Ordinal) -> Pod | None:
        """The pod of an ordinal, if there is one."""
        return next((pod for pod in self.pods if pod.ordinal == ordinal), None)

    def volume(self, ordinal: Ordinal) -> Volume | None:
        """The volume of an ordinal, if there is one."""
        return next((volume for volume in self.volumes if volume.ordinal == ordinal), None)

    @property
    def first_missing(self) -> Ordinal | None:
        """The lowest ordinal that is granted and has no pod; None if all pods exist."""
        granted = 0 if self.statefulset is None else self.statefulset.replicas
        known = {pod.ordinal for pod in self.pods}
        return next((Ordinal(number) for number in range(granted) if number not in known), None)

    @property
    def ready_ordinals(self) -> frozenset[Ordinal]:
        """Of the pods that run and are ready."""
        return frozenset(pod.ordinal for pod in self.pods if pod.ready and pod.is_running)

    @property
    def ready(self) -> int:
        """Pods that are ready and not on their way out."""
        return sum(1 for pod in self.pods if pod.ready and not pod.terminating)
