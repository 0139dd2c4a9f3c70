"""One small world: the store, the nodes, the group, the operator's processes and the judge; and what can happen in it.

A world begins at rest, as a picture of one that was brought up by the operator itself (`pictures`).
"""

import pickle
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from streamapp.core.facts.agent_reports import AnnouncementState
from streamapp.core.facts.ids import ProcessId, TaskId
from tests.conformance import violations
from tests.kube.object_store import ObjectStore, Stored
from tests.prove.calls import Switchboard
from tests.prove.collector import Collector
from tests.prove.group import Group, GroupTruth, Shape
from tests.prove.instance import Instance, Lives
from tests.prove.judge import Judge, everything_runs
from tests.prove.judge_raises import ANSWERS_OF_A_TAKE_OVER, ANSWERS_OF_LATE_WATCHES
from tests.prove.kubelet import BROKEN_IMAGE, NAME, NAMESPACE, Nodes, revision
from tests.prove.nodes_truth import NodesTruth
from tests.prove.replicas.deployment import Deployment
from tests.prove.replicas.gate import GatedLoop
from tests.prove.replicas.leader_judge import LeaderJudge
from tests.prove.replicas.replica import Surroundings
from tests.prove.scenes import STATE, Scene
from tests.prove.story import Disturbance
from tests.prove.virtual_time import VirtualLoop
from tests.support.example import NOW

Json = dict[str, Any]
CLOCKS_APART = timedelta(minutes=3)
"""No clock of a replica is further ahead, whatever a story does to it."""
OWNED = {"streamapps", "statefulsets", "pods", "services", "poddisruptionbudgets"}
"""What goes with a StreamApp."""


@dataclass(slots=True)
class Picture:
    """All that is true at one moment, without anything that is going on."""

    objects: dict[tuple[str, str, str], Stored]
    group: GroupTruth
    nodes: NodesTruth
    version: int


class World:
    """One run's."""

    def __init__(self, loop: VirtualLoop, scene: Scene, seed: int, picture: Picture) -> None:
        self.loop, self._scene = loop, scene
        chance = random.Random(seed)  # noqa: S311 (plays a story, protects nothing)
        self.last_second = 0.0
        """When the last thing happens that happens by the clock."""
        self.board = Switchboard(self.happen, chance)
        self.board.disturbed, self.board.now = self._disturbed, loop.time
        self.store = ObjectStore(loop.now, picture.version)
        self.store.graceful = frozenset({"pods"})
        self.store.objects = dict(picture.objects)
        self.group = Group(picture.group, loop, chance)
        picture.group.at = loop.time()
        others = random.Random(f"collector {seed}")  # noqa: S311 (as above; apart, so that it moves no other draw)
        self.collector = Collector(self.store, picture.nodes, picture.group, loop, others)
        self.nodes = Nodes(picture.nodes, self.store, self.group, loop, chance, self.collector)
        self.judge = Judge(self.store, self.group, self.nodes, self.board, loop.time)
        if scene.behind:
            self.judge.raises.answers = ANSWERS_OF_LATE_WATCHES
        if scene.operators:
            self.judge.raises.answers = ANSWERS_OF_A_TAKE_OVER
            self.judge.raises.is_alone = scene.operators == 1
        self.lives = self._deployment(seed) if scene.operators else Lives(self._process, loop, self.board)
        self.wished_first = self.desired()
        self.disturbed_at = loop.time()
        self.group.completed.append(self._tell_generation)

    def _tell_generation(self) -> None:
        if self.board.is_told:
            members = self.group.truth.members.values()
            shares = ", ".join(
                f"{member.id} runs {_names(member.running)} of {_names(member.active)}, "
                f"has {_names(member.standby)}{'' if member.is_alive else ' (dead)'}"
                for member in members
            )
            self.board.tell(f"generation {self.group.truth.generation}: {shares}")

    def _process(self, number: int) -> Instance:
        behind = self._scene.behind
        assert isinstance(self.lives, Lives)
        return Instance(number, self.loop, self.store, self.group, self.board, self.judge, self.lives, behind=behind)

    def _deployment(self, seed: int) -> Deployment:
        """Several replicas of the operator, and the judge of their Lease."""
        assert isinstance(self.loop, GatedLoop)
        around = Surroundings(self.loop, self.store, self.board, self.group, self.judge, self._scene.behind)
        others = random.Random(f"nodes {seed}")  # noqa: S311 (plays a story)
        deployment = Deployment(around, self._scene.operators, self._scene.apart, others)
        LeaderJudge(self.store, self.board, lambda: deployment.all, self.judge.wrong)
        return deployment

    def begin(self) -> None:
        """Let the operator start, and what happens in the scene happen when it is time."""
        self.lives.begin()
        for one in self._scene.happens:
            self.last_second = max(self.last_second, one.number)
            self.loop.call_at(float(one.number), self._happens, one)

    def _happens(self, one: Disturbance) -> None:
        """What belongs to the scene is no fault and is not counted as one."""
        self.board.tell(f"--- {one}")
        self.happen(one.what, one.which)
        self.judge.raises.struck(one)
        self._disturbed()

    def expect(self, disturbances: Iterable[Disturbance], offset: float = 0.0) -> None:
        """Have things happen from now on: at the call that is just being made, at later ones, or by the clock."""
        for one in disturbances:
            self.board.plan.setdefault((one.site, one.number), []).append(one)
            if one.site == "second":
                self._expect_at(one.number + offset, one)
                offset += 0.01  # one after the other, in their order

    def _expect_at(self, when: float, one: Disturbance) -> None:
        self.last_second = max(self.last_second, when)
        if when <= self.loop.time():
            self.board.strikes(one)
        else:
            self.loop.call_at(when, self.board.strikes, one)

    def picture(self) -> Picture:
        """How it is now."""
        return Picture(self.store.objects, self.group.truth, self.nodes.truth, self.store.version)

    # What happens.

    def happen(self, what: str, which: int) -> bool:
        """Let it happen; False: nothing of this name happens in the world."""
        makers: Mapping[str, Callable[[int], object]] = {
            "kill": self.nodes.kill,
            "wipe": self.nodes.wipe,
            "lose": self.nodes.lose,
            "delete": self.nodes.delete,
            "wish": self._wish_for,
            "wish-back": lambda _: self._wish_for(self.wished_first),
            "pause": self._pause,
            "skew": lambda seconds: setattr(self.nodes.truth, "skew", seconds),
            "template": lambda which: self._template(f"app:{which}"),
            "broken-template": lambda _: self._template(BROKEN_IMAGE),
            "slow": self._slow,
            "brokers-away": self._brokers_away,
            "api-slow": self._api_slow,
            "pods-away": lambda seconds: self._kind_away("pods", seconds),
            "claims-away": lambda seconds: self._kind_away("persistentvolumeclaims", seconds),
            "budgets-away": lambda seconds: self._kind_away("poddisruptionbudgets", seconds),
            "controllers-take": lambda seconds: setattr(self.nodes.truth, "sync", seconds),
            "stops-take": lambda seconds: setattr(self.nodes.truth, "stop", seconds),
            "other-process-id": self._other_process_id,
            "own-process-id": self._own_process_id,
            "claims-stay": lambda _: self._keep_claims("Retain"),
            "claims-go": lambda _: self._keep_claims("Delete"),
            "refuse-template": lambda status: setattr(self.board, "refuses_template", status),
            "delete-app": self._delete_app,
        }
        makers = {**makers, **self.lives.deeds()}
        if what not in makers:
            return False
        makers[what](which)
        return True

    def desired(self) -> int:
        """What is wished for; nothing, where the StreamApp is gone."""
        return 0 if self.is_deleted else int(self.app()["spec"]["replicas"])

    @property
    def is_deleted(self) -> bool:
        """Whether the user has deleted the StreamApp."""
        found = self.store.get("streamapps", NAMESPACE, NAME)
        return found is None or "deletionTimestamp" in found["metadata"]

    def app(self) -> Json:
        """The StreamApp."""
        found = self.store.get("streamapps", NAMESPACE, NAME)
        assert found is not None
        return found

    def _change(self, **spec: Any) -> None:
        if self.is_deleted:
            return
        app = self.app()
        self.store.put("streamapps", {**app, "spec": {**app["spec"], **spec}})

    def _wish_for(self, replicas: int) -> None:
        if replicas != self.desired() and not self.is_deleted:
            self._change(replicas=replicas)
            self.judge.wished_at = self.loop.time()
            self._await_raise()

    def _await_raise(self) -> None:
        """Guarantee 3: a raise is never delayed."""
        current = self.statefulset()["spec"]["replicas"]
        if self.is_deleted or self.app()["spec"].get("paused"):
            self.judge.raises.stopped()
            return
        if self.desired() > current:
            self.judge.visited.add("guarantee 3")
        self._look_later(self.judge.raises.wished(self.desired(), current))

    def _look_later(self, seconds: float | None) -> None:
        if seconds is not None:
            self.loop.call_later(seconds, lambda: self._look_later(self.judge.raises.look()))

    def _template(self, image: str) -> None:
        self._change(template={"spec": {"containers": [{"name": "app", "image": image}]}})

    def _slow(self, behind: int) -> None:
        """Every copy falls back by so many records and stays there for a while."""
        self.loop.call_later(45.0, self.group.truth.slow.clear)
        self.group.advance()
        truth = self.group.truth
        for member in self.group.listed():
            assert member.run is not None
            truth.slow[member.run.ordinal] = behind
            for task in member.standby:
                truth.volumes[member.run.ordinal][task] = truth.end - behind

    def _keep_claims(self, when_scaled: str) -> None:
        if not self.is_deleted:
            state = self.app()["spec"]["state"]
            self._change(state={**state, "retention": {**state.get("retention", {}), "whenScaled": when_scaled}})
            self.judge.wished_at = self.loop.time()

    def _delete_app(self, in_foreground: int) -> None:
        if not self.is_deleted:
            self.collector.delete_app(self.app(), in_foreground=bool(in_foreground))
            self.judge.wished_at = self.loop.time()
            self.judge.raises.stopped()

    def _pause(self, seconds: int) -> None:
        self._set_paused(paused=True)
        self.judge.wished_at = self.loop.time()
        self.loop.call_later(seconds, lambda: self._set_paused(paused=False))

    def _set_paused(self, *, paused: bool) -> None:
        self._change(paused=paused)
        self._await_raise()

    def _brokers_away(self, seconds: int) -> None:
        self.board.brokers_away = True
        self.loop.call_later(seconds, setattr, self.board, "brokers_away", False)

    def _kind_away(self, plural: str, seconds: int) -> None:
        """For so long, one kind of object cannot be read; all others can."""
        self.board.kinds_away.add(plural)
        self.last_second = max(self.last_second, self.loop.time() + seconds)
        self.loop.call_later(seconds, self.board.kinds_away.discard, plural)

    def _api_slow(self, seconds: int) -> None:
        """For 40 seconds, every answer takes so long."""
        self.board.be_slow(seconds)
        self.loop.call_later(40, self.board.be_slow, 0.0)

    def _other_process_id(self, ordinal: int) -> None:
        """Somebody made the process file anew, and the container starts with it."""
        known = self.nodes.truth.process_ids[ordinal]
        self.nodes.truth.process_ids[ordinal] = ProcessId.parse(str(known).replace("-4000-", "-4999-"))
        self.nodes.kill(ordinal)

    def _own_process_id(self, ordinal: int) -> None:
        known = self.nodes.truth.process_ids[ordinal]
        self.nodes.truth.process_ids[ordinal] = ProcessId.parse(str(known).replace("-4999-", "-4000-"))
        self.nodes.kill(ordinal)

    def _disturbed(self) -> None:
        self.disturbed_at = self.loop.time()

    # Where it comes to rest.

    def statefulset(self) -> Json:
        """The StatefulSet; a stand-in where there is none."""
        found = self.store.get("statefulsets", NAMESPACE, NAME)
        return found or {"metadata": {}, "spec": {"replicas": 0}, "status": {}}

    def unrest(self) -> str | None:
        """What is not yet as the user wants it; None: the world is at rest."""
        if self.is_deleted:
            left = sorted({plural for plural, _, _ in self.store.objects} & OWNED)
            return f"{', '.join(left)} are left of what was deleted" if left else None
        return next((what for what, is_so in self._rest() if not is_so()), None)

    def _rest(self) -> tuple[tuple[str, Callable[[], object]], ...]:
        own, status = self.statefulset(), self.app().get("status", {})
        desired = self.desired()
        budget = self.store.get("poddisruptionbudgets", NAMESPACE, NAME) or {"spec": {}}
        conditions = {each["type"]: each["status"] for each in status.get("conditions", ())}
        truth = self.group.truth
        return (
            ("granted is not desired", lambda: own["spec"]["replicas"] == desired),
            ("a record is left", lambda: "streamapp.dev/hold-record" not in own["metadata"].get("annotations", {})),
            ("the budget is closed", lambda: budget["spec"].get("maxUnavailable") == 1),
            ("pods are missing", lambda: sorted(self.nodes.alive()) == list(range(desired))),
            ("surplus pods", lambda: len(self.nodes.pods()) == desired),
            ("pods of an old template", lambda: {_revision(pod) for pod in self.nodes.pods()} == {revision(own)}),
            ("tasks do not run", lambda: everything_runs(truth, self.group.tasks)),
            ("the group is not done", lambda: not truth.follow_up),
            ("status.stateful_set_replicas is wrong", lambda: status.get("statefulSetReplicas") == desired),
            ("status is of an old generation", self._is_observed),
            ("status says it has not converged", lambda: desired == 1 or conditions.get("Converged") == "True"),
            ("status says it is held", lambda: conditions.get("ScaleDownHeld") == "False"),
            ("somebody is told to leave", lambda: not self._told_to_leave()),
            ("status breaks its laws", lambda: not self._violations(status)),
        )

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
        now = self.loop.now() + CLOCKS_APART
        return violations(status, generation=self.app()["metadata"]["generation"], now=now)


def _names(tasks: Iterable[TaskId]) -> str:
    return "/".join(str(task.partition) for task in sorted(tasks)) or "none"


def _revision(pod: Json) -> str:
    return str(pod["metadata"]["labels"]["controller-revision-hash"])


def fresh_picture(replicas: int, shape: Shape, **spec: Any) -> Picture:
    """Nothing but the StreamApp, just applied."""
    store = ObjectStore(lambda: NOW)
    store.put("streamapps", a_stream_app(replicas, **spec))
    return Picture(store.objects, GroupTruth(replace(shape)), NodesTruth(), store.version)


def a_stream_app(replicas: int, **spec: Any) -> Json:
    """The StreamApp."""
    return {
        "apiVersion": "streamapp.dev/v1alpha1",
        "kind": "StreamApp",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
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


def copied(picture: bytes) -> Picture:
    """A picture to begin a run with."""
    found: Picture = pickle.loads(picture)  # noqa: S301 (made by this process)
    return found
