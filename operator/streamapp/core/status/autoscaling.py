"""Is what drives the replicas in order? The condition `AutoscalingHealthy`.

Called by `conditions` and, for its warnings, by `decide`. It is for people: no step of any plan depends on it. Where
several things are wrong, the first in the order of `_ASKED` gives the reason, and the others stand behind it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from streamapp.core.actions.decision import Answer, Condition, Event
from streamapp.core.evidence.membership import place_members
from streamapp.core.evidence.refusal import Refusal, first_few
from streamapp.core.facts.autoscalers import Aim, Autoscaler, ReplicaWriters, ReplicaWritersUnknown
from streamapp.core.facts.group import GroupDescription, GroupUnreadable
from streamapp.core.facts.hold_record import Hold
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TopologyUnknown
from streamapp.core.reasons import Reason

TYPE = "AutoscalingHealthy"
LATELY = timedelta(minutes=1)
"""A reading that is older does not tell any more which pods are idle."""


@dataclass(frozen=True, slots=True)
class AutoscalingFinding:
    """Something that is not in order."""

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class _Seen:
    """What it is judged by."""

    snapshot: Snapshot
    hold: Hold | None
    replica_writers: ReplicaWriters
    """Empty where they are not known: what follows from the absence of others must ask
    `snapshot.replica_writers`."""
    tasks: int | None
    """None where the topology is not known."""


def condition(snapshot: Snapshot, hold: Hold | None) -> Condition:
    """The condition.

    Args:
        snapshot: The facts.
        hold: The hold that the decision goes on with, if any.
    """
    found = findings(snapshot, hold)
    if found:
        first, *others = found
        beside = [f"Also {other.reason.name}: {other.detail}" for other in others]
        return Condition(type=TYPE, status=Answer.FALSE, reason=first.reason, detail=". ".join([first.detail, *beside]))
    unknown = _unknown(snapshot)
    if unknown is not None:
        return Condition(type=TYPE, status=Answer.UNKNOWN, reason=unknown.reason, detail=unknown.detail)
    return Condition(type=TYPE, status=Answer.TRUE, reason=Reason.AutoscalingInOrder, detail=_in_order(snapshot))


def warnings(snapshot: Snapshot, hold: Hold | None) -> tuple[Event, ...]:
    """What of it is also told as an Event when it begins."""
    return tuple(
        Event(one.reason, one.detail) for one in findings(snapshot, hold) if one.reason.row.sends_event_when_found
    )


def findings(snapshot: Snapshot, hold: Hold | None) -> tuple[AutoscalingFinding, ...]:
    """Everything that is known not to be in order, what matters most first."""
    replica_writers = (
        ReplicaWriters() if isinstance(snapshot.replica_writers, ReplicaWritersUnknown) else snapshot.replica_writers
    )
    task_set = snapshot.task_set
    tasks = None if isinstance(task_set, TopologyUnknown) else len(task_set.tasks)
    seen = _Seen(snapshot, hold, replica_writers, tasks)
    return tuple(finding for ask in _ASKED for finding in ask(seen))


def _past_us(seen: _Seen) -> Iterator[AutoscalingFinding]:
    past = seen.replica_writers.at(Aim.STATEFUL_SET)
    if past:
        names = first_few([one.name for one in past])
        yield AutoscalingFinding(Reason.AutoscalerAimsAtStatefulSet, f"{_autoscalers(past)} {names}")


def _two_writers(seen: _Seen) -> Iterator[AutoscalingFinding]:
    autoscalers = seen.replica_writers.at(Aim.STREAM_APP)
    writers = [f"HorizontalPodAutoscaler {one.name}" for one in autoscalers] + list(seen.replica_writers.other_writers)
    if autoscalers and len(writers) > 1:
        yield AutoscalingFinding(Reason.TwoWritersOfReplicas, first_few(writers))


def _large_drop(seen: _Seen) -> Iterator[AutoscalingFinding]:
    hold = seen.hold
    if hold is not None and hold.dropped_by_half:
        yield AutoscalingFinding(Reason.LargeDrop, f"From {hold.from_replicas} to {hold.target}")


def _cannot_act(seen: _Seen) -> Iterator[AutoscalingFinding]:
    for one in seen.replica_writers.at(Aim.STREAM_APP):
        if one.cannot_act is not None:
            yield AutoscalingFinding(Reason.AutoscalerCannotAct, f"{one.name}: {one.cannot_act.rstrip('.')}")


def _idle(seen: _Seen) -> Iterator[AutoscalingFinding]:
    """Count desired pods only: another condition reports pods that are held or terminating."""
    pods = min(len(seen.snapshot.workload.pods), seen.snapshot.app.desired.replicas)
    if seen.tasks is not None and pods > seen.tasks:
        idle = _without_active_tasks(seen.snapshot)
        which = f"; ordinal {first_few(idle)} now" if idle else ""
        yield AutoscalingFinding(Reason.IdlePods, f"There are {pods} pods and {_tasks(seen.tasks)}{which}")


def _exceeds(seen: _Seen) -> Iterator[AutoscalingFinding]:
    for one in seen.replica_writers.at(Aim.STREAM_APP):
        if seen.tasks is not None and one.most > seen.tasks:
            least = f", minReplicas is {one.least}" if one.least > seen.tasks else ""
            told = f"{one.name}: maxReplicas is {one.most}{least}, and there are {_tasks(seen.tasks)}"
            yield AutoscalingFinding(Reason.AutoscalerExceedsTasks, told)


_ASKED: tuple[Callable[[_Seen], Iterator[AutoscalingFinding]], ...] = (
    _past_us,
    _two_writers,
    _large_drop,
    _cannot_act,
    _idle,
    _exceeds,
)


def _unknown(snapshot: Snapshot) -> Refusal | None:
    if isinstance(snapshot.replica_writers, ReplicaWritersUnknown):
        return Refusal(Reason.AutoscalersUnread, snapshot.replica_writers.why)
    if not isinstance(snapshot.task_set, TopologyUnknown):
        return None
    latest = snapshot.latest
    if latest is None:
        return Refusal(Reason.BrokersUnreachable, "The brokers were not read yet.")
    if isinstance(latest.group, GroupUnreadable):
        return Refusal(latest.group.reason, latest.group.detail)
    return Refusal(Reason.TopologyUnknown, snapshot.task_set.reason)


def _in_order(snapshot: Snapshot) -> str:
    replica_writers = snapshot.replica_writers
    named = replica_writers.at(Aim.STREAM_APP) if isinstance(replica_writers, ReplicaWriters) else ()
    return f"{_autoscalers(named)} {first_few([one.name for one in named])}" if named else "No autoscaler aims at it"


def _without_active_tasks(snapshot: Snapshot) -> list[Ordinal]:
    """Pods that process nothing, where the group was seen whole a moment ago."""
    latest = snapshot.latest
    group = None if latest is None or snapshot.now - latest.ended_at > LATELY else latest.group
    if not isinstance(group, GroupDescription) or not group.is_decoded:
        return []
    placement = place_members(group, snapshot.workload)
    return [
        pod.ordinal
        for pod in snapshot.workload.pods
        if not any(one.assignment is not None and one.assignment.active for one in placement.members(pod.ordinal))
    ]


def _autoscalers(several: tuple[Autoscaler, ...]) -> str:
    return "HorizontalPodAutoscaler" if len(several) == 1 else "HorizontalPodAutoscalers"


def _tasks(count: int) -> str:
    return f"{count} task" if count == 1 else f"{count} tasks"
