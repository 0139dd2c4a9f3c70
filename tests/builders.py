"""Snapshots for tests: one sound default, of which each test overrides what matters.

The default is the product's own example: three pods, six stateful tasks with one standby each, stable, read twice. It
has a hold on record, so that with a lower wish the very next decision is a step.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from streamapp.core.actions.decision import Decision
from streamapp.core.decide import decide
from streamapp.core.facts.containers import ContainerEnd, MemberKey, ObservedMembers
from streamapp.core.facts.group import (
    GroupDescription,
    GroupReading,
    GroupState,
    GroupUnreadable,
    Member,
)
from streamapp.core.facts.hold_record import Epoch, Hold, HoldRecord, OpenStep, Progress
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import DesiredReplicas, DesiredSample, Snapshot
from streamapp.core.facts.workload import Container, Pod, Volume
from streamapp.core.reasons import Reason
from tests.support import example
from tests.support.sentinel import Sentinel

NOW = example.NOW
POLICY = ScalingPolicy()


NOT_GIVEN: Any = Sentinel("NOT_GIVEN")


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def ago(number: float) -> datetime:
    return NOW - seconds(number)


def a_snapshot(
    *,
    pods: int = 3,
    desired: int = 2,
    members: Iterable[Member] | None = None,
    record: Any = NOT_GIVEN,
    app: dict[str, Any] | None = None,
    statefulset: dict[str, Any] | None = None,
    workload: dict[str, Any] | None = None,
    **changes: Any,
) -> Snapshot:
    """The example application.

    Args:
        pods: How many there are, all of them granted: 1, 2, 3 or 6.
        desired: How many are wished for, since ten minutes.
        members: The group's members in both readings.
        record: The hold record; by default that of a hold which has just begun.
        app: Fields of `App` to change.
        statefulset: Fields of `StatefulSet` to change.
        workload: Fields of `Workload` to change.
        changes: Fields of the snapshot itself.
    """
    whole = example.snapshot(pods, desired)
    held = a_record(granted=pods, target=desired) if record is NOT_GIVEN else record
    own = whole.workload.statefulset
    assert own is not None
    changed = replace(own, **{"record": held, **(statefulset or {})})
    if members is not None:
        changes.setdefault("readings", example.two_readings(tuple(members)))
    return replace(
        whole,
        app=replace(whole.app, **(app or {})),
        workload=replace(whole.workload, **{"statefulset": changed, **(workload or {})}),
        **changes,
    )


def a_hold(**changes: Any) -> Hold:
    hold = Hold(
        id="h-1",
        from_replicas=3,
        target=2,
        granted=3,
        since=ago(60),
        reason=Reason.ReadingsPending,
        progress=Progress(improved_at=ago(60)),
        generation=1,
    )
    return replace(hold, **changes)


def a_record(*, step: OpenStep | None = None, **changes: Any) -> HoldRecord:
    return HoldRecord(epoch=Epoch(lease=0, counter=1), hold=a_hold(**changes), step=step)


def a_capture(ordinal: int = 3, *, seen_at: datetime | None = None, **changes: Any) -> ObservedMembers:
    """The one member of a pod, by default of one that has just been taken away."""
    capture = ObservedMembers(
        ordinal=Ordinal(ordinal),
        pod_uid=f"pod-{ordinal}",
        container_id=f"containerd://{ordinal}",
        seen_at=seen_at or ago(60),
        members=(MemberKey(f"wordcount-{ordinal}-consumer"),),
    )
    return replace(capture, **changes)


def an_end(ordinal: int = 3, *, finished_at: datetime | None = None, **changes: Any) -> ContainerEnd:
    end = ContainerEnd(
        pod_uid=f"pod-{ordinal}",
        container_id=f"containerd://{ordinal}",
        finished_at=finished_at or ago(5),
        reason="Completed",
    )
    return replace(end, **changes)


def a_step(**changes: Any) -> OpenStep:
    """From 4 to 3, half a minute ago, with the one member of pod 3."""
    step = OpenStep(
        hold_id="h-1",
        from_replicas=4,
        to_replicas=3,
        granted_at=ago(30),
        reason=Reason.Covered,
        observed=(a_capture(3),),
    )
    return replace(step, **changes)


def a_reading(
    members: Iterable[Member], *, at: float = 1, state: GroupState = GroupState.STABLE, **changes: Any
) -> GroupReading:
    """A poll that ended so many seconds ago."""
    return replace(example.reading(tuple(members), seconds(at), state), **changes)


def an_unreadable(at: float = 1, reason: Reason = Reason.BrokersUnreachable, *, streams: bool = False) -> GroupReading:
    return GroupReading(ended_at=ago(at), group=GroupUnreadable(reason, "timed out", streams), rebalance=None)


def without_subscriptions(members: Iterable[Member]) -> tuple[Member, ...]:
    """Members as the broker shows them while the group is not stable."""
    return tuple(replace(member, subscription=None) for member in members)


def description(reading: GroupReading) -> GroupDescription:
    assert isinstance(reading.group, GroupDescription)
    return reading.group


def a_pod(ordinal: int, **changes: Any) -> Pod:
    return replace(example.pod(ordinal), **changes)


def pods(count: int = 3, **by_ordinal: Pod) -> tuple[Pod, ...]:
    """Pods that are well, some of them replaced: `pods(3, p2=a_pod(2, ready=False))`."""
    return tuple(by_ordinal.get(f"p{number}", example.pod(number)) for number in range(count))


def volumes(count: int = 3) -> tuple[Volume, ...]:
    return tuple(example.volume(number) for number in range(count))


def not_running(*, ever_ran: bool = True, id_: str | None = None) -> Container:
    return Container(id=id_, running_since=None, ever_ran=ever_ran)


def a_wish(replicas: int, *seen: tuple[float, int]) -> DesiredReplicas:
    """A wish with its history: pairs of seconds ago and replicas."""
    return DesiredReplicas(replicas=replicas, history=tuple(DesiredSample(ago(when), number) for when, number in seen))


def told(decision: Decision) -> tuple[str, str]:
    """Verdict and reason, as the tests compare them."""
    return decision.verdict.value, decision.reason.name


def steps(decision: Decision) -> tuple[str, ...]:
    """The names of the steps."""
    return tuple(type(step).__name__ for step in decision.plan)


def decided(snapshot: Snapshot, policy: ScalingPolicy = POLICY) -> tuple[tuple[str, str], tuple[str, ...]]:
    decision = decide(snapshot, policy)
    return told(decision), steps(decision)
