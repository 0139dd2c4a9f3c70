"""The judge of a StreamApp whose group has the streams protocol: what the brokers really did, and the group's setting.

A removal or a restart is judged twice. By the looks before it, as everywhere: somebody who remains has each task. And
by what became of it: when the members that went have left, the coordinator has given no task to a process without a
copy that is caught up, unless somebody else came or went, or another hand changed the setting meanwhile.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamapp.api.names import HOLD_RECORD
from streamapp.core.facts.ids import ProcessId, TaskId
from tests.prove.calls import Process
from tests.prove.group import Member
from tests.prove.judge import APART, APART_BY_AGENTS, FRESH, Judge, Look, Seen
from tests.prove.streams.broker_assignor import deal_by_broker
from tests.prove.streams.coordinator import StreamsGroup
from tests.prove.streams.setting_writes import Allowed, Meaning, Raised, Write, allowed_after
from tests.prove.streams.truth import Share

Json = dict[str, Any]
SETTING = 9
"""The guarantee that the group's setting is put back, and that what another hand set is left alone."""
LONGEST = 125.0
"""Seconds between two readings that still belong together."""
KNOWN_AFTER = 0.31
"""Seconds after which each broker knows a setting; a process that reads it then, and looks again, goes by it."""
LATE = ("freeze", "timeout", "api-slow", "leader", "standby")
"""Faults by which a write, or a look, comes late."""
LONGEST_FREEZE = 45.0
ORDERS = 200
"""Orders of ties that are tried where a hold lasts for ever."""
COLD = {"WouldMoveCold", "NoLearners", "LearnersMissing"}
LATE_PAUSE = 25.0
"""Seconds into a pause after which the setting must be as its users have it, where nothing goes wrong."""


@dataclass(frozen=True, slots=True)
class Departure:
    """Members that go by a write of the operator, as it was when that was made."""

    what: str
    going: frozenset[str]
    listed: frozenset[str]
    good: Mapping[TaskId, frozenset[ProcessId]]
    """The processes that had a copy within the limit, on whichever terms."""


class StreamsJudge(Judge):
    """Of one StreamApp in one story."""

    def __init__(self, *around: Any) -> None:
        super().__init__(*around)
        assert isinstance(self._group, StreamsGroup)
        self._streams: StreamsGroup = self._group
        self._streams.set_by_hand.append(self._set_by_hand)
        self._streams.set_by_operator.append(self._set_by_operator)
        self._streams.assigned.append(self._assigned)
        self._departures: list[Departure] = []
        self._first_setting = self._streams.truth.setting
        self._writes: list[Write] = []
        """Of the setting, by operators and other hands."""
        self._read_at: dict[int, list[float]] = {}
        """When each process read the setting."""
        self._streams.read_by_operator.append(self._read_by_operator)
        self._paused_at: float | None = None

    # Removals and restarts.

    def looked(self, process: Process) -> None:
        """Remember the truth as it is now; ask of the setting during a pause."""
        super().looked(process)
        is_late = self._paused_at is not None and self._now() - self._paused_at > LATE_PAUSE
        if is_late and not self._board.hits.total() and not self._is_put_back():
            self.wrong(SETTING, f"{self._streams.truth.setting} standbys are left in a pause")

    def _fitting(self, looks: Sequence[Look], judged_at: float) -> list[tuple[Look, Look]]:
        """Two words of the agents about a settled group that was the same ten seconds before; no join lies between."""
        stable = [look for look in looks if look.is_stable]
        return [
            (later, earlier)
            for later in stable
            if judged_at - later.at <= FRESH and any(_is_same(later, one) for one in stable)
            for earlier in stable
            if APART_BY_AGENTS <= later.at - earlier.at <= LONGEST and earlier.held == later.held
        ]

    def _given(self, member: Member) -> frozenset[TaskId]:
        """What the coordinator has given it: its process takes that up at the answer to its heartbeat, a little later.

        A group can be settled before that, where nobody had to give anything up. What the process really has by then is
        asked of the copies.
        """
        held = self._streams.truth.placed[member.id].held
        return held.active | held.standby

    def _good_copies(self, task: TaskId) -> list[tuple[int, str, float]]:
        shown = self._shown_containers()
        truth = self._streams.truth
        return [
            (member.run.ordinal, member.run.id, self._now())
            for member in self._listed()
            if member.run is not None
            if member.is_alive or member.run.id in shown
            if task in member.running
            or (task in member.standby and truth.lag(member.run.volume, task) <= truth.shape.limit)
        ]

    def _by_coverage(self, what: str, seen: Seen, going: frozenset[int], *, is_removal: bool) -> None:
        truth = self._streams.truth
        if not is_removal and not truth.used and not self._is_on_demand():
            self.notes["restarted without learners"] += 1
            return
        super()._by_coverage(what, seen, going, is_removal=is_removal)
        self._streams.advance()
        known = [look for look in seen.looks if look.is_stable and seen.statefulset_at - look.at <= FRESH]
        is_known = any(look.generation == truth.generation for look in known)
        # The brokers assign by the new setting, and the operator judged by the one that it read.
        if not is_known or self._allowed.by_hand_at + KNOWN_AFTER > max(look.at for look in known):
            self.notes["overtaken"] += 1
            return
        members = [member for member in self._listed() if member.run is not None and member.run.ordinal in going]
        good = {task: frozenset(self._within_limit(task)) for task in self._streams.tasks}
        ids = frozenset(member.id for member in members)
        self._departures.append(Departure(what, ids, frozenset(truth.members), good))

    def _is_on_demand(self) -> bool:
        app = self._store.get("streamapps", *self._place) or {"spec": {}}
        return bool(app["spec"].get("learners", {}).get("source") == "OnDemand")

    def _within_limit(self, task: TaskId) -> list[ProcessId]:
        truth = self._streams.truth
        return [
            member.process_id
            for member in self._listed()
            if member.run is not None
            if task in member.running or truth.lag(member.run.volume, task) <= truth.shape.limit
        ]

    def _assigned(self, listed: frozenset[str], before: Mapping[str, Share]) -> None:
        """The coordinator has assigned anew."""
        left = []
        for one in self._departures:
            gone = one.listed - listed
            if not listed <= one.listed or not gone <= one.going:
                self.notes["overtaken"] += 1
                continue
            cold = self._cold(one, before) if gone else []
            if cold:
                self.wrong(1, f"{one.what}, and then {', '.join(cold)}")
            elif one.going <= gone:
                self.notes["departures seen to their ends"] += 1
            else:
                left.append(one)
        self._departures = left

    def _cold(self, departure: Departure, before: Mapping[str, Share]) -> list[str]:
        truth = self._streams.truth
        owners = {task: truth.members[name].process_id for name, one in before.items() for task in one.active}
        return [
            f"{task} goes to {member.id} without a copy"
            for member in truth.members.values()
            if member.is_alive
            for task in sorted(truth.targets[member.id].active)
            if owners.get(task) != member.process_id
            if member.process_id not in departure.good[task] and self._is_far(member, task)
        ]

    def _is_far(self, member: Member, task: TaskId) -> bool:
        truth = self._streams.truth
        return member.run is not None and truth.lag(member.run.volume, task) > truth.shape.limit

    def held_for_good(self, status: Json, outdated: Sequence[int]) -> int | None:
        """The first pod that is kept since the broker would move its tasks cold, if in truth it could."""
        live = self._store.get("statefulsets", *self._place) or {"spec": {"replicas": 0}}
        conditions = {one["type"]: one for one in status.get("conditions", ())}
        kept = [
            *([live["spec"]["replicas"] - 1] if _is_cold(conditions.get("ScaleDownHeld", {})) else []),
            *(outdated if _is_cold(conditions.get("Reconciling", {})) else []),
        ]
        self._streams.advance()
        return kept[0] if kept and all(self._could_be_cold(ordinal) for ordinal in kept) else None

    def _could_be_cold(self, ordinal: int) -> bool:
        """Whether, with any ties, the coordinator could give a task to a process without a copy."""
        truth = self._streams.truth
        staying = [member for member in self._listed() if member.run is not None and member.run.ordinal != ordinal]
        for order in range(ORDERS if staying else 0):
            before = {member.id: truth.targets.get(member.id, Share()) for member in staying}
            dealt = deal_by_broker(self._streams.tasks, staying, before, truth.used, f"tried {order}")
            for member in staying:
                new = dealt[member.id].active - before[member.id].active
                if any(member.process_id not in self._within_limit(task) for task in new):
                    return True
        return not staying

    # The setting of the group.

    @property
    def _allowed(self) -> Allowed:
        return allowed_after(self._first_setting, self._writes)

    def _set_by_hand(self, standbys: int | None) -> None:
        self.notes["set by another hand"] += 1
        self.visited.add(f"guarantee {SETTING}")
        self._writes.append(Write(self._now(), standbys, self._raised()))
        self._departures.clear()

    def _set_by_operator(self, process: Process, standbys: int | None) -> None:
        self.visited.add(f"guarantee {SETTING}")
        record, is_late = self._raised(), self._is_hand_unseen(process)
        write = Write(self._now(), standbys, record, is_by_operator=True, is_late=is_late)
        meaning = self._allowed.meaning(write)
        self._writes.append(write)
        self.notes["standbys put back"] += meaning is Meaning.PUT_BACK
        self.notes["standbys raised"] += meaning in {Meaning.RAISE, Meaning.LATE_RAISE}
        self.notes["overtaken"] += meaning in {Meaning.HANDS_OWN, Meaning.LATE_RAISE}
        if meaning is Meaning.WRONG:
            current = self._streams.truth.setting
            self.wrong(SETTING, f"process {process.number} sets {standbys} standbys for {current}, on record: {record}")

    def _read_by_operator(self, process: Process) -> None:
        self._read_at.setdefault(process.number, []).append(self._now())

    def _is_hand_unseen(self, process: Process) -> bool:
        """Whether another hand wrote after the last chance to see it; a process that froze saw nothing."""
        looks = self._of(process).looks
        last = looks[-1].at if looks else float("-inf")
        by_hand_at = self._allowed.by_hand_at
        is_known = any(by_hand_at + KNOWN_AFTER < at < last for at in self._read_at.get(process.number, ()))
        is_late = any(what.startswith(LATE) for what in self._board.hits)
        if is_known and not (is_late and self._now() - by_hand_at <= LONGEST_FREEZE):
            return False
        return by_hand_at > 0

    def _raised(self) -> Raised | None:
        """What the hold record says of the setting."""
        live = self._store.get("statefulsets", *self._place)
        text = "{}" if live is None else live["metadata"].get("annotations", {}).get(HOLD_RECORD, "{}")
        found: Json | None = json.loads(text).get("standbys")
        return None if found is None else Raised(found.get("before"), found["to"])

    def _own_changed(self, plural: str, body: Json, before: Json | None) -> None:
        super()._own_changed(plural, body, before)
        if plural == "streamapps" and body:
            is_paused = body["spec"].get("paused", False)
            self._paused_at = None if not is_paused else self._now() if self._paused_at is None else self._paused_at

    def rest(self) -> tuple[tuple[str, Callable[[], object]], ...]:
        """The setting is as its users have it."""
        return (("the group's standbys are not put back", self._is_put_back),)

    def is_left_well(self) -> bool:
        """The same of a StreamApp that was deleted; where the operator was disturbed, only its log can tell."""
        return self._is_put_back() or bool(self._board.hits.total())

    def _is_put_back(self) -> bool:
        return self._streams.truth.setting in self._allowed.accepted


def _is_cold(condition: Json) -> bool:
    return condition.get("status") == "True" and condition.get("reason") in COLD


def _is_same(later: Look, earlier: Look) -> bool:
    return APART <= later.at - earlier.at <= LONGEST and earlier.held == later.held
