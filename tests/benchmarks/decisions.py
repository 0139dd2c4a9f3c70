"""How long one decision takes: `python -m tests.benchmarks.decisions`, or `make bench-decide`.

Applications of several sizes are held before a step, which is the longest way through the decision: every gate is
passed, every task's copies are judged, in both readings. `gc` is off and each figure is of fresh values.
"""

import gc
import platform
import statistics
import time
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise

from rich.console import Console
from rich.table import Table

from streamapp.core.actions.decision import Decision
from streamapp.core.decide import decide
from streamapp.core.facts.group import GroupDescription, GroupReading, GroupState, Member, ObservedRebalance
from streamapp.core.facts.hold_record import Epoch, Hold, HoldRecord, Progress
from streamapp.core.facts.lag import EndOffsets, PartitionEnd
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.reasons import Reason
from tests.support import example

RUNS = 15
SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Size:
    """One application."""

    tasks: int
    pods: int


SIZES = (Size(6, 3), Size(48, 6), Size(500, 20), Size(5_000, 200))


def main() -> None:
    """Measure all sizes and print one table."""
    table = Table("tasks", "pods", "verdict", "median", "worst", "runs", box=None, header_style="bold")
    for column in table.columns:
        column.justify = "right"
    for size in SIZES:
        snapshot = held(size)
        decision, times = measured(snapshot)
        table.add_row(
            f"{size.tasks:,}",
            str(size.pods),
            f"{decision.verdict.value}: {decision.reason.name}",
            f"{statistics.median(times) * 1000:.1f} ms",
            f"{max(times) * 1000:.1f} ms",
            str(len(times)),
        )
    console = Console()
    console.print(f"decide(), Python {platform.python_version()} on {platform.machine()}", style="bold")
    console.print(table)


def measured(snapshot: Snapshot) -> tuple[Decision, list[float]]:
    """Decide again and again; give the decision and the seconds of each run."""
    policy, times = ScalingPolicy(), []
    decision = decide(snapshot, policy)
    gc.disable()
    for _ in range(RUNS):
        began = time.perf_counter()
        decide(replace(snapshot), policy)
        times.append(time.perf_counter() - began)
    gc.enable()
    return decision, times


def held(size: Size) -> Snapshot:
    """An application of that size of which one pod may go."""
    members = dealt(size)
    snapshot = example.snapshot(pods=size.pods, desired=size.pods - 1)
    hold = Hold(
        id="h-1",
        from_replicas=size.pods,
        target=size.pods - 1,
        granted=size.pods,
        since=example.NOW - timedelta(minutes=5),
        reason=Reason.LearnersCatchingUp,
        progress=Progress(improved_at=example.NOW - SECOND),
        generation=1,
    )
    statefulset = replace(example.statefulset(size.pods), record=HoldRecord(epoch=Epoch(0, 1), hold=hold, step=None))
    return replace(
        snapshot,
        task_set=example.task_set(size.tasks),
        workload=replace(snapshot.workload, statefulset=statefulset),
        readings=tuple(reading(members, size, ago * SECOND) for ago in (1, 15)),
    )


def dealt(size: Size, lag: int = 500) -> tuple[Member, ...]:
    """Tasks in runs over the pods, each with its standby on the next one, so many records behind."""
    share = size.tasks / size.pods
    edges = [round(number * share) for number in range(size.pods + 1)]
    owned = [tuple(range(first, last)) for first, last in pairwise(edges)]
    return tuple(example.member(pod, active=owned[pod], standby=owned[pod - 1], lag=lag) for pod in range(size.pods))


def reading(members: tuple[Member, ...], size: Size, ago: timedelta) -> GroupReading:
    """A poll, two seconds after the join that it shows."""
    settled_at = example.NOW - ago - 2 * SECOND
    changelogs = example.task_set(size.tasks).changelogs
    ends = {partition: PartitionEnd(log_start=0, end=example.END) for partition in changelogs}
    rebalance = ObservedRebalance(
        began_at=settled_at - 3 * SECOND,
        settled_at=settled_at,
        rejoined_members=frozenset(member.id for member in members),
        ends=EndOffsets(read_at=settled_at + SECOND, partitions=ends, committed={}),
    )
    return GroupReading(
        ended_at=example.NOW - ago, group=GroupDescription(GroupState.STABLE, members), rebalance=rebalance
    )


if __name__ == "__main__":
    main()
