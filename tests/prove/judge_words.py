"""The judge of what a process says is over: that the application has converged, and that a step has ended.

Users and their pipelines go on when they read `Converged=True`, and the next pod goes when the record has no step any
more. So neither is said unless it was so at one of that process's looks at the group just before: the group was stable
and every task ran in one place; for `Converged`, no rebalance was due either.
"""

import json
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Any

from streamapp.api.names import HOLD_RECORD
from streamapp.core.facts.group import GroupState
from tests.prove.calls import Process
from tests.prove.group import GroupTruth
from tests.prove.judge import Judge
from tests.prove.looks import FRESH
from tests.prove.streams import by_word

Json = dict[str, Any]
SOON = 3.0
"""Seconds from a look to the word that rests on it, where nobody stands still and the API server is not slow."""
LONGEST_FREEZE = 45.0
"""Seconds that a process stands still in a story, at most: what it says as it wakes up was so before."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What was missing at the moment when a process looked at the group."""

    at: float
    """The world's clock, in seconds."""
    for_the_end_of_a_step: str
    """Empty: nothing."""
    for_convergence: str
    ordinals: frozenset[int]
    """Whose members are listed, dead or alive."""
    shows_mismatch: bool
    """A container that is alive runs as another process than its volume has on record, and the brokers tell it: they
    tell nobody's process ID while the group rebalances."""


class WordJudge:
    """Of one StreamApp in one story."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._sights: dict[int, deque[Sight]] = defaultdict(lambda: deque(maxlen=90))
        """By the number of each process, the oldest first."""
        judge._store.changed.append(self._changed)

    def looked(self, process: Process) -> None:
        """Remember what is missing now."""
        truth, tasks = self._judge._group.truth, list(self._judge._group.tasks)
        members = truth.members.values()
        missing = (
            (truth.state is not GroupState.STABLE, "the group is not stable"),
            (
                sorted(task for member in members for task in truth.given_to(member)) != tasks,
                "a task is not in one place",
            ),
            (not self._runs(tasks), "a task does not run"),
            (truth.follow_up and not _only_looks_again(truth), "a rebalance is due"),
        )
        found = [what for is_missing, what in missing if is_missing]
        # A single member cannot be asked by a join: its step ends when it was given all tasks.
        unasked = {"a rebalance is due", *(("a task does not run",) if len(members) == 1 else ())}
        of_step = next((what for what in found if what not in unasked), "")
        ordinals = frozenset(member.run.ordinal for member in members if member.run is not None)
        is_other = not all(self._judge._is_itself(member) for member in self._judge._listed() if member.is_alive)
        is_shown = is_other and truth.state is GroupState.STABLE
        sight = Sight(self._judge._now(), of_step, next(iter(found), ""), ordinals, is_shown)
        self._sights[process.number].append(sight)

    def _runs(self, tasks: list[Any]) -> bool:
        """Whether every task runs once, in a container that is alive or that its kubelet still says is."""
        return sorted(task for member, _ in self._judge._shown_members() for task in member.running) == tasks

    def _changed(self, plural: str, body: Json, before: Json | None) -> None:
        writer = self._judge._board.writer
        if writer is None or not body or before is None or not self._judge._nodes.is_own(plural, body):
            return
        if plural == "streamapps" and body.get("status") != before.get("status"):
            self._says(writer, body["status"])
        if plural == "statefulsets" and "step" in _record(before) and "step" not in _record(body):
            self._closes(writer, body, _record(before)["step"])
        if plural == "statefulsets" and body["spec"]["replicas"] < before["spec"]["replicas"]:
            self._removes(writer)

    def _says(self, writer: Process, status: Json) -> None:
        if not any(one["type"] == "Converged" and one["status"] == "True" for one in status.get("conditions", ())):
            return
        self._judge.notes["said to have converged"] += 1
        missing = [sight.for_convergence for sight in self._just_seen(writer)]
        # What rests on an older look is counted only: no promise says how old the facts of a status may be.
        self._judge.notes["said on an old look"] += not missing
        if missing and all(missing):
            self._judge.wrong(8, f"process {writer.number} says it has converged, although {_last(missing)}")

    def _closes(self, writer: Process, statefulset: Json, step: Json) -> None:
        replicas, seen = statefulset["spec"]["replicas"], self._judge._of(writer)
        if replicas == 0:
            return  # (no pod is left that could run a task)
        self._judge.notes["steps closed"] += 1
        sights = self._just_seen(writer)
        if "forced" in step and by_word.is_blind(seen):
            why = by_word.wrong_with_the_end_of_a_step(self._judge._nodes, seen, replicas, step)
            # By now brokers may describe who is left again: the step ends as every other one then.
            since = [sight for sight in sights if sight.at > seen.undescribed_at]
            if why is not None and all(_missing(since, replicas)):
                self._judge.wrong(8, f"process {writer.number} says the step has ended, {why}")
            return
        missing = _missing(sights, replicas)
        if all(missing):
            self._judge.wrong(8, f"process {writer.number} says the step has ended, although {_last(missing)}")

    def _removes(self, writer: Process) -> None:
        """A mismatch holds every scale-down, also of pods that never ran."""
        seen = self._just_seen(writer)
        if seen and all(sight.shows_mismatch for sight in seen):
            self._judge.wrong(5, f"process {writer.number} takes pods while one runs as another process")

    def _just_seen(self, writer: Process) -> list[Sight]:
        """The looks that its word can rest on: those of the last seconds, and the last one before them."""
        now, board, sights = self._judge._now(), self._judge._board, self._sights[writer.number]
        if any("freeze" in what for what in board.hits):
            return [sight for sight in sights if now - sight.at <= FRESH + LONGEST_FREEZE]
        within = SOON + 4 * board.slowest(now - FRESH)
        since = max((sight.at for sight in sights if now - sight.at > within), default=now)
        return [sight for sight in sights if now - sight.at <= within or (sight.at == since and now - since <= FRESH)]


def _missing(sights: list[Sight], replicas: int) -> list[str]:
    """What each look lacks for the end of a step that left so many replicas; empty: nothing."""
    return [
        "a member of a pod that went is listed"
        if max(sight.ordinals, default=0) >= replicas
        else sight.for_the_end_of_a_step
        for sight in sights
    ]


def _last(missing: list[str]) -> str:
    return missing[-1] if missing else f"it has not looked for {FRESH:g} s"


def _only_looks_again(truth: GroupTruth) -> bool:
    """Whether the leader of the last rebalance had nothing to move and nobody to teach, and only looks again."""
    led = [agent.led for agent in truth.agents.values() if agent.led is not None]
    last = max(led, key=lambda one: one.at, default=None)
    return truth.shape.on_demand and last is not None and not last.moved and not last.learning


def _record(statefulset: Json) -> Json:
    record: Json = json.loads(statefulset["metadata"].get("annotations", {}).get(HOLD_RECORD, "{}"))
    return record
