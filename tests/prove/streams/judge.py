"""The judge of a StreamApp whose group has the streams protocol: what the brokers really did, and the group's setting.

A removal or a restart is judged twice. By the looks before it, as everywhere: somebody who remains has each task. And
by what became of it: when the members that went have left, the coordinator has given no task to a process without a
copy that is caught up, unless somebody else came or went, or another hand changed the setting meanwhile.
"""

import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamapp.api.names import HOLD_RECORD
from streamapp.core.facts.agent_reports import AgentReply
from streamapp.core.facts.ids import ProcessId, TaskId
from tests.kube.object_store import Request
from tests.prove.calls import Process
from tests.prove.group import Group, Member
from tests.prove.judge import Judge
from tests.prove.looks import APART, APART_BY_AGENTS, FRESH, Look, Seen
from tests.prove.streams import by_word
from tests.prove.streams.broker_assignor import deal_by_broker
from tests.prove.streams.coordinator import StreamsGroup
from tests.prove.streams.setting_writes import Allowed, Meaning, Raised, Write, allowed_after
from tests.prove.streams.truth import MOST_STANDBYS, Share

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
        self._streams.not_described_to.append(self._hears_nothing)
        self._board.heard.append(self._hears)
        self._paused_at: float | None = None
        self._dealt: dict[Hashable, list[set[tuple[ProcessId, TaskId]]]] = {}
        """By members and their targets: what each order of ties that was tried would give anew."""

    # Removals and restarts.

    def read(self, process: Process, request: Request, answer: Json, *, is_stale: bool) -> None:
        """Remember what the API server told; of pods also which were ready."""
        super().read(process, request, answer, is_stale=is_stale)
        if request.plural == "pods" and not request.is_write:
            self._of(process).ready = None if is_stale else by_word.shown_ready(answer["items"])

    def _hears_nothing(self, process: Process) -> None:
        self._of(process).undescribed_at = self._now()

    def _by_memory(self, what: str, writer: Process, going: frozenset[int], *, asks_copies: bool) -> None:
        if not by_word.is_blind(self._of(writer)):
            super()._by_memory(what, writer, going, asks_copies=asks_copies)

    def _goes_by_word(self, *, is_removal: bool) -> bool:
        """Whether a user's word lets the pods go without copies, as the spec has it."""
        return (not is_removal or self.holds.is_forced) and by_word.is_given(self._app(), is_removal=is_removal)

    def _by_word_alone(self, what: str, seen: Seen, going: frozenset[int], *, is_removal: bool) -> None:
        """Guarantees 1 and 4, where nobody could know a task."""
        live = self._store.get("statefulsets", *self._place) or {"spec": {"replicas": 0}}
        replicas = max(going) + 1 if is_removal else live["spec"]["replicas"]
        self.notes["by a word alone"] += 1
        why = by_word.wrong_with(
            self._nodes, seen, going, replicas, is_removal=is_removal, keeps_claim=self._claims.taken
        )
        if why is not None:
            self.wrong(1, f"{what}, {why}")

    def _lost(
        self,
        later: Look,
        earlier: Look,
        going: frozenset[int],
        running: frozenset[str] | None,
        seen_at: float,
        *,
        is_removal: bool,
    ) -> set[str]:
        """As everywhere; but no copies, if a user lets the pod restart without."""
        lost = super()._lost(later, earlier, going, running, seen_at, is_removal=is_removal)
        is_waived = not is_removal and self._goes_by_word(is_removal=False)
        return lost - {str(task) for task in self._streams.tasks} if is_waived else lost

    def looked(self, process: Process) -> None:
        """Remember the truth as it is now; ask of the setting during a pause."""
        super().looked(process)
        is_late = self._paused_at is not None and self._now() - self._paused_at > LATE_PAUSE
        if is_late and not self._board.hits.total() and not self._is_put_back():
            self.wrong(SETTING, f"{self._streams.truth.setting} standbys are left in a pause")

    def _fitting(
        self,
        looks: Sequence[Look],
        judged_at: float,
        *,
        asks_copies: bool = True,  # noqa: ARG002 (agents tell copies, so no join is asked for)
    ) -> list[tuple[Look, Look]]:
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

    def _good_copies(self) -> Callable[[TaskId], list[tuple[int, str, float]]]:
        truth, now, members = self._streams.truth, self._now(), self._shown_members()

        def of(task: TaskId) -> list[tuple[int, str, float]]:
            return [
                (run.ordinal, run.id, now)
                for member, run in members
                if task in member.running
                or (task in member.standby and truth.lag(run.volume, task) <= truth.shape.limit)
            ]

        return of

    def _by_coverage(self, what: str, seen: Seen, going: frozenset[int], *, is_removal: bool) -> None:
        goes_by_word = self._goes_by_word(is_removal=is_removal)
        if goes_by_word and by_word.is_blind(seen):
            self._by_word_alone(what, seen, going, is_removal=is_removal)
            return
        if not is_removal and not goes_by_word and self._is_cold_restart():
            self.notes["restarted without learners"] += 1
            return
        super()._by_coverage(what, seen, going, is_removal=is_removal)
        if goes_by_word:
            return  # whoever has no copy may get a task then
        truth = self._streams.truth
        self._streams.advance()
        known = [look for look in seen.looks if look.is_stable and seen.statefulset_at - look.at <= FRESH]
        is_known = any(look.generation == truth.generation for look in known)
        # The brokers assign by the new setting, and the operator judged by the one that it read.
        if not is_known or self._allowed.by_hand_at + KNOWN_AFTER > max(look.at for look in known):
            self.notes["overtaken"] += 1
            return
        members = [member for member in self._listed() if member.run is not None and member.run.ordinal in going]
        good = {
            task: frozenset((*self._within_limit(task), *self._lost_unheard(task, seen)))
            for task in self._streams.tasks
        }
        ids = frozenset(member.id for member in members)
        self._departures.append(Departure(what, ids, frozenset(truth.members), good))

    def _before_the_rollout(self, seen: Seen, was: int, now: int) -> str | None:  # noqa: ARG002 (of members that assign)
        """Nothing: pods that leave can go first where brokers would move the tasks of each restart cold.

        What becomes of the tasks is asked of the coordinator.
        """
        return None

    def _is_cold_restart(self) -> bool:
        return not self._streams.truth.used and not self._is_on_demand()

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

    def _hears(self, process: Process, group: Group, _: Sequence[AgentReply]) -> None:
        if group is self._group:
            self._of(process).heard_at = self._now()

    def _lost_unheard(self, task: TaskId, seen: Seen) -> Iterator[ProcessId]:
        """The processes that lost their copy when no agent was asked any more: nobody could know."""
        lost_at = self._streams.lost_at
        return (process for (process, lost), at in lost_at.items() if lost == task and at > seen.heard_at)

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
        """As elsewhere; or the first pod that is kept since the broker would move its tasks cold, if it can."""
        too_few = super().held_for_good(status, outdated)
        if too_few is not None:
            return too_few
        live = self._store.get("statefulsets", *self._place) or {"spec": {"replicas": 0}}
        conditions = {one["type"]: one for one in status.get("conditions", ())}
        kept = [
            *([live["spec"]["replicas"] - 1] if _is_cold(conditions.get("ScaleDownHeld", {})) else []),
            *(outdated if _is_cold(conditions.get("Reconciling", {})) else []),
        ]
        self._streams.advance()
        if not kept or self._can_be_raised(live["spec"]["replicas"]):
            return None
        return kept[0] if all(self._could_be_cold(ordinal) for ordinal in kept) else None

    def _can_be_raised(self, replicas: int) -> bool:
        """Whether the operator can still ask for another standby, so that nobody has to give up."""
        used, is_by_hand = self._streams.truth.used, self._allowed.by_hand_at >= 0
        return self._is_on_demand() and not is_by_hand and used < MOST_STANDBYS and replicas > used + 1

    def _could_be_cold(self, ordinal: int) -> bool:
        """Whether, with any ties, the coordinator could give a task to a process without a copy."""
        staying = [member for member in self._listed() if member.run is not None and member.run.ordinal != ordinal]
        good = {task: frozenset(self._within_limit(task)) for task in self._streams.tasks}
        return not staying or any(process not in good[task] for process, task in self._dealt_anew(staying))

    def _dealt_anew(self, staying: Sequence[Member]) -> Iterator[tuple[ProcessId, TaskId]]:
        """The tasks that a process would be given, with any ties, if these members alone were there.

        A hold that lasts is asked about twice a second. So what was dealt is kept while members and targets are those.
        """
        truth = self._streams.truth
        before = {member.id: truth.targets.get(member.id, Share()) for member in staying}
        shares = ((one.id, one.process_id, before[one.id].active, before[one.id].standby) for one in staying)
        asked = truth.used, tuple(shares)
        dealt = self._dealt.setdefault(asked, [])
        yield from (one for order in dealt for one in order)
        for order in range(len(dealt), ORDERS):
            given = deal_by_broker(self._streams.tasks, staying, before, truth.used, f"tried {order}")
            new = {(one.process_id, task) for one in staying for task in given[one.id].active - before[one.id].active}
            dealt.append(new)
            yield from new

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
        record = self._raised()
        is_late = self._is_hand_unseen(process) or (self._is_record_deleted() and self._was_frozen())
        write = Write(self._now(), standbys, record, is_by_operator=True, is_late=is_late)
        meaning = self._allowed.meaning(write)
        self._writes.append(write)
        self.notes["standbys put back"] += meaning is Meaning.PUT_BACK
        self.notes["standbys raised"] += meaning in {Meaning.RAISE, Meaning.LATE_RAISE}
        self.notes["overtaken"] += meaning in {Meaning.HANDS_OWN, Meaning.LATE_RAISE}
        if meaning is Meaning.WRONG:
            current = self._streams.truth.setting
            self.wrong(SETTING, f"process {process.number} sets {standbys} standbys for {current}, on record: {record}")

    def _is_record_deleted(self) -> bool:
        """Of a deleted StreamApp nothing is left that could tell a process that froze before it sent a raise.

        The record goes with the StatefulSet, the StreamApp itself later where its deletion waits for its dependents.
        """
        app = self._store.get("streamapps", *self._place)
        if app is None:
            return True
        return "deletionTimestamp" in app["metadata"] and self._store.get("statefulsets", *self._place) is None

    def _was_frozen(self) -> bool:
        return any(what.startswith("freeze") for what in self._board.hits)

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
        return _raised_by(self._store.get("statefulsets", *self._place))

    def _own_changed(self, plural: str, body: Json, before: Json | None) -> None:
        super()._own_changed(plural, body, before)
        if plural == "statefulsets" and body:
            self._planned(_raised_by(body), _raised_by(before))
        if plural == "streamapps" and body:
            is_paused = body["spec"].get("paused", False)
            self._paused_at = None if not is_paused else self._now() if self._paused_at is None else self._paused_at

    def _planned(self, record: Raised | None, before: Raised | None) -> None:
        """A raise goes on record, before it is sent."""
        writer = self._board.writer
        if writer is None or record is None or (before is not None and before.to == record.to):
            return
        is_late = self._is_hand_unseen(writer)
        self._writes.append(
            Write(self._now(), record.to, record, is_by_operator=True, is_late=is_late, is_planned=True)
        )

    def rest(self) -> tuple[tuple[str, Callable[[], object]], ...]:
        """The setting is as its users have it."""
        return (("the group's standbys are not put back", self._is_put_back),)

    def is_left_well(self) -> bool:
        """The same of a StreamApp that was deleted; where the operator was disturbed, only its log can tell."""
        return self._is_put_back() or bool(self._board.hits.total())

    def _is_put_back(self) -> bool:
        return self._streams.truth.setting in self._allowed.accepted


def _raised_by(statefulset: Json | None) -> Raised | None:
    text = "{}" if statefulset is None else statefulset["metadata"].get("annotations", {}).get(HOLD_RECORD, "{}")
    found: Json | None = json.loads(text).get("standbys")
    return None if found is None else Raised(found.get("before"), found["to"])


def _is_cold(condition: Json) -> bool:
    return condition.get("status") == "True" and condition.get("reason") in COLD


def _is_same(later: Look, earlier: Look) -> bool:
    return APART <= later.at - earlier.at <= LONGEST and earlier.held == later.held
