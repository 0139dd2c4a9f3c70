"""The judge: knows what is true, never what an operator believes, and holds the guarantees against every write.

It shares no rule with the product. What it asks of a removal is asked about the truth as it was when that process last
looked, twice: a world that has moved on since the last chance to look is nobody's fault, and is counted, not blamed.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamapp.api.names import HOLD_RECORD
from streamapp.core.facts.containers import MemberKey
from streamapp.core.facts.group import GroupState
from streamapp.core.facts.ids import ProcessId, TaskId
from tests.kube.object_store import ObjectStore, Request
from tests.prove.bare.judge import tasks_away
from tests.prove.calls import Process, Switchboard
from tests.prove.group import Group, GroupTruth, Member, Run
from tests.prove.holds.judge import HoldJudge
from tests.prove.judge_claims import JUDGEMENT, ClaimJudge, misrecorded, recorded
from tests.prove.judge_memory import MemoryJudge
from tests.prove.judge_raises import RaiseJudge
from tests.prove.kubelet import Nodes
from tests.prove.looks import FRESH, Floors, Look, Seen, fitting_pairs, smallest
from tests.prove.nodes_truth import SIDECAR
from tests.prove.scene import must_wait

Json = dict[str, Any]
AT_ONCE = 0.15
"""Seconds from the last live reads to the write: what a user says within them comes too late."""
POSITIONS = 60.0 + FRESH
"""Seconds that a copy may have been good by the word of a join: positions of 60 s, and the time of a look."""
A_TASK = 64 << 20
"""Bytes that a copy of a task takes in the memory of its container, in scenes in which that matters."""


@dataclass(slots=True)
class Findings:
    """What was found in a story, by whatever judge."""

    wrongs: list[str] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    """What happened: grants, removals, evictions, cancels, and removals that the world overtook."""
    visited: set[str] = field(default_factory=set)
    """Reasons, cells of the state table and guarantees at stake."""


class Judge:
    """Of one StreamApp in one story."""

    def __init__(
        self,
        store: ObjectStore,
        group: Group,
        nodes: Nodes,
        board: Switchboard,
        now: Callable[[], float],
        findings: Findings,
    ) -> None:
        self.findings, self.key = findings, nodes.key
        self.notes, self.visited = findings.notes, findings.visited
        self._place = nodes.key.namespace, nodes.key.name
        self._store, self._group, self._nodes, self._board, self._now = store, group, nodes, board, now
        self._seen: dict[int, Seen] = {}
        self._claims = ClaimJudge(self._app, now)
        self._claims.said(store.get("streamapps", *self._place) or {"spec": {}})
        self.raises = RaiseJudge(board, now, self.wrong)
        self._memories = MemoryJudge(group, nodes, board, now)
        self.holds = HoldJudge(self._app, lambda: store.get("statefulsets", *self._place), nodes, now)
        self.wished_at = 0.0
        """When the user last changed his mind."""
        self._removed_at = float("-inf")
        store.changed.append(self._changed)

    # What the processes are told.

    def read(self, process: Process, request: Request, answer: Json, *, is_stale: bool) -> None:
        """Remember what the API server told."""
        seen = self._of(process)
        if request.is_write:
            return
        if request.plural == "streamapps" and request.name:
            seen.app_is_stale = is_stale
        if request.plural == "statefulsets":
            seen.statefulset_at = self._now()
        if request.plural == "pods":
            seen.containers = None if is_stale else frozenset(map(_running, answer["items"]))
            seen.ordinals = frozenset(_ordinal(pod) for pod in answer["items"])

    def looked(self, process: Process) -> None:
        """Remember the truth as it is now."""
        truth = self._group.truth
        real, good_copies = self._listed(), self._good_copies()
        held: dict[int, frozenset[TaskId]] = {}
        for member in real:
            ordinal = member.run.ordinal if member.run else -1
            held[ordinal] = held.get(ordinal, frozenset()) | self._given(member)
        look = Look(
            at=self._now(),
            generation=truth.generation,
            is_stable=truth.state is GroupState.STABLE,
            good={task: frozenset(good_copies(task)) for task in self._group.tasks},
            held=held,
            members=frozenset(held),
            identities_hold=all(self._is_itself(member) for member in real if member.is_alive),
        )
        self._of(process).looks.append(look)

    def evicts(self, process: Process, members: Sequence[MemberKey]) -> None:
        """Guarantee 7: a live member is never evicted."""
        for key in members:
            member = self._group.truth.members.get(key.id)
            if member is None:
                continue
            self.notes["ghosts put out" if member.run is None else "evictions"] += 1
            self.visited.add("guarantee 7")
            if member.is_alive:
                self.wrong(7, f"process {process.number} evicts {key.id}, which is alive")

    def announces(self, process: Process, named: frozenset[ProcessId]) -> None:
        """Never is everybody told to leave, or somebody would have nowhere to go."""
        self.notes["announcements"] += 1
        alive = {member.process_id for member in self._listed() if member.is_alive}
        listed = {member.process_id for member in self._listed()}
        if named and named >= listed and alive:
            self.wrong(1, f"process {process.number} tells everybody to leave")

    # What they write.

    def _changed(self, plural: str, body: Json, before: Json | None) -> None:
        if self._nodes.is_own(plural, body or before or {}):
            self._own_changed(plural, body, before)
            self.holds.changed(plural, body)

    def _own_changed(self, plural: str, body: Json, before: Json | None) -> None:
        writer = self._board.writer
        if plural == "persistentvolumeclaims" and not body and before is not None:
            self.notes["claims gone"] += 1
            self.visited.add("guarantee 4")
            if (why := self._claims.vanished(before, is_by_operator=writer is not None)) is not None:
                self.wrong(4, why)
        self._claims.changed(plural, body)
        if writer is not None and plural == "statefulsets" and body:
            self._statefulset(writer, body, before)
        if writer is None or before is None:
            return
        if plural == "streamapps" and body:
            self._note_status(body)
            if body.get("spec") != before.get("spec"):
                self.wrong(6, f"process {writer.number} writes the spec of the StreamApp")
            seen = self._of(writer)
            seen.passed_at = self._now() if seen.passed_at is None else seen.passed_at
        if plural == "persistentvolumeclaims" and body:
            self._claim(body, before)
        if plural == "pods" and (not body or "deletionTimestamp" in body["metadata"]):
            self._restart(writer, before)

    def _note_status(self, body: Json) -> None:
        status = body.get("status", {})
        self.visited.update(f"reason {one['reason']}" for one in status.get("conditions", ()))
        if status.get("statefulSetReplicas") != body["spec"]["replicas"]:
            self.visited.add("guarantee 6")

    def _at_stake(self, *, is_removal: bool) -> None:
        """A pod with tasks goes."""
        self.visited.add("guarantee 1")
        if self._board.hits.total():
            self.visited.add("guarantee 2")
        if is_removal:
            self.visited.update({"guarantee 4", "guarantee 8"})
            if any(what.partition("@")[0] in {"wish", "pause", "dry-run"} for what in self._board.hits):
                self.visited.add("guarantee 3")

    def _statefulset(self, writer: Process, body: Json, before: Json | None) -> None:
        now = body["spec"]["replicas"]
        if before is None:
            self.raises.written(now)  # (of a StreamApp that has waited for a rival's end)
            return
        was = before["spec"]["replicas"]
        if now > was:
            self.notes["grants"] += 1
            self.raises.written(now)
        elif now < was:
            self.notes["removals"] += 1
            self._removal(writer, was, now, body)
            self._board.soon("removal")
        had, has = _record(before), _record(body)
        if "hold" in had and "hold" not in has and "step" not in has:
            self.notes["cancels"] += 1

    def _removal(self, writer: Process, was: int, now: int, body: Json) -> None:
        if self._board.froze_as_it_sent and self.raises.is_alone:
            self.notes["sent before a freeze"] += 1  # no other replica is there, whose record would refuse it
            return
        seen, what = self._of(writer), f"process {writer.number} takes {was} to {now}"
        for number, other in self._seen.items():
            if number > writer.number and other.passed_at is not None and other.passed_at > seen.statefulset_at:
                self.wrong(2, f"{what} on what it read before process {number} took over")
        if seen.statefulset_at < self._removed_at:
            self.wrong(2, f"{what} on what it read before the last removal")
        self._removed_at = self._now()
        self._at_stake(is_removal=True)
        self._by_the_wish(what, seen, now)
        self._by_age(what, seen)
        self._claims.removed(range(now, was), is_late=self._is_too_late(seen))
        never_ran = self._never_ran(frozenset(range(now, was)), seen)
        if "step" not in _record(body) and not never_ran:
            self.wrong(8, f"{what}, and the record does not say so")
        if (why := self.holds.removal(now, _record(body), is_late=self._is_too_late(seen))) is not None:
            self.wrong(1, f"{what}, {why}")
        if not never_ran and (why := self._before_the_rollout(seen, was, now)) is not None:
            self.wrong(1, f"{what}, {why}")
        going, known = frozenset(range(now, was)), seen.ordinals
        if known and max(known) >= was:
            self.wrong(1, f"{what}, although an ordinal of an earlier step is still there: {sorted(known)}")
        app = self._store.get("streamapps", *self._place) or {"spec": {}}
        if never_ran or (now == 0 and app["spec"].get("scaleDown", {}).get("allowZero")):
            # (For the last pod no other can have copies: the user stops the application.)
            return
        self._by_memory(what, writer, going, asks_copies=not self.holds.is_forced)
        self._by_coverage(what, seen, going, is_removal=True)

    def _before_the_rollout(self, seen: Seen, was: int, now: int) -> str | None:
        """What is wrong with a removal down to `now` while pods that stay have an older template.

        Nothing, if those that go do not run: the rollout waits for them.
        """
        going = (run for ordinal, run in self._nodes.alive().items() if now <= ordinal < was)
        if not any(seen.containers is None or run.id in seen.containers for run in going):
            return None
        return self.holds.of_templates(now, is_late=self._is_too_late(seen))

    def _by_age(self, what: str, seen: Seen) -> None:
        """Guarantee 2: a judgement that became old while the server was slow is not sent, even if that is over."""
        age = self._now() - seen.statefulset_at
        if age > JUDGEMENT:
            self.wrong(2, f"{what} on a judgement that is {age:.1f} s old")

    def _by_the_wish(self, what: str, seen: Seen, now: int) -> None:
        """Guarantees 1 and 3: nobody goes below the wish, or on when told to wait, unless told just now."""
        app = self._store.get("streamapps", *self._place) or {"spec": {"paused": True}}
        if self._is_too_late(seen):
            self.notes["told too late"] += app["spec"].get("replicas", 0) > now or must_wait(app["spec"])
            return
        if app["spec"].get("replicas", 0) > now:
            self.wrong(3, f"{what}, although {app['spec']['replicas']} are wished for since {self.wished_at:.2f} s")
        if must_wait(app["spec"]):
            self.wrong(1, f"{what}, although it is paused, invalid or a dry run since {self.wished_at:.2f} s")

    def _is_too_late(self, seen: Seen) -> bool:
        """Whether the user changed something when there was no chance any more to see it."""
        slowness = self._board.slowest(self._now() - JUDGEMENT)
        return seen.app_is_stale or self._now() - self.wished_at <= AT_ONCE + 2 * slowness

    def _by_coverage(self, what: str, seen: Seen, going: frozenset[int], *, is_removal: bool) -> None:
        """Guarantees 1, 2 and 5, on the truth as it was at two looks of that process."""
        running = seen.containers
        asks_copies = not (is_removal and self.holds.is_forced)
        pairs = self._fitting(seen.looks, seen.statefulset_at, asks_copies=asks_copies)
        if not pairs:
            of_joins = " and of two joins" if asks_copies else ""
            self.wrong(2, f"{what} without two looks in a row that are fresh, stable{of_joins}")
            return
        at = seen.statefulset_at
        excused = self.holds.excused(self._group.tasks) if is_removal else frozenset()
        if not all(look.identities_hold for pair in pairs for look in pair):
            self.visited.add("guarantee 5")
        lost = (
            self._lost(later, earlier, going, running, at, is_removal=is_removal) - excused for later, earlier in pairs
        )
        least = smallest(lost)
        if least:
            self.wrong(1, f"{what}, and nobody who remains has {', '.join(sorted(least))}")
        elif not self._are_good_now(going, is_removal=is_removal):
            self.notes["overtaken"] += 1

    def _fitting(self, looks: Sequence[Look], judged_at: float, *, asks_copies: bool = True) -> list[tuple[Look, Look]]:
        """Pairs of looks that a removal may rest on."""
        by_agents = self._group.truth.shape.on_demand
        return fitting_pairs(looks, judged_at, by_agents=by_agents, asks_copies=asks_copies)

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
        """What a removal on these two looks would cost; empty: nothing."""
        lost, floors = set(), self._floors()
        for task in self._group.tasks:
            for look in (later, earlier):
                good = {
                    run
                    for ordinal, run, since in look.good[task]
                    if _remains(ordinal, going, is_removal=is_removal)
                    if look is earlier or seen_at - since <= POSITIONS
                }
                at = {ordinal for ordinal, run, _ in look.good[task] if run in good}
                if not (good if running is None else good & running):
                    lost.add(str(task))
                elif is_removal and floors.are_missed(at, look.members - going):
                    lost.add(f"as many copies of {task} as asked for")
        if len(going) > 1 and any(later.held.get(ordinal) or earlier.held.get(ordinal) for ordinal in going):
            lost.add("one at a time")
        if self._group.truth.shape.on_demand and any(
            later.held.get(ordinal) or earlier.held.get(ordinal) for ordinal in going
        ):
            lost.add("the tasks that it holds")
        if not (later.identities_hold and earlier.identities_hold):
            lost.add("its own process ID")
        return lost

    def _floors(self) -> Floors:
        spec = (self._store.get("streamapps", *self._place) or {}).get("spec", {})
        asked, free = spec.get("scaleDown", {}), self._group.truth.shape.memory
        is_tight = "memoryPerTask" in spec.get("learners", {}) and free < A_TASK
        return Floors(
            copies=asked.get("minCopies", 0),
            zones=asked.get("minZones", 0),
            zone_of=self._nodes.zones,
            is_tight=is_tight,
        )

    def _restart(self, writer: Process, pod: Json) -> None:
        """A rollout's restart, by the rule of a removal; a pod that does not run takes nothing away."""
        if "deletionTimestamp" in pod["metadata"]:
            return
        ordinal = _ordinal(pod)
        self.notes["restarts"] += 1
        seen, what = self._of(writer), f"process {writer.number} restarts {ordinal}"
        self._at_stake(is_removal=False)
        self._by_age(what, seen)
        if (why := self._claims.taken(pod)) is not None:
            self.wrong(4, f"{what}, {why}")
        if not _running(pod) or len(self._nodes.pods()) == 1:
            return
        down = [number for number in seen.ordinals if number != ordinal and number not in self._nodes.alive()]
        if down and seen.containers is not None and len(seen.containers - {""}) < len(seen.ordinals):
            self.wrong(1, f"{what}, although {down} are down")
        self._by_memory(what, writer, frozenset({ordinal}), asks_copies=not self._is_cold_restart())
        if not self._is_cold_restart():
            self._by_coverage(what, seen, frozenset({ordinal}), is_removal=False)
        elif self._group.truth.shape.is_bare and (why := tasks_away(seen, self._group.tasks)) is not None:
            self.wrong(1, f"{what}, {why}")

    def _is_cold_restart(self) -> bool:
        """Whether no other pod can have copies of what a restarted pod has, or its user does not ask for them."""
        spec = (self._store.get("streamapps", *self._place) or {}).get("spec", {})
        return self._group.truth.shape.is_bare or spec.get("rollout", {}).get("policy") == "Immediate"

    def _by_memory(self, what: str, writer: Process, going: frozenset[int], *, asks_copies: bool) -> None:
        """Guarantee 1, on what the process itself knew, and on volumes."""
        judged_at = self._of(writer).statefulset_at
        by_claims, by_memory = self._claims.lost_beside(going), self._memories
        if (why := by_claims or by_memory.against(writer, going, judged_at, asks_copies=asks_copies)) is not None:
            self.wrong(1, f"{what}, {why}")

    def _claim(self, body: Json, before: Json) -> None:
        was, now = recorded(before), recorded(body)
        true = self._nodes.truth.process_ids.get(_ordinal(body))
        if now != was:
            self.visited.add("guarantee 5")
        for guarantee, why in misrecorded(body, before, str(true)):
            self.wrong(guarantee, why)

    def rest(self) -> tuple[tuple[str, Callable[[], object]], ...]:
        """What else must be so where the world is at rest."""
        return ()

    def held_for_good(self, status: Json, outdated: Sequence[int]) -> int | None:  # noqa: ARG002 (of the streams protocol)
        """An ordinal that is kept for ever, as it should be; None: there is none.

        Here: there are no standbys, or the pods that would remain are too few or have too little memory for the user,
        or the group has come to rest with fewer copies there than the user asks for.
        """
        none = {"spec": {"replicas": 0}}
        desired = (self._store.get("streamapps", *self._place) or none)["spec"]["replicas"]
        granted = (self._store.get("statefulsets", *self._place) or none)["spec"]["replicas"]
        floors, stays = self._floors(), set(range(desired))
        is_too_little = self._group.truth.shape.is_bare or floors.is_tight or floors.are_missed(stays, stays)
        is_kept = is_too_little or self._group.rests_below(floors.are_missed, stays)
        return granted - 1 if granted > desired and is_kept else None

    def is_left_well(self) -> bool:
        """Whether nothing is left outside the API server of a StreamApp that was deleted."""
        return True

    def _app(self) -> Json | None:
        return self._store.get("streamapps", *self._place)

    def wrong(self, guarantee: int, what: str) -> None:
        """A guarantee does not hold."""
        whose = f" of {self.key}" if self._board.has_several else ""
        self.findings.wrongs.append(f"{self._now():.2f} s: guarantee {guarantee}{whose}: {what}")

    # The truth.

    def _listed(self) -> list[Member]:
        """The members in own containers; a rival's can be in the group as well."""
        runs = self._nodes.truth.runs
        return [member for member in self._group.listed() if member.run is not None and member.run.id in runs]

    def _given(self, member: Member) -> frozenset[TaskId]:
        """What the brokers show of a member: here its process has it from the same moment on."""
        return frozenset(member.active | member.standby)

    def _good_copies(self) -> Callable[[TaskId], list[tuple[int, str, float]]]:
        """The containers that run a task, or were caught up with it when they joined last and have it as standby.

        One that has just ended counts until its kubelet has said so: the group lists it for longer still, and nobody
        could know. Whether the server showed it when the pods were last listed is asked apart from this.
        """
        shape, now, members = self._group.truth.shape, self._now(), self._shown_members()
        limit = shape.limit

        def of(task: TaskId) -> list[tuple[int, str, float]]:
            return [
                (run.ordinal, run.id, now if task in member.running or shape.on_demand else member.said.at)
                for member, run in members
                if task in member.running or (task in member.standby and member.said.lags.get(task, limit + 1) <= limit)
            ]

        return of

    def _shown_members(self) -> list[tuple[Member, Run]]:
        """Those whose container is alive, or is still shown as running."""
        shown = self._shown_containers()
        listed = ((member, member.run) for member in self._listed())
        return [(one, run) for one, run in listed if run is not None and (run.is_alive or run.id in shown)]

    def _shown_containers(self) -> set[str]:
        """Those that their kubelets say run."""
        return {_running(pod) for pod in self._nodes.pods()}

    def _are_good_now(self, going: frozenset[int], *, is_removal: bool) -> bool:
        """Whether each task has a good copy at this moment on a pod that remains."""
        good_copies = self._good_copies()
        return all(
            any(_remains(ordinal, going, is_removal=is_removal) for ordinal, _, _ in good_copies(task))
            for task in self._group.tasks
        )

    def _never_ran(self, ordinals: frozenset[int], seen: Seen) -> bool:
        """Nobody ever took part there, on a volume that is left; but for who began after the last chance to see it.

        A look that was under way when the judgement began is none: its answer is not there before the ends are read.
        """
        looked_at = max((look.at for look in seen.looks if look.at <= seen.statefulset_at), default=0.0)
        runs = [run for run in self._nodes.truth.runs.values() if not run.is_past]
        joined = {run.id for run in runs if run.ordinal in ordinals and run.joined_at}
        late = {run.id for run in self._nodes.truth.runs.values() if run.joined_at and run.joined_at > looked_at}
        told = {run.id for run in self._nodes.truth.runs.values() if run.ordinal in ordinals} & (
            seen.containers or set()
        )
        return not told and joined <= late

    def _is_itself(self, member: Member) -> bool:
        if member.run is None:
            return True
        claim = self._store.get(
            "persistentvolumeclaims", self.key.namespace, f"state-{self.key.name}-{member.run.ordinal}"
        )
        return claim is None or recorded(claim) in {None, str(member.process_id)}

    def _of(self, process: Process) -> Seen:
        return self._seen.setdefault(process.number, Seen())


def everything_runs(truth: GroupTruth, tasks: Sequence[TaskId]) -> bool:
    """Whether the group is at rest: stable, everybody alive, each task running exactly once."""
    members = list(truth.members.values())
    running = sorted(task for member in members for task in member.running)
    return truth.state is GroupState.STABLE and all(member.is_alive for member in members) and running == list(tasks)


def _remains(ordinal: int, going: frozenset[int], *, is_removal: bool) -> bool:
    return ordinal < min(going) if is_removal else ordinal not in going


def _record(statefulset: Json) -> Json:
    record: Json = json.loads(statefulset["metadata"].get("annotations", {}).get(HOLD_RECORD, "{}"))
    return record


def _running(pod: Json) -> str:
    """The ID of the container that a pod shows as running, or nothing."""
    for status in pod["status"].get("containerStatuses", ()) if "deletionTimestamp" not in pod["metadata"] else ():
        if status["name"] != SIDECAR["name"] and "running" in status["state"]:
            return str(status["containerID"])
    return ""


def _ordinal(pod: Json) -> int:
    return int(pod["metadata"]["name"].rpartition("-")[2])
