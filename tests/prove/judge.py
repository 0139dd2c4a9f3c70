"""The judge: knows what is true, never what an operator believes, and holds the guarantees against every write.

It shares no rule with the product. What it asks of a removal is asked about the truth as it was when that process last
looked, twice: a world that has moved on since the last chance to look is nobody's fault, and is counted, not blamed.
"""

import json
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamapp.api.names import HOLD_RECORD, PROCESS_ID
from streamapp.core.facts.containers import MemberKey
from streamapp.core.facts.group import GroupState
from streamapp.core.facts.ids import ProcessId, TaskId
from tests.kube.object_store import ObjectStore, Request
from tests.prove.calls import Process, Switchboard
from tests.prove.group import Group, GroupTruth, Member
from tests.prove.judge_claims import ClaimJudge
from tests.prove.judge_raises import RaiseJudge
from tests.prove.kubelet import Nodes

Json = dict[str, Any]
FRESH = 10.6
"""Seconds that a look at the group may be old when it is judged: its description comes before its end."""
JUDGEMENT = 10.0
"""Seconds that a judgement may be old when it is sent, however slow the server is or was when it answered."""
AT_ONCE = 0.15
"""Seconds from the last live reads to the write: what a user says within them comes too late."""
POSITIONS = 60.0 + FRESH
"""Seconds that a copy may have been good by the word of a join: positions of 60 s, and the time of a look."""
APART = 9.5
"""Two readings lie at least so far apart: 10 s between their ends, as seen by a poll of half a second."""
APART_BY_AGENTS = 2.5
"""The same for two words of the agents."""

A_TASK = 64 << 20
"""Bytes that a copy of a task takes in the memory of its container, in scenes in which that matters."""


@dataclass(frozen=True, slots=True)
class Look:
    """The truth at the moment when one process looked at the group."""

    at: float
    generation: int
    is_stable: bool
    good: Mapping[TaskId, frozenset[tuple[int, str, float]]]
    """Where each task has a good copy: ordinal, container, and from when on the world said so."""
    held: Mapping[int, frozenset[TaskId]]
    """What each ordinal was given, by the brokers' word."""
    members: frozenset[int]
    """Ordinals that are listed, dead or alive."""
    identities_hold: bool


@dataclass(slots=True)
class Seen:
    """What one process was told, and when."""

    looks: deque[Look] = field(default_factory=lambda: deque(maxlen=90))
    app_is_stale: bool = False
    """Whether the server that last told of the StreamApp was behind."""
    containers: frozenset[str] | None = None
    """The containers that run, as last told; None where that was out of date."""
    ordinals: frozenset[int] = frozenset()
    """Of the pods as last told."""
    statefulset_at: float = 0.0
    """When it was last told of the StatefulSet."""
    passed_at: float | None = None
    """When its first pass had come to the status."""


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
        self._claims = ClaimJudge(lambda: store.get("streamapps", *self._place))
        self._claims.said(store.get("streamapps", *self._place) or {"spec": {}})
        self.raises = RaiseJudge(board, now, self.wrong)
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
        real = self._listed()
        held: dict[int, frozenset[TaskId]] = {}
        for member in real:
            ordinal = member.run.ordinal if member.run else -1
            held[ordinal] = held.get(ordinal, frozenset()) | self._given(member)
        look = Look(
            at=self._now(),
            generation=truth.generation,
            is_stable=truth.state is GroupState.STABLE,
            good={task: frozenset(self._good_copies(task)) for task in self._group.tasks},
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

    def _own_changed(self, plural: str, body: Json, before: Json | None) -> None:
        writer = self._board.writer
        if plural == "persistentvolumeclaims" and not body and before is not None:
            self.notes["claims gone"] += 1
            why = self._claims.vanished(before, is_by_operator=writer is not None)
            self.visited.add("guarantee 4")
            if why is not None:
                self.wrong(4, why)
        if plural == "streamapps" and body:
            self._claims.said(body)
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
            if any(what.partition("@")[0] in {"wish", "pause"} for what in self._board.hits):
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
        going, known = frozenset(range(now, was)), seen.ordinals
        if known and max(known) >= was:
            self.wrong(1, f"{what}, although an ordinal of an earlier step is still there: {sorted(known)}")
        if never_ran:
            return
        self._by_coverage(what, seen, going, is_removal=True)

    def _by_age(self, what: str, seen: Seen) -> None:
        """Guarantee 2: a judgement that became old while the server was slow is not sent, even if that is over."""
        age = self._now() - seen.statefulset_at
        if age > JUDGEMENT:
            self.wrong(2, f"{what} on a judgement that is {age:.1f} s old")

    def _by_the_wish(self, what: str, seen: Seen, now: int) -> None:
        """Guarantees 1 and 3: nobody goes below the wish, or on when told to wait, unless told just now."""
        app = self._store.get("streamapps", *self._place) or {"spec": {"paused": True}}
        if self._is_too_late(seen):
            self.notes["told too late"] += app["spec"].get("replicas", 0) > now or app["spec"].get("paused", False)
            return
        if app["spec"].get("replicas", 0) > now:
            self.wrong(3, f"{what}, although {app['spec']['replicas']} are wished for since {self.wished_at:.2f} s")
        if app["spec"].get("paused"):
            self.wrong(1, f"{what}, although it is paused since {self.wished_at:.2f} s")

    def _is_too_late(self, seen: Seen) -> bool:
        """Whether the user changed something when there was no chance any more to see it."""
        slowness = self._board.slowest(self._now() - JUDGEMENT)
        return seen.app_is_stale or self._now() - self.wished_at <= AT_ONCE + 2 * slowness

    def _by_coverage(self, what: str, seen: Seen, going: frozenset[int], *, is_removal: bool) -> None:
        """Guarantees 1, 2 and 5, on the truth as it was at two looks of that process."""
        running = seen.containers
        pairs = self._fitting(seen.looks, seen.statefulset_at)
        if not pairs:
            self.wrong(2, f"{what} without two looks in a row that are fresh, stable and of two joins")
            return
        at = seen.statefulset_at
        lost = [self._lost(later, earlier, going, running, at, is_removal=is_removal) for later, earlier in pairs]
        least = min(lost, key=len)
        if least:
            self.wrong(1, f"{what}, and nobody who remains has {', '.join(sorted(least))}")
        elif any(not self._good_now(task, going, is_removal=is_removal) for task in self._group.tasks):
            self.notes["overtaken"] += 1

    def _fitting(self, looks: Sequence[Look], judged_at: float) -> list[tuple[Look, Look]]:
        """Pairs of looks that a removal may rest on."""
        return _pairs(looks, judged_at, by_agents=self._group.truth.shape.on_demand)

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
        lost = set()
        for task in self._group.tasks:
            for look in (later, earlier):
                good = {
                    run
                    for ordinal, run, since in look.good[task]
                    if _remains(ordinal, going, is_removal=is_removal)
                    if look is earlier or seen_at - since <= POSITIONS
                }
                if not (good if running is None else good & running):
                    lost.add(str(task))
                elif is_removal and self._is_below_a_floor(
                    {ordinal for ordinal, run, _ in look.good[task] if run in good}
                ):
                    lost.add(f"as many copies of {task} as asked for")
        if len(going) > 1 and any(later.held.get(ordinal) or earlier.held.get(ordinal) for ordinal in going):
            lost.add("one at a time")
        if self._group.truth.shape.on_demand and any(
            later.held.get(ordinal) or earlier.held.get(ordinal) for ordinal in going
        ):
            lost.add("the tasks that it holds")
        if not (later.identities_hold and earlier.identities_hold):
            self.visited.add("guarantee 5")
            lost.add("its own process ID")
        return lost

    def _is_below_a_floor(self, places: set[int]) -> bool:
        """Whether the user asks for more copies, for more zones, or for more memory than the pods that remain have."""
        spec = (self._store.get("streamapps", *self._place) or {}).get("spec", {})
        asked, free = spec.get("scaleDown", {}), self._group.truth.shape.memory
        zones = {self._nodes.zones[ordinal : ordinal + 1] for ordinal in places}
        is_tight = "memoryPerTask" in spec.get("learners", {}) and free < A_TASK
        return len(places) < asked.get("minCopies", 0) or len(zones) < asked.get("minZones", 0) or is_tight

    def _restart(self, writer: Process, pod: Json) -> None:
        """A rollout's restart, by the rule of a removal; a pod that does not run takes nothing away."""
        if "deletionTimestamp" in pod["metadata"]:
            return
        ordinal = _ordinal(pod)
        self.notes["restarts"] += 1
        seen, what = self._of(writer), f"process {writer.number} restarts {ordinal}"
        self._at_stake(is_removal=False)
        self._by_age(what, seen)
        if not _running(pod) or len(self._nodes.pods()) == 1:
            return
        down = [number for number in seen.ordinals if number != ordinal and number not in self._nodes.alive()]
        if down and seen.containers is not None and len(seen.containers - {""}) < len(seen.ordinals):
            self.wrong(1, f"{what}, although {down} are down")
        self._by_coverage(what, seen, frozenset({ordinal}), is_removal=False)

    def _claim(self, body: Json, before: Json) -> None:
        """Guarantee 5: what is recorded is what lies on the volume, and is never replaced."""
        name = body["metadata"]["name"]
        was = before["metadata"].get("annotations", {}).get(PROCESS_ID)
        now = body["metadata"].get("annotations", {}).get(PROCESS_ID)
        true = self._nodes.truth.process_ids.get(int(name.rpartition("-")[2]))
        if now != was:
            self.visited.add("guarantee 5")
        if now != was and (was is not None or now != str(true)):
            self.wrong(5, f"{name} is recorded as {now}; it was {was} and is {true}")

    def rest(self) -> tuple[tuple[str, Callable[[], object]], ...]:
        """What else must be so where the world is at rest."""
        return ()

    def held_for_good(self, status: Json, outdated: Sequence[int]) -> int | None:  # noqa: ARG002 (of the streams protocol)
        """An ordinal that is kept for ever, as it should be; None: there is none."""
        return None

    def is_left_well(self) -> bool:
        """Whether nothing is left outside the API server of a StreamApp that was deleted."""
        return True

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

    def _good_copies(self, task: TaskId) -> list[tuple[int, str, float]]:
        """Containers that run the task, or were caught up with it when they joined last and have it as standby.

        One that has just ended counts until its kubelet has said so: the group lists it for longer still, and nobody
        could know. Whether the server showed it when the pods were last listed is asked apart from this.
        """
        shape, now = self._group.truth.shape, self._now()
        limit = shape.limit
        shown = self._shown_containers()
        return [
            (member.run.ordinal, member.run.id, now if task in member.running or shape.on_demand else member.said.at)
            for member in self._listed()
            if member.run is not None
            if member.is_alive or member.run.id in shown
            if task in member.running or (task in member.standby and member.said.lags.get(task, limit + 1) <= limit)
        ]

    def _shown_containers(self) -> set[str]:
        """Those that their kubelets say run."""
        return {_running(pod) for pod in self._nodes.pods()}

    def _good_now(self, task: TaskId, going: frozenset[int], *, is_removal: bool) -> bool:
        return any(_remains(ordinal, going, is_removal=is_removal) for ordinal, _, _ in self._good_copies(task))

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
        recorded = None if claim is None else claim["metadata"].get("annotations", {}).get(PROCESS_ID)
        return recorded in {None, str(member.process_id)}

    def _of(self, process: Process) -> Seen:
        return self._seen.setdefault(process.number, Seen())


def everything_runs(truth: GroupTruth, tasks: Sequence[TaskId]) -> bool:
    """Whether the group is at rest: stable, everybody alive, each task running exactly once."""
    members = list(truth.members.values())
    running = sorted(task for member in members for task in member.running)
    return truth.state is GroupState.STABLE and all(member.is_alive for member in members) and running == list(tasks)


def _pairs(looks: Sequence[Look], judged_at: float, *, by_agents: bool) -> list[tuple[Look, Look]]:
    """Looks that were fresh at the judgement or came later, each with one before it that fits.

    Of another join; but where agents speak, what each look shows is the present, so that no join lies between.
    """
    stable = [look for look in looks if look.is_stable]
    apart = APART_BY_AGENTS if by_agents else APART
    return [
        (later, earlier)
        for later in stable
        if judged_at - later.at <= FRESH
        for earlier in stable
        if apart <= later.at - earlier.at <= 125 and (by_agents or earlier.generation != later.generation)
    ]


def _remains(ordinal: int, going: frozenset[int], *, is_removal: bool) -> bool:
    return ordinal < min(going) if is_removal else ordinal not in going


def _record(statefulset: Json) -> Json:
    record: Json = json.loads(statefulset["metadata"].get("annotations", {}).get(HOLD_RECORD, "{}"))
    return record


def _running(pod: Json) -> str:
    """The ID of the container that a pod shows as running, or nothing."""
    for status in pod["status"].get("containerStatuses", ()):
        if "running" in status["state"] and "deletionTimestamp" not in pod["metadata"]:
            return str(status["containerID"])
    return ""


def _ordinal(pod: Json) -> int:
    return int(pod["metadata"]["name"].rpartition("-")[2])
