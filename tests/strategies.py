"""Hypothesis strategies for the core's values."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from streamapp.core.facts.containers import ContainerEnd, MemberKey, ObservedMembers
from streamapp.core.facts.group import (
    Applied,
    FollowUp,
    GroupDescription,
    GroupReading,
    GroupState,
    GroupUnreadable,
    Member,
    NoOffsets,
    OffsetSum,
)
from streamapp.core.facts.hold_record import (
    Epoch,
    Forced,
    ForcedBy,
    Hold,
    HoldRecord,
    OpenStep,
    Progress,
    RaisedStandbys,
    RaiseState,
    RecordUnreadable,
)
from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.lag import EndsUnreadable
from streamapp.core.facts.policy import Assignor, OnTimeout, RolloutPolicy, ScaleDownPolicy, ScalingPolicy
from streamapp.core.facts.snapshot import HoldOverride, RebalanceHistory, RestartRequest, Snapshot
from streamapp.core.facts.tasks import TopologyUnknown
from streamapp.core.facts.workload import Budget, Container
from streamapp.core.reasons import Reason
from tests.builders import a_capture, a_record, a_step, ago, an_end
from tests.support import example

TIMES = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=365)).map(
    lambda since: datetime(2026, 1, 1, tzinfo=UTC) + since
)
COUNTS = st.integers(min_value=0, max_value=100)
NAMES = st.text(min_size=1, max_size=20)
REASONS = st.sampled_from(Reason)
FORCED = st.none() | st.builds(Forced, by=st.sampled_from(ForcedBy), why=st.text(max_size=40))


def observed() -> st.SearchStrategy[ObservedMembers]:
    keys = st.builds(MemberKey, id=NAMES, instance_id=st.none() | NAMES)
    return st.builds(
        ObservedMembers,
        ordinal=COUNTS.map(Ordinal),
        pod_uid=NAMES,
        container_id=NAMES,
        seen_at=TIMES,
        members=st.lists(keys, min_size=1, max_size=3, unique_by=lambda key: key.id).map(tuple),
    )


def raised_standbys() -> st.SearchStrategy[RaisedStandbys]:
    return st.builds(
        RaisedStandbys,
        before=st.none() | COUNTS,
        instead_of=COUNTS,
        is_second=st.booleans(),
        to=COUNTS,
        at=TIMES,
        state=st.sampled_from(RaiseState),
        cluster=st.none() | st.text(max_size=22),
    )


def hold_records() -> st.SearchStrategy[HoldRecord]:
    progress = st.builds(
        Progress,
        best=st.none() | COUNTS,
        improved_at=TIMES,
        waited=st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=9)),
        counted_at=st.none() | TIMES,
    )
    hold = st.builds(
        Hold,
        id=NAMES,
        from_replicas=COUNTS,
        target=COUNTS,
        granted=COUNTS,
        since=TIMES,
        reason=REASONS,
        progress=progress,
        forced=FORCED,
        dropped_by_half=st.booleans(),
        gave_up_at=st.none() | COUNTS,
    )
    step = st.builds(
        OpenStep,
        hold_id=NAMES,
        from_replicas=COUNTS,
        to_replicas=COUNTS,
        granted_at=TIMES,
        reason=REASONS,
        forced=FORCED,
        observed=st.lists(observed(), max_size=3).map(tuple),
    )
    epoch = st.builds(Epoch, lease=COUNTS, counter=COUNTS)
    return st.builds(
        HoldRecord, epoch=epoch, hold=st.none() | hold, step=st.none() | step, standbys=st.none() | raised_standbys()
    )


# Applications in trouble. A few numbers give the layout of the group; up to three troubles out of a list give the rest,
# so that most examples are near the border where a pod just may, or just may not, be taken, and shrink to what matters.

LAGS = st.sampled_from((9_999, 10_000, 10_001, 500_000, None))
"""Of a standby that is not at the end; None: no offsets reported."""

Trouble = Callable[[Snapshot], Snapshot]


@st.composite
def groups(draw: st.DrawFn, pods: int) -> tuple[Member, ...]:
    """Six tasks, each active on some pod, with up to two copies on others; the top pods often hold nothing."""
    busy = draw(st.integers(1, pods))
    numbers = range(example.PARTITIONS)
    owners = [draw(st.integers(0, busy - 1)) for _ in numbers]
    shifts = [draw(st.integers(0, 3)) for _ in numbers]
    second = draw(st.sets(st.sampled_from(numbers), max_size=1))
    lags = draw(st.dictionaries(st.sampled_from(numbers), LAGS, max_size=2))
    restoring = draw(st.sets(st.sampled_from(numbers), max_size=1))
    dormant = draw(st.sets(st.integers(0, pods - 1), max_size=1))
    members = []
    for pod in range(pods):
        active = [n for n in numbers if owners[n] == pod]
        copies = [
            n
            for n in numbers
            if pod != owners[n]
            and (pod == (owners[n] + shifts[n]) % busy or (n in second and pod == (owners[n] + 2) % pods))
        ]
        offsets: dict[TaskId, OffsetSum] = {example.task(0): Applied(example.END)} if pod in dormant else {}
        offsets |= {example.task(n): Applied(0) if n in restoring else NoOffsets.RUNNING for n in active}
        for n in copies:
            lag = lags.get(n, 0)
            offsets[example.task(n)] = NoOffsets.UNKNOWN if lag is None else Applied(example.END - lag)
        member = example.member(pod, active=active, standby=copies)
        assert member.subscription is not None
        members.append(replace(member, subscription=replace(member.subscription, offsets=offsets)))
    return tuple(members)


def _app(**changes: Any) -> Trouble:
    return lambda snapshot: replace(snapshot, app=replace(snapshot.app, **changes))


def _statefulset(**changes: Any) -> Trouble:
    def changed(snapshot: Snapshot) -> Snapshot:
        statefulset = snapshot.workload.statefulset
        own = None if statefulset is None else replace(statefulset, **changes)
        return replace(snapshot, workload=replace(snapshot.workload, statefulset=own))

    return changed


def _workload(**changes: Any) -> Trouble:
    return lambda snapshot: replace(snapshot, workload=replace(snapshot.workload, **changes))


def _pod(number: int, **changes: Any) -> Trouble:
    """One pod, counted from the top."""

    def changed(snapshot: Snapshot) -> Snapshot:
        pods = list(snapshot.workload.pods)
        if number < len(pods):
            pods[-1 - number] = replace(pods[-1 - number], **changes)
        return replace(snapshot, workload=replace(snapshot.workload, pods=tuple(pods)))

    return changed


def _readings(change: Callable[[GroupReading], GroupReading], *numbers: int) -> Trouble:
    """Some of the readings, the newest being 0."""
    return lambda snapshot: replace(
        snapshot,
        readings=tuple(change(one) if number in numbers else one for number, one in enumerate(snapshot.readings)),
    )


def _unreadable(reading: GroupReading) -> GroupReading:
    return replace(reading, group=GroupUnreadable(Reason.BrokersUnreachable, "timed out"), rebalance=None)


def _rebalancing(reading: GroupReading) -> GroupReading:
    if not isinstance(reading.group, GroupDescription):
        return reading
    hidden = tuple(replace(member, subscription=None) for member in reading.group.members)
    return replace(reading, group=GroupDescription(GroupState.PREPARING_REBALANCE, hidden), rebalance=None)


def _without_the_first(reading: GroupReading) -> GroupReading:
    if not isinstance(reading.group, GroupDescription):
        return reading
    return replace(reading, group=replace(reading.group, members=reading.group.members[1:]))


def _with_a_stranger(reading: GroupReading) -> GroupReading:
    if not isinstance(reading.group, GroupDescription):
        return reading
    return replace(reading, group=replace(reading.group, members=(*reading.group.members, example.member(9))))


def _unsettled(reading: GroupReading) -> GroupReading:
    if not isinstance(reading.group, GroupDescription) or not reading.group.members:
        return reading
    first, *others = reading.group.members
    told = first.assignment and replace(first.assignment, follow_up=FollowUp.SCHEDULED)
    return replace(reading, group=replace(reading.group, members=(replace(first, assignment=told), *others)))


def _without_join(reading: GroupReading) -> GroupReading:
    return replace(reading, rebalance=None)


def _without_ends(reading: GroupReading) -> GroupReading:
    return replace(reading, rebalance=reading.rebalance and replace(reading.rebalance, ends=EndsUnreadable("refused")))


def _stepping(snapshot: Snapshot) -> Snapshot:
    statefulset = snapshot.workload.statefulset
    replicas = 1 if statefulset is None else statefulset.replicas
    step = a_step(from_replicas=replicas + 1, to_replicas=replicas, observed=(a_capture(0),))
    return _statefulset(record=a_record(granted=replicas, step=step))(snapshot)


def _asked_to_restart(*places: int, new_volume: bool = False) -> Trouble:
    """A user wants the pods at these places restarted, counted from the highest ordinal."""

    def trouble(snapshot: Snapshot) -> Snapshot:
        named = snapshot.workload.pods[::-1]
        requests = tuple(
            RestartRequest(pod_uid=named[place].uid, new_volume=new_volume) for place in places if place < len(named)
        )
        return _app(restarts=requests)(snapshot)

    return trouble


def _given_up(snapshot: Snapshot) -> Snapshot:
    """The claim of the second highest ordinal is being deleted."""
    second = snapshot.workload.pods[-2].ordinal if len(snapshot.workload.pods) > 1 else None
    volumes = tuple(replace(one, deleting=one.ordinal == second) for one in snapshot.workload.volumes)
    return _workload(volumes=volumes)(snapshot)


WAITS = Container(id=None, running_since=None, ever_ran=True)
NEVER_RAN = Container(id=None, running_since=None, ever_ran=False)

TROUBLES: dict[str, Trouble] = {
    "paused": _app(paused=True),
    "dry run": _app(dry_run=True),
    "deleting": _app(deleting=True),
    "invalid": _app(fault="spec.kafka is empty"),
    "user's hold": _app(held_because="audit"),
    "overridden": _app(override=HoldOverride(hold_id="h-1", why="out of money")),
    "asked to restart": _asked_to_restart(0, 1),
    "given up": lambda snapshot: _given_up(_asked_to_restart(1, new_volume=True)(snapshot)),
    "given up unasked": _given_up,
    "young wish": lambda snapshot: _app(desired=replace(snapshot.app.desired, history=()))(snapshot),
    "no StatefulSet": _workload(statefulset=None),
    "foreign StatefulSet": _statefulset(is_ours=False),
    "unobserved": _statefulset(observed_generation=0),
    "new template": _statefulset(template_is_written=False),
    "new revision": _statefulset(update_revision="newer"),
    "no record": _statefulset(record=None),
    "left-over record": _statefulset(record=a_record(granted=9)),
    "unreadable record": _statefulset(record=RecordUnreadable("no JSON")),
    "open step": _stepping,
    "stale Kubernetes": _workload(read_at=ago(11)),
    "no volumes": _workload(volumes=()),
    "budget closed": _workload(budget=Budget.CLOSED),
    "top pod terminating": _pod(0, terminating=True),
    "top pod waiting": _pod(0, container=WAITS, ready=False),
    "top pod never ran": _pod(0, container=NEVER_RAN, ready=False),
    "second pod terminating": _pod(1, terminating=True),
    "second pod young": _pod(1, container=replace(example.pod(0).container, running_since=example.NOW)),
    "second pod outdated": _pod(1, revision="older"),
    "second pod not ready": _pod(1, ready=False),
    "unknown topology": lambda snapshot: replace(snapshot, task_set=TopologyUnknown("two sub-topologies")),
    "never read": lambda snapshot: replace(snapshot, readings=()),
    "one reading": lambda snapshot: replace(snapshot, readings=snapshot.readings[:1]),
    "unreadable now": _readings(_unreadable, 0),
    "unreadable before": _readings(_unreadable, 1),
    "rebalancing now": _readings(_rebalancing, 0),
    "member missing": _readings(_without_the_first, 0, 1),
    "member was missing": _readings(_without_the_first, 1),
    "stranger": _readings(_with_a_stranger, 0, 1),
    "unsettled": _readings(_unsettled, 0, 1),
    "was unsettled": _readings(_unsettled, 1),
    "join not watched": _readings(_without_join, 0, 1),
    "ends not read": _readings(_without_ends, 0),
    "ends not read before": _readings(_without_ends, 1),
}


def _application(pods: int, desired: int, members: tuple[Member, ...], ends: tuple[ContainerEnd, ...]) -> Snapshot:
    """Without trouble: a hold on record, two readings in a row, everybody captured a minute ago."""
    whole = example.workload(pods)
    statefulset = replace(
        example.statefulset(pods), record=a_record(granted=pods, target=max(0, pods - 1)) if desired < pods else None
    )
    return replace(
        example.snapshot(3, desired),
        workload=replace(whole, statefulset=statefulset),
        readings=example.two_readings(members),
        observed=tuple(a_capture(pod) for pod in range(pods)),
        container_ends=ends,
        rebalances=RebalanceHistory(sent=(ago(11),)),
    )


@st.composite
def snapshots(draw: st.DrawFn, wishes: tuple[int, int] = (-3, 2), most_troubles: int = 3) -> Snapshot:
    """An application of one to four pods with up to `most_troubles` troubles; `wishes` are relative to its pods."""
    pods = draw(st.integers(1, 4))
    desired = max(0, pods + draw(st.integers(*wishes)))
    ended = draw(st.sets(st.tuples(st.integers(0, pods), st.sampled_from((45, 52))), max_size=1))
    ends = tuple(an_end(pod, finished_at=ago(when)) for pod, when in sorted(ended))
    snapshot = _application(pods, desired, draw(groups(pods)), ends)
    for name in sorted(draw(st.sets(st.sampled_from(sorted(TROUBLES)), max_size=most_troubles))):
        snapshot = TROUBLES[name](snapshot)
    return snapshot


def scale_downs(most_troubles: int = 1) -> st.SearchStrategy[Snapshot]:
    """Applications that are to shrink, most of them ready for it."""
    return snapshots(wishes=(-3, -1), most_troubles=most_troubles)


def rollouts() -> st.SearchStrategy[Snapshot]:
    """Applications whose pods all have an older template."""
    steady = snapshots(wishes=(0, 0), most_troubles=1)
    return steady.map(_statefulset(update_revision="newer"))


def policies() -> st.SearchStrategy[ScalingPolicy]:
    """The default, or one choice of the user that differs from it."""
    return st.sampled_from(
        (
            *[ScalingPolicy(allow_zero=True)] * 5,
            ScalingPolicy(),
            ScalingPolicy(trigger_rebalance=False, allow_zero=True),
            ScalingPolicy(assignor=Assignor.UNKNOWN, allow_zero=True),
            ScalingPolicy(scale_down=ScaleDownPolicy.IMMEDIATE, force_reason="because", allow_zero=True),
            ScalingPolicy(on_timeout=OnTimeout.PROCEED, force_reason="because", allow_zero=True),
            ScalingPolicy(on_timeout=OnTimeout.GIVE_UP, allow_zero=True),
            ScalingPolicy(rollout=RolloutPolicy.IMMEDIATE, allow_zero=True),
            ScalingPolicy(rollout=RolloutPolicy.PAUSED, allow_zero=True),
        )
    )
