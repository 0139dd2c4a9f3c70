"""What a migration would do and cost: `plan_of(facts, to, ...)`. Pure; nothing here is written anywhere.

The outage is from the stop of the pods until every task runs. Its parts are the pods' own end, their start as the
present pods took it, and the group's first assignment. A restore comes on top: how much is known only roughly.
"""

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from streamapp.api.http.messages import GroupTold, Tasks
from streamapp.cli.migration.facts import Facts
from streamapp.cli.model.migration_record import Protocol
from streamapp.cli.model.phrases import counted
from streamapp.cli.text import durations

Json = dict[str, Any]
STOP_SECONDS = (1.0, 15.0)
"""Of a container that closes its streams; more only if it uses its grace period up."""
LOOKS_SECONDS = (3.0, 12.0)
"""Until an operator that polls the group every two seconds has seen each stage."""
WARM_SINCE = "4.4"
"""Brokers from here on give a task to a pod whose volume has its state (KAFKA-20719)."""
FIRST_ASSIGNMENT_SECONDS = {Protocol.STREAMS: (3.0, 10.0), Protocol.CLASSIC: (3.0, 8.0)}
"""The initial delay of an empty group is 3 s in both protocols; with streams, tasks come with the next heartbeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the user is shown before the first write."""

    name: str
    to: Protocol
    replicas: int
    tasks: int | None
    """All tasks; None if it is unknown."""
    stateful: int | None
    records: int | None
    """To be restored from Kafka, by the ends that the operator read last; None: none. Without volumes all; with brokers
    that do not look at volumes when they assign tasks, the share of the tasks that come to another pod."""
    keeps_state: bool
    wait: timedelta
    """Before the outage."""
    least: timedelta
    most: timedelta | None
    """Without restores; None if the start of a pod was never seen."""
    change: Json
    """The merge patch of the template."""
    parked: tuple[str, ...]

    @property
    def outage(self) -> str:
        """`20s to 1m10s`."""
        most = "unknown" if self.most is None else durations.short(self.most)
        return f"{durations.short(self.least)} to {most}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """The stages, and what they cost."""
        tasks = "All tasks stop" if self.tasks is None else f"All {counted(self.tasks, 'task')} stop"
        parked = tuple(f"HorizontalPodAutoscaler {name}: its scale-ups are off meanwhile." for name in self.parked)
        restored = "their volumes stay, so state comes from them"
        if self.records is not None:
            why = "the volumes stay, but brokers below 4.4 assign tasks without regard to them"
            restored = (
                f"{why if self.keeps_state else 'there are no volumes'}: {self.records:,} records or more are restored"
            )
        return (
            f"stop    The {counted(self.replicas, 'pod')} stop together, after about {durations.short(self.wait)}; "
            f"{restored}.",
            "switch  When the brokers show the group empty, the template is written.",
            f"start   {counted(self.replicas, 'pod')} start with the {self.to.value} protocol, from the committed "
            "offsets.",
            *parked,
            f"{tasks}. Estimated outage: {self.outage}{'' if self.records is None else ', and the restore'}.",
        )

    @property
    def document(self) -> Json:
        """For programs."""
        return {
            "to": self.to.value,
            "replicas": self.replicas,
            "tasks": self.tasks,
            "statefulTasks": self.stateful,
            "recordsToRestore": self.records,
            "outageSecondsLeast": math.ceil(self.least.total_seconds()),
            "outageSecondsMost": None if self.most is None else math.ceil(self.most.total_seconds()),
            "change": self.change,
            "autoscalersParked": [*self.parked],
        }


def plan_of(facts: Facts, to: Protocol, change: Json, parked: tuple[str, ...]) -> Plan:
    """The plan of a migration that has not begun."""
    told = facts.tasks if isinstance(facts.tasks, Tasks) and facts.tasks.tasks else None
    streamapp = facts.streamapp
    window = timedelta(0) if streamapp is None else streamapp.spec.scale_down.stabilization_window
    keeps_state = streamapp is None or streamapp.spec.state is not None
    start, records = facts.ready_after, None
    share = _cold_share(facts, to) if keeps_state else 1.0
    if share and told is not None:
        records = round(share * sum(task.records or 0 for task in told.tasks if task.stateful))
    least = _sum(0, to) + (start or timedelta(0)) / 2
    return Plan(
        name=facts.view.name,
        to=to,
        replicas=facts.desired,
        tasks=None if told is None else len(told.tasks),
        stateful=None if told is None else sum(task.stateful for task in told.tasks),
        records=records,
        keeps_state=keeps_state,
        wait=window + timedelta(seconds=5),
        least=least,
        most=_sum(1, to) + 2 * start if start is not None else None,
        change=change,
        parked=parked,
    )


def _cold_share(facts: Facts, to: Protocol) -> float:
    """The share of the tasks that come to a pod whose volume has no state of them, with one copy of each task."""
    group = facts.group
    release = group.broker_release if isinstance(group, GroupTold) else None
    looks_at_volumes = to is Protocol.CLASSIC or release == WARM_SINCE
    return 0.0 if looks_at_volumes else 1 - 1 / max(1, facts.desired)


def _sum(end: int, to: Protocol) -> timedelta:
    return timedelta(seconds=STOP_SECONDS[end] + LOOKS_SECONDS[end] + FIRST_ASSIGNMENT_SECONDS[to][end])
