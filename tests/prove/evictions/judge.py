"""The judge of evictions: knows what is true, and holds the promise of `disruption.policy: WhenCaughtUp` against it.

1. A process opens the budget for a pod only if two of its looks show that every stateful task is covered without it.
2. The Eviction API takes a pod that runs only while every stateful task runs or has a caught-up copy on another pod
   that stays. What changed too shortly before is counted, and not blamed: `SECONDS_OF_A_DRAIN` while a pod is on a
   cordoned node, else `SECONDS_AT_REST`; after a fault, so much longer as a raise may take.
3. Two pods are never away by eviction at the same time.
4. Without faults a drain empties each node within `EMPTY_WITHIN`, and as much for each other pod on a cordoned node.
"""

import asyncio
import math
from collections.abc import Callable, Iterable
from typing import Any

from streamapp.core.facts.ids import TaskId
from tests.kube.object_store import ObjectStore
from tests.prove.calls import Process, Switchboard
from tests.prove.evictions.eviction_api import BUDGETS
from tests.prove.evictions.evictor import Evictor
from tests.prove.group import Group, Member
from tests.prove.judge import Judge, _ordinal
from tests.prove.judge_raises import WITHIN, Raise
from tests.prove.kubelet import Nodes
from tests.prove.looks import Look, Seen

Json = dict[str, Any]
SECONDS_OF_A_DRAIN = 10.0
SECONDS_AT_REST = 70.0
"""A look a minute, and the time of a pass."""
SECONDS_OF_POSITIONS = 70.0 + 60.0
"""So long a copy may count by the word of its last join although it fell behind since."""
EMPTY_WITHIN = 240.0
"""Seconds within which a node is empty where nothing goes wrong, and time for restores."""
SAMPLED = 0.25
"""Seconds between two looks at the truth."""


class EvictionJudge:
    """Of one StreamApp in one story."""

    def __init__(
        self,
        judge: Judge,
        store: ObjectStore,
        group: Group,
        nodes: Nodes,
        board: Switchboard,
        loop: asyncio.AbstractEventLoop,
        *,
        is_draining: Callable[[], bool],
    ) -> None:
        self._judge, self._store, self._group, self._nodes, self._board = judge, store, group, nodes, board
        self._loop, self._is_draining = loop, is_draining
        self._bare: dict[tuple[int, TaskId], float] = {}
        """Since when a task has no cover but on an ordinal."""
        self._fallen: dict[tuple[int, TaskId], float] = {}
        """Since when it has none but copies that fell behind since they joined last."""
        self._away: dict[int, str] = {}
        """The UID of the pod that was evicted, by ordinal, until another one runs in its place."""
        store.changed.append(self._changed)
        self._sample()

    # The truth.

    def _sample(self) -> None:
        self._look()
        self._loop.call_later(SAMPLED, self._sample)

    def _look(self) -> None:
        """Note since when each task would lose its last cover with each ordinal."""
        self._group.advance()
        now, ordinals = self._loop.time(), [_ordinal(pod) for pod in self._nodes.pods()]
        self._away = {one: uid for one, uid in self._away.items() if one in ordinals and not self._is_back(one, uid)}
        staying = self._staying()
        for found, is_strict in ((self._bare, False), (self._fallen, True)):
            covers = {task: self._covers(task, staying, is_strict=is_strict) for task in self._group.tasks}
            bare = {(one, task) for one in ordinals for task in self._group.tasks if not covers[task] - {one}}
            for key in [*found]:
                if key not in bare:
                    del found[key]
            for key in bare:
                found.setdefault(key, now)

    def _staying(self) -> list[tuple[int, Member]]:
        """The members that are alive in pods that stay, with their ordinals."""
        pods = (pod["metadata"] for pod in self._nodes.pods())
        stay = {metadata["uid"] for metadata in pods if "deletionTimestamp" not in metadata}
        listed = ((member, member.run) for member in self._group.listed(alive=True))
        return [(run.ordinal, member) for member, run in listed if run is not None and run.pod_uid in stay]

    def _covers(self, task: TaskId, staying: Iterable[tuple[int, Member]], *, is_strict: bool) -> set[int]:
        """Ordinals on which the task runs, or has a copy that is caught up: by its last join, or `is_strict` now."""
        return {
            ordinal
            for ordinal, member in staying
            if task in member.running or (task in member.standby and self._is_caught_up(member, task, is_strict))
        }

    def _is_caught_up(self, member: Member, task: TaskId, is_strict: bool) -> bool:
        truth = self._group.truth
        assert member.run is not None
        if truth.lag(member.run.volume, task) <= truth.shape.limit:
            return True
        return not is_strict and member.said.lags.get(task, truth.shape.limit + 1) <= truth.shape.limit

    def _is_back(self, ordinal: int, uid: str) -> bool:
        run = self._nodes.alive().get(ordinal)
        return run is not None and run.pod_uid != uid and run.joined_at is not None

    # Evictions.

    def accepted(self, pod: Json) -> None:
        """The Eviction API is about to delete a pod that was running."""
        if not self._is_promised():
            return
        ordinal, uid, now = _ordinal(pod), pod["metadata"]["uid"], self._loop.time()
        self._look()
        notes = self._judge.notes
        run = self._nodes.alive().get(ordinal)
        if run is None or run.pod_uid != uid or run.joined_at is None:
            notes["evictions of idle pods"] += 1
            return
        self._judge.visited.add("an eviction with tasks")
        others = sorted(self._away.keys() - {ordinal})
        if others:
            self._wrong(f"pod {ordinal} is evicted while {others} are away by eviction")
        self._away[ordinal] = uid
        limits = ((self._bare, self._seconds()), (self._fallen, SECONDS_OF_POSITIONS))
        for found, seconds in limits:
            lost = {task: since for (one, task), since in found.items() if one == ordinal}
            if not lost:
                continue
            since = min(lost.values())
            late = now - self._excused(since)
            notes[f"overtaken evictions, by {math.ceil(now - since)} s"] += 1
            if late > seconds:
                tasks = ", ".join(str(task) for task in sorted(lost))
                self._wrong(f"pod {ordinal} is evicted, and since {since:.2f} s no other pod has {tasks}")

    def _seconds(self) -> float:
        slowness = 6 * self._board.slowest(self._loop.time() - 60.0)
        return (SECONDS_OF_A_DRAIN if self._is_draining() else SECONDS_AT_REST) + slowness

    def _excused(self, since: float) -> float:
        """From when on the operator had its chance: the loss, or a fault since then or shortly before."""
        befell = self._judge.raises._befell(Raise(since, 0))
        return max(max(since, at) + WITHIN[what] - 2.0 for what, at in befell.items())

    def _is_promised(self) -> bool:
        app = self._store.get("streamapps", self._judge.key.namespace, self._judge.key.name)
        if app is None or "deletionTimestamp" in app["metadata"]:
            return False  # (its owner lets go of it, and a drain must not wait for nobody)
        return bool(app["spec"].get("disruption", {}).get("policy") == "WhenCaughtUp")

    # The budget.

    def _changed(self, plural: str, body: Json, before: Json | None) -> None:
        writer = self._board.writer
        if plural == BUDGETS and body and before is not None and writer is not None and self._is_promised():
            ordinals = {_ordinal(pod) for pod in self._nodes.pods()}
            self._opens(writer, sorted(evictable(body, ordinals) - evictable(before, ordinals)))

    def _opens(self, writer: Process, ordinals: list[int]) -> None:
        seen = self._judge._of(writer)
        at, notes = seen.statefulset_at, self._judge.notes
        for number, other in self._judge._seen.items():
            late = other.passed_at is not None and other.passed_at > at
            if ordinals and number > writer.number and late:
                self._wrong(
                    f"process {writer.number} opens the budget on what it read before process {number} took over"
                )
        notes["openings"] += bool(ordinals)
        for ordinal in ordinals:
            lost = self._lost(seen, ordinal)
            if lost is None:
                self._wrong(f"process {writer.number} opens the budget for {ordinal} without two looks")
            elif lost:
                self._wrong(f"process {writer.number} opens the budget for {ordinal}, and no other pod has {lost}")
            elif (why := self._known_against(writer, ordinal)) is not None:
                self._wrong(f"process {writer.number} opens the budget for {ordinal}, {why}")

    def _known_against(self, writer: Process, ordinal: int) -> str | None:
        """Which fact that it held speaks against the eviction of a pod that takes part."""
        run, judge = self._nodes.alive().get(ordinal), self._judge
        if run is None or run.joined_at is None:
            return None  # an idle pod takes nothing away
        judged_at = judge._of(writer).statefulset_at
        return judge._memories.against(writer, frozenset({ordinal}), judged_at, asks_copies=True)

    def _lost(self, seen: Seen, ordinal: int) -> str | None:
        """What two looks show to be lost with a pod; None: there are no two."""
        run = self._nodes.alive().get(ordinal)
        if run is None or run.joined_at is None:
            return ""  # an idle pod takes nothing away
        pairs = self._judge._fitting(seen.looks, seen.statefulset_at)
        if not pairs:
            return None
        lost = [self._lost_by(seen, later, earlier, ordinal) for later, earlier in pairs]
        least: set[str] = min(lost, key=len)
        return ", ".join(sorted(least))

    def _lost_by(self, seen: Seen, later: Look, earlier: Look, ordinal: int) -> set[str]:
        going, at = frozenset({ordinal}), seen.statefulset_at
        lost = self._judge._lost(later, earlier, going, seen.containers, at, is_removal=False)
        return lost - {"the tasks that it holds"}

    def _wrong(self, what: str) -> None:
        self._judge.findings.wrongs.append(f"{self._loop.time():.2f} s: evictions: {what}")


class DrainJudge:
    """Of availability."""

    def __init__(self, evictor: Evictor, board: Switchboard, judge: Judge, loop: asyncio.AbstractEventLoop) -> None:
        self._evictor, self._board, self._judge, self._loop = evictor, board, judge, loop

    def look(self, restores: float) -> None:
        """Blame a drain that takes too long where nothing went wrong."""
        for drain in self._evictor.drains:
            seconds = self._loop.time() - drain.began
            if not self._board.hits.total() and seconds > EMPTY_WITHIN * drain.pods + restores:
                what = f"node-{drain.nodes[0]} is not empty after {seconds:.0f} s"
                self._judge.findings.wrongs.append(f"{self._loop.time():.2f} s: evictions: {what}")


def evictable(budget: Json, ordinals: set[int]) -> set[int]:
    """The ordinals that a budget lets be evicted."""
    if budget["spec"].get("maxUnavailable") != 0:
        return ordinals
    left_out = budget["spec"]["selector"].get("matchExpressions", ())
    return ordinals & {int(name.rpartition("-")[2]) for one in left_out for name in one["values"]}
