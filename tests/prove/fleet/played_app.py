"""One StreamApp of a world: what its users do to it, what befalls it, and when it is at rest."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from streamapp.api.names import HOLD_RECORD, NEW_VOLUME, OPERATOR_LABEL, OVERRIDE, RESTART
from streamapp.core.facts.agent_reports import AnnouncementState
from streamapp.core.facts.ids import ProcessId, TaskId
from streamapp.kube.client.kinds import Key
from tests.conformance import violations
from tests.kube.object_store import ObjectStore, clone, merged
from tests.prove.calls import Switchboard
from tests.prove.collector import Collector
from tests.prove.failover import Failover
from tests.prove.group import Group
from tests.prove.judge import Findings, Judge, everything_runs
from tests.prove.kubelet import BROKEN_IMAGE, Nodes, revision
from tests.prove.nodes_truth import APPLICATION
from tests.prove.rare_objects import RareObjects
from tests.prove.scene import NO_WINDOW, STATE, WHY, Ends, is_invalid, must_wait, template_of
from tests.prove.silent_events import SilentEvents
from tests.prove.streams.coordinator import StreamsGroup
from tests.prove.streams.judge import StreamsJudge
from tests.prove.virtual_time import VirtualLoop

Json = dict[str, Any]
CLOCKS_APART = timedelta(minutes=3)
"""No clock of a replica is further ahead, whatever a story does to it."""
OWNED = {"streamapps", "statefulsets", "pods", "services", "poddisruptionbudgets"}
"""What goes with a StreamApp."""
STANDING = 30_000
"""Records that copies are behind while they stand still: more than any limit allows."""
NOBODY: Callable[[], Key | None] = lambda: None  # noqa: E731 (a default with a name)


class PlayedApp:
    """One."""

    def __init__(
        self,
        loop: VirtualLoop,
        store: ObjectStore,
        board: Switchboard,
        collector: Collector,
        nodes: Nodes,
        group: Group,
        findings: Findings,
    ) -> None:
        self.key, self.loop, self.store, self.board = nodes.key, loop, store, board
        self.collector, self.nodes, self.group = collector, nodes, group
        judge = StreamsJudge if isinstance(group, StreamsGroup) else Judge
        self.judge: Judge = judge(store, group, nodes, board, loop.time, findings)
        self.failover = Failover(group, loop)
        self._silent = SilentEvents(group, loop)
        self.body: Json = {}
        """What its users create, where it is not there from the beginning."""
        self.owner = NOBODY
        """Gives the StreamApp that has the application ID, as long as one has."""
        self.rival_leaves: Callable[[], bool] = lambda: False
        """Tells whether another one that had it is not gone yet."""
        self.is_budget_right = self._is_budget_open
        """Whether the budget is at rest."""
        self.may_drain: Callable[[], bool] = lambda: False
        """Whether a pod may be drained at rest, since its node is cordoned."""
        self.to_restart: set[str] = set()
        """The UIDs of the pods whose restart its users asked for."""
        self.wished_first = self.desired()
        self.ends = Ends()
        self._gibibytes = 1
        self._process_ids_first: dict[int, ProcessId] = {}
        """Of the ordinals that run with another's."""
        self._sound: tuple[Json | None, int] = (None, 0)
        """The last status that broke no law, and its generation."""
        self._uids_first, self._places_first = self._uids(), self._places()

    def deeds(self) -> Mapping[str, Callable[[int], object]]:
        """What can happen to it, by the name that a story has for it."""
        return {
            "wish": self.wish_for,
            "call-off": self._call_off,
            "wish-back": lambda _: self.wish_for(self.wished_first),
            "pause": self._pause,
            "dry-run": self._dry_run,
            "break-spec": self._break_spec,
            "override": self._override,
            "at-once": lambda _: self._let_go_at_once(),
            "template": lambda which: self._template(f"app:{which}"),
            "rename-container": lambda which: self._template(f"app:{which}", f"{APPLICATION}-{which}"),
            "broken-template": lambda _: self._template(BROKEN_IMAGE),
            "slow": self._slow,
            "stand-still": lambda seconds: self._slow(STANDING, seconds),
            "brokers-away": lambda seconds: self._away("is_away", seconds),
            "fail-over": self.failover.begin,
            "brokers-slow": self._brokers_slow,
            "agents-away": lambda seconds: self._away("agents_are_away", seconds),
            **self.nodes.deeds(),
            **self._deeds_of_volumes(),
            "delete-app": self._delete_app,
            "create": self._create,
            "forget-record": self._forget_record,
            "restart": lambda ordinal: self._ask_for_restart(ordinal, new_volume=False),
            "restart-anew": lambda ordinal: self._ask_for_restart(ordinal, new_volume=True),
            **self.group.deeds(),
            **self._silent.deeds(),
            **RareObjects(self.key, self.store, self.loop).deeds(),
        }

    def _deeds_of_volumes(self) -> Mapping[str, Callable[[int], object]]:
        return {
            "other-process-id": self._other_process_id,
            "own-process-id": self._own_process_id,
            "same-process-id": self._same_process_id,
            "claims-stay": lambda _: self._keep_claims(whenScaled="Retain"),
            "claims-go": lambda _: self._keep_claims(whenScaled="Delete"),
            "claims-outlive": lambda _: self._keep_claims(whenDeleted="Retain"),
            "grow": self._grow,
            "delete-claim": lambda ordinal: self.collector.give_up(self.statefulset(), ordinal),
        }

    def desired(self) -> int:
        """What is wished for; nothing, where the StreamApp is gone."""
        return 0 if self.is_deleted else int(self.app()["spec"]["replicas"])

    @property
    def is_deleted(self) -> bool:
        """Whether the user has deleted the StreamApp, or has not created it yet."""
        found = self.store.get("streamapps", self.key.namespace, self.key.name)
        return found is None or "deletionTimestamp" in found["metadata"]

    @property
    def is_refused(self) -> bool:
        """Whether another StreamApp has its application ID."""
        return self.owner() not in {None, self.key}

    def app(self) -> Json:
        """The StreamApp."""
        found = self.store.get("streamapps", self.key.namespace, self.key.name)
        assert found is not None
        return found

    def statefulset(self) -> Json:
        """The StatefulSet; a stand-in where there is none."""
        found = self.store.get("statefulsets", self.key.namespace, self.key.name)
        return found or {"metadata": {}, "spec": {"replicas": 0}, "status": {}}

    # What its users do.

    def _change(self, **spec: Any) -> None:
        if self.is_deleted:
            return
        app = self.app()
        self.store.put("streamapps", {**app, "spec": {**app["spec"], **spec}})

    def wish_for(self, replicas: int) -> None:
        """Desire so many replicas."""
        if replicas != self.desired() and not self.is_deleted:
            self._change(replicas=replicas)
            self.judge.wished_at = self.loop.time()
            self._await_raise()

    def _call_off(self, replicas: int) -> None:
        """Call the scale-down off, and begin it again within the same moment, down to so many replicas."""
        self.wish_for(self.statefulset()["spec"]["replicas"])
        self.wish_for(replicas)

    def _await_raise(self) -> None:
        """Guarantee 3: a raise is never delayed."""
        current = self.statefulset()["spec"]["replicas"]
        spec = {} if self.is_deleted else self.app()["spec"]
        creation_waits = not self.statefulset()["metadata"] and self.rival_leaves()
        if self.is_deleted or must_wait(spec) or self.is_refused or creation_waits:
            self.judge.raises.stopped()
            return
        if self.desired() > current:
            self.judge.visited.add("guarantee 3")
        self._look_later(self.judge.raises.wished(self.desired(), current))

    def _look_later(self, seconds: float | None) -> None:
        if seconds is not None:
            self.loop.call_later(seconds, lambda: self._look_later(self.judge.raises.look()))

    def _template(self, image: str, name: str = APPLICATION) -> None:
        """Change the template; where there is a sidecar, the spec says which container is the application's."""
        if not self.is_deleted:
            sidecar = "container" in self.app()["spec"]
            named = {"container": name} if sidecar else {}
            self._change(template=template_of(image, sidecar=sidecar, name=name), **named)

    def _slow(self, behind: int, seconds: float = 45.0) -> None:
        """Every copy falls back by so many records and stays there for a while."""
        self.loop.call_later(seconds, self.group.truth.slow.clear)
        self.group.advance()
        truth = self.group.truth
        for member in self.group.listed():
            assert member.run is not None
            truth.slow[member.run.volume] = behind
            for task in member.standby:
                truth.volumes[member.run.volume][task] = truth.end - behind

    def _keep_claims(self, **retention: str) -> None:
        if not self.is_deleted:
            state = self.app()["spec"]["state"]
            self._change(state={**state, "retention": {**state.get("retention", {}), **retention}})
            self.judge.wished_at = self.loop.time()

    def _grow(self, gibibytes: int) -> None:
        """Ask for larger volumes."""
        if self.is_deleted:
            return
        self._gibibytes = gibibytes
        state = self.app()["spec"]["state"]
        template = {**state["volumeClaimTemplate"], "resources": {"requests": {"storage": f"{gibibytes}Gi"}}}
        self._change(state={**state, "volumeClaimTemplate": template})

    def _delete_app(self, in_foreground: int) -> None:
        if not self.is_deleted:
            self.collector.delete_app(self.app(), in_foreground=bool(in_foreground))
            self.judge.wished_at = self.loop.time()
            self.judge.raises.stopped()

    def _create(self, older: int) -> None:
        """Create it, where it is not there; dated so many seconds back, as a late watch would find it."""
        if self.body and self.store.get("streamapps", self.key.namespace, self.key.name) is None:
            body = {**self.body, "metadata": {**self.body["metadata"]}}
            if older:
                made = self.loop.now() - timedelta(seconds=older)
                body["metadata"]["creationTimestamp"] = made.strftime("%Y-%m-%dT%H:%M:%SZ")
            self.store.put("streamapps", body)
            self.judge.wished_at = self.loop.time()

    def _forget_record(self, _: int) -> None:
        """Remove the hold record, as users are asked to do where it cannot be read."""
        live = self.store.get("statefulsets", self.key.namespace, self.key.name)
        if live is not None:
            self.store.put("statefulsets", merged(clone(live), {"metadata": {"annotations": {HOLD_RECORD: None}}}))

    def _ask_for_restart(self, ordinal: int, *, new_volume: bool) -> None:
        """Ask for it as the command line does, and then give the claim up."""
        pod = self.store.get("pods", self.key.namespace, f"{self.key.name}-{ordinal}")
        if self.is_deleted or pod is None or "deletionTimestamp" in pod["metadata"]:
            return
        app, uid = self.app(), pod["metadata"]["uid"]
        asked = app["metadata"].get("annotations", {}).get(RESTART, "")
        text = ", ".join(filter(None, (asked, f"{uid} {NEW_VOLUME}" if new_volume else uid)))
        annotations = {**app["metadata"].get("annotations", {}), RESTART: text}
        self.store.put("streamapps", {**app, "metadata": {**app["metadata"], "annotations": annotations}})
        self.to_restart.add(uid)
        if new_volume:
            self.collector.give_up(self.statefulset(), ordinal)

    def _pause(self, seconds: int) -> None:
        self._set_paused(paused=True)
        self.judge.wished_at = self.loop.time()
        self.loop.call_later(seconds, lambda: self._set_paused(paused=False))

    def _set_paused(self, *, paused: bool) -> None:
        self._change(paused=paused)
        self._await_raise()

    def _dry_run(self, seconds: int) -> None:
        """Have the operator only say what it would do, for so long."""
        self._change(dryRun=True)
        self.judge.wished_at = self.loop.time()
        self.loop.call_later(seconds, self._end_dry_run)

    def _end_dry_run(self) -> None:
        self._change(dryRun=False)
        self._await_raise()

    def _break_spec(self, seconds: int) -> None:
        """Make the spec invalid, for so long."""
        if self.is_deleted or is_invalid(self.app()["spec"]):
            return
        before = self.app()["spec"]["scaleDown"]
        self._change(scaleDown={**before, "stabilizationWindow": NO_WINDOW})
        self.judge.wished_at = self.loop.time()
        self.loop.call_later(seconds, self._mend_spec, before)

    def _mend_spec(self, scale_down: Json) -> None:
        self._change(scaleDown=scale_down)
        self._await_raise()

    def _override(self, _: int) -> None:
        """Override the hold that the status shows, as the command line does."""
        hold_id = "" if self.is_deleted else self.app().get("status", {}).get("scaleDown", {}).get("holdId", "")
        if hold_id:
            app = self.app()
            annotations = {**app["metadata"].get("annotations", {}), OVERRIDE: f"{hold_id} {WHY}"}
            self.store.put("streamapps", {**app, "metadata": {**app["metadata"], "annotations": annotations}})

    def _let_go_at_once(self) -> None:
        """Let pods leave and restart without copies, by the policies of the spec."""
        if not self.is_deleted:
            said = {**self.app()["spec"].get("scaleDown", {}), "policy": "Immediate", "reason": WHY}
            self._change(scaleDown=said, rollout={"policy": "Immediate"})
            self.judge.wished_at = self.loop.time()

    # What befalls it.

    def _away(self, which: str, seconds: int) -> None:
        """Brokers or agents do not answer for so long."""
        setattr(self.group, which, True)
        self.loop.call_later(seconds, setattr, self.group, which, False)

    def _brokers_slow(self, seconds: int) -> None:
        """For 40 seconds, every answer of the brokers takes so long."""
        self.group.slowness = seconds
        self.loop.call_later(40, setattr, self.group, "slowness", 0.0)

    def _other_process_id(self, ordinal: int) -> None:
        """Somebody made the process file anew, and the container starts with it."""
        self._replace_process_id(ordinal, "-4000-", "-4999-")

    def _same_process_id(self, ordinal: int) -> None:
        """Somebody copied the process file of the next ordinal, and the container starts with it."""
        known = self.nodes.truth.process_ids
        self._process_ids_first[ordinal] = known[ordinal]
        known[ordinal] = known[ordinal + 1]
        self.nodes.kill(ordinal)

    def _own_process_id(self, ordinal: int) -> None:
        if ordinal in self._process_ids_first:
            self.nodes.truth.process_ids[ordinal] = self._process_ids_first.pop(ordinal)
            self.nodes.kill(ordinal)
            return
        self._replace_process_id(ordinal, "-4999-", "-4000-")

    def _replace_process_id(self, ordinal: int, old: str, new: str) -> None:
        known = self.nodes.truth.process_ids[ordinal]
        self.nodes.truth.process_ids[ordinal] = ProcessId.parse(str(known).replace(old, new))
        self.nodes.kill(ordinal)

    def gives_up(self) -> bool:
        """Its users give up what is held for good: they take a scale-down back, or delete a pod of an old template.

        A full volume they make larger.
        """
        if self.is_deleted:
            return False
        if f"{self._gibibytes}Gi" in self.nodes.truth.full.values():
            self._grow(self._gibibytes + 1)
            self.judge.notes["volumes made larger"] += 1
            return True
        status = self.app().get("status", {})
        going = self.judge.held_for_good(status, self._outdated())
        if going is None and any(one["reason"] == "GaveUp" for one in status.get("conditions", ())):
            going = self.statefulset()["spec"]["replicas"] - 1
        if going is not None and self.desired() < self.statefulset()["spec"]["replicas"]:
            self.wish_for(self.statefulset()["spec"]["replicas"])
        elif going is not None:
            self.nodes.delete(going)
        return going is not None

    def _outdated(self) -> tuple[int, ...]:
        """The ordinals of pods of an old template that stay: a pod that is leaving is not restarted before it goes."""
        newest = revision(self.statefulset()) if self.statefulset()["metadata"] else ""
        old = (_ordinal(pod) for pod in self.nodes.pods() if _revision(pod) != newest)
        return tuple(ordinal for ordinal in old if ordinal < self.desired())

    # Where it comes to rest.

    def unrest(self) -> str | None:
        """What is not yet as its user wants it; None: it is at rest."""
        if self.is_deleted:
            left = sorted(
                {plural for (plural, *_), one in self.store.objects.items() if self._is_left(plural, one.body)}
            )
            if not left and not self.judge.is_left_well():
                return "the group is not as it was before the StreamApp"
            return f"{', '.join(left)} are left of what was deleted" if left else None
        rest = self._rest_of_a_refused() if self.is_refused else self._rest()
        return next((what for what, is_so in rest if not is_so()), None)

    def _is_left(self, plural: str, body: Json) -> bool:
        return plural in OWNED and self.nodes.is_own(plural, body)

    def _rest_of_a_refused(self) -> tuple[tuple[str, Callable[[], object]], ...]:
        status = self.app().get("status", {})
        conditions = {each["type"]: each for each in status.get("conditions", ())}
        stalled, owner = conditions.get("Stalled", {}), self.owner()
        return (
            ("a rival has a StatefulSet", lambda: not self.statefulset()["metadata"]),
            ("a rival has pods", lambda: not self.nodes.pods()),
            ("a rival is not refused", lambda: stalled.get("status") == "True"),
            ("a rival is refused for another reason", lambda: stalled.get("reason") == "ApplicationIdTaken"),
            ("a rival is not told whose it is", lambda: str(owner and owner.name) in stalled["message"]),
            ("status is of an old generation", self._is_observed),
            ("status breaks its laws", lambda: not self._violations(status)),
        )

    def _rest(self) -> tuple[tuple[str, Callable[[], object]], ...]:
        own, status = self.statefulset(), self.app().get("status", {})
        desired = self.desired()
        conditions = {each["type"]: each["status"] for each in status.get("conditions", ())}
        truth = self.group.truth
        return (
            ("granted is not desired", lambda: own["spec"]["replicas"] == desired),
            ("a record is left", lambda: "streamapp.dev/hold-record" not in own["metadata"].get("annotations", {})),
            ("the budget is closed", self.is_budget_right),
            ("pods are missing", lambda: sorted(self.nodes.alive()) == list(range(desired))),
            ("surplus pods", lambda: len(self.nodes.pods()) == desired),
            ("pods of an old template", lambda: {_revision(pod) for pod in self.nodes.pods()} == {revision(own)}),
            (
                "a pod was not restarted",
                lambda: not self.to_restart & {pod["metadata"]["uid"] for pod in self.nodes.pods()},
            ),
            ("tasks do not run", lambda: everything_runs(truth, self.group.tasks)),
            ("the group is not done", lambda: self.may_drain() or not truth.follow_up),
            ("status.stateful_set_replicas is wrong", lambda: status.get("statefulSetReplicas") == desired),
            ("status is of an old generation", self._is_observed),
            ("status says it has not converged", lambda: desired == 1 or conditions.get("Converged") == "True"),
            ("status says it is held", lambda: conditions.get("ScaleDownHeld") == "False"),
            ("somebody is told to leave", lambda: self.may_drain() or not self._told_to_leave()),
            ("status breaks its laws", lambda: not self._violations(status)),
            *self.judge.rest(),
            *(() if self.board.hits.total() else self._ends()),
        )

    def _ends(self) -> tuple[tuple[str, Callable[[], object]], ...]:
        """What must have come of the scene by itself."""
        ends, notes, told = self.ends, self.judge.notes, self.judge.holds.told
        counted = tuple(
            (f"{notes[what]} {what}, and not {times}", lambda what=what, times=times: notes[what] == times)
            for what, times in ends.counted
        )
        return (
            *((f"status never said {word}", lambda word=word: word in told) for word in ends.told),
            *counted,
            ("pods are other ones", lambda: not ends.keeps_pods or self._uids() == self._uids_first),
            ("tasks run elsewhere", lambda: not ends.keeps_tasks or self._places() == self._places_first),
        )

    def _places(self) -> dict[TaskId, int]:
        """The ordinal that each task runs on."""
        members = [member for member in self.group.listed() if member.run is not None]
        return {task: member.run.ordinal for member in members if member.run for task in member.running}

    def _is_budget_open(self) -> bool:
        budget = self.store.get("poddisruptionbudgets", self.key.namespace, self.key.name) or {"spec": {}}
        return bool(budget["spec"].get("maxUnavailable") == 1)

    def _uids(self) -> set[str]:
        return {pod["metadata"]["uid"] for pod in self.nodes.pods()}

    def _told_to_leave(self) -> bool:
        agents, time = self.group.truth.agents, self.loop.time()
        return any(
            agents[run.id].state(time) is AnnouncementState.SET
            for run in self.nodes.alive().values()
            if run.id in agents
        )

    def _is_observed(self) -> bool:
        app = self.app()
        return bool(app.get("status", {}).get("observedGeneration") == app["metadata"]["generation"])

    def _violations(self, status: Json) -> list[str]:
        now, generation = self.loop.now() + CLOCKS_APART, self.app()["metadata"]["generation"]
        sound, of_generation = self._sound
        if sound is status and of_generation == generation:
            return []  # What is stored is never changed in place, and as time passes no date comes to lie ahead.
        found = violations(status, generation=generation, now=now)
        if not found:
            self._sound = status, generation
        return found


def _ordinal(pod: Json) -> int:
    return int(pod["metadata"]["name"].rpartition("-")[2])


def _revision(pod: Json) -> str:
    return str(pod["metadata"]["labels"]["controller-revision-hash"])


def a_stream_app(key: Key, replicas: int, operator: str = "", **spec: Any) -> Json:
    """A StreamApp; `operator` is the installation in its label."""
    labels = {"labels": {OPERATOR_LABEL: operator}} if operator else {}
    return {
        "apiVersion": "streamapp.dev/v1alpha1",
        "kind": "StreamApp",
        "metadata": {"name": key.name, "namespace": key.namespace, **labels},
        "spec": {
            "replicas": replicas,
            "applicationId": "wordcount",
            "kafka": {"bootstrapServers": "kafka:9092"},
            "template": {"spec": {"containers": [{"name": "app", "image": "app:1"}]}},
            "state": STATE,
            "scaleDown": {"stabilizationWindow": "2s"},
            **spec,
        },
    }
