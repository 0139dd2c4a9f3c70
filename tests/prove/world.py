"""One small world: the store, the nodes, the groups, the operators' processes and the judges; what can happen in it.

A world has one StreamApp or several, and begins at rest, as a picture of one that was brought up by the operator itself
(`pictures`).
"""

import pickle
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from streamapp.core.facts.ids import TaskId
from streamapp.kube.client.kinds import Key
from tests.kube.object_store import ObjectStore, Stored
from tests.prove.calls import Switchboard
from tests.prove.collector import Collector
from tests.prove.evictions.cluster import PATIENCE, Cluster
from tests.prove.evictions.scheduler import a_node
from tests.prove.fleet.court import Court
from tests.prove.fleet.cross_judge import CrossJudge, Place
from tests.prove.fleet.operators import Operators
from tests.prove.fleet.played_app import PlayedApp, a_stream_app
from tests.prove.fleet.setup import PROCESSES_APART, Setup
from tests.prove.group import Group, GroupTruth, Shape
from tests.prove.instance import Instance, Lives
from tests.prove.judge import Findings
from tests.prove.judge_raises import ANSWERS_OF_A_TAKE_OVER, ANSWERS_OF_LATE_WATCHES
from tests.prove.kubelet import APPS_APART, KEY, Nodes
from tests.prove.nodes_truth import NodesTruth
from tests.prove.replicas.deployment import Deployment
from tests.prove.replicas.gate import GatedLoop
from tests.prove.replicas.leader_judge import LeaderJudge
from tests.prove.replicas.replica import Surroundings
from tests.prove.scene import FIRST_ID, Neighbour, Scene
from tests.prove.story import Disturbance
from tests.prove.streams.setup import a_group, a_truth
from tests.prove.virtual_time import VirtualLoop
from tests.support.example import NOW

Json = dict[str, Any]
INVALID = 422
"""How the API server answers if an admission policy denies a request and names no status of its own."""
GIVEN_UP_AFTER = 90.0
"""Seconds without any event after which users give up what brokers would not let go without a restore."""


@dataclass(slots=True)
class Picture:
    """All that is true at one moment, without anything that is going on."""

    objects: dict[tuple[str, str, str], Stored]
    groups: dict[str, GroupTruth]
    """By application ID."""
    nodes: dict[Key, NodesTruth]
    """By StreamApp, the first one first."""
    version: int

    @property
    def group(self) -> GroupTruth:
        """Of the first StreamApp."""
        return next(iter(self.groups.values()))


class World:
    """One run's."""

    def __init__(self, loop: VirtualLoop, scene: Scene, seed: int, picture: Picture) -> None:
        self.loop, self._scene = loop, scene
        chance = random.Random(seed)  # noqa: S311 (plays a story, protects nothing)
        self.last_second = 0.0
        """When the last thing happens that happens by the clock."""
        self.board = Switchboard(self.happen, chance)
        self.board.disturbed, self.board.now = self._disturbed, loop.time
        self.board.has_several = bool(scene.others)
        self.store = ObjectStore(loop.now, picture.version)
        self.store.graceful = frozenset({"pods"})
        self.store.objects = dict(picture.objects)
        self._groups = {name: a_group(truth, loop, chance) for name, truth in picture.groups.items()}
        for truth in picture.groups.values():
            truth.at = loop.time()
        others = random.Random(f"collector {seed}")  # noqa: S311 (as above; apart, so that it moves no other draw)
        self.collector = Collector(self.store, loop, others)
        self._findings = Findings()
        self.apps = [self._played(key, truth, chance) for key, truth in picture.nodes.items()]
        """The first one is that of scenes with a single StreamApp."""
        self.apps[0].ends = scene.ends
        self.judge = Court(
            self.board,
            self._findings,
            {one.key: one.judge for one in self.apps},
            {one.key: one.group for one in self.apps},
        )
        if scene.others:
            self._judge_between()
        self._set_answers()
        self.cluster = Cluster(loop, self.store, self.board, self.apps[0], seed) if scene.has_nodes else None
        self.lives = self._deployment(seed) if scene.operators else Operators([*map(self._lives_of, scene.setups)])
        self.disturbed_at = loop.time()
        for group in self._groups.values():
            group.completed.append(partial(self._tell_generation, group))

    def _played(self, key: Key, truth: NodesTruth, chance: random.Random) -> PlayedApp:
        group = self._groups[self._application_id(key)]
        nodes = Nodes(truth, self.store, group, self.loop, chance, self.collector, key)
        nodes.zones, nodes.sized = self._scene.zones, self._scene.sized
        nodes.is_probed = not self._scene.unprobed
        one = PlayedApp(self.loop, self.store, self.board, self.collector, nodes, group, self._findings)
        one.body = next((body_of(self._scene, other) for other in self._scene.others if other.key == key), {})
        return one

    def _judge_between(self) -> None:
        """Judge also what an operator does for one StreamApp and what lands on another."""
        places = {
            one.key: Place(
                self._application_id(one.key),
                self._installation(one.key),
                one.nodes,
                one.group,
                is_quiet=self._scene.is_quiet and one is not self.apps[0],
            )
            for one in self.apps
        }
        between = CrossJudge(self.store, self.board, places, self._findings, self.loop.time)
        between.restores = self._scene.restores
        self.judge.between = between
        for one in self.apps:
            one.owner, one.rival_leaves = partial(between.owner, one.key), partial(between.is_left, one.key)

    def _application_id(self, key: Key) -> str:
        return next((one.application_id for one in self._scene.others if one.key == key), FIRST_ID)

    def _installation(self, key: Key) -> int:
        return next((one.installation for one in self._scene.others if one.key == key), 0)

    def _set_answers(self) -> None:
        for one in self.apps:
            if self._scene.behind:
                one.judge.raises.answers = ANSWERS_OF_LATE_WATCHES
            if self._scene.operators:
                one.judge.raises.answers = ANSWERS_OF_A_TAKE_OVER
                one.judge.raises.replicas = self._scene.operators

    # The parts of the first StreamApp, which is the only one of most scenes.

    @property
    def group(self) -> Group:
        """Its group."""
        return self.apps[0].group

    @property
    def nodes(self) -> Nodes:
        """Its controllers and kubelets."""
        return self.apps[0].nodes

    def statefulset(self) -> Json:
        """Its StatefulSet; a stand-in where there is none."""
        return self.apps[0].statefulset()

    def app(self) -> Json:
        """Itself."""
        return self.apps[0].app()

    # The processes.

    def _lives_of(self, setup: Setup) -> Lives:
        return Lives(partial(self._process, setup), self.loop, self.board, setup.number * PROCESSES_APART)

    def _process(self, setup: Setup, number: int, lives: Lives) -> Instance:
        around = (self.loop, self.store, self._groups, self.board, self.judge, lives)
        return Instance(number, *around, behind=self._scene.behind, setup=setup)

    def _deployment(self, seed: int) -> Deployment:
        """Several replicas of the operator, and the judge of their Lease."""
        assert isinstance(self.loop, GatedLoop)
        (setup,) = self._scene.setups
        around = Surroundings(
            *(self.loop, self.store, self.board, self._groups, self.judge, self._scene.behind, setup.namespaces),
            watches_nodes=setup.watches_nodes,
        )
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
        self.judge.struck(one)
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
        groups = {name: group.truth for name, group in self._groups.items()}
        nodes = {one.key: one.nodes.truth for one in self.apps}
        return Picture(self.store.objects, groups, nodes, self.store.version)

    # What happens.

    def happen(self, what: str, which: int) -> bool:
        """Let it happen, with `@` and a number to that StreamApp; False: nothing of this name happens in the world."""
        what, _, text = what.partition("@")
        number = int(text or 0)
        makers: Mapping[str, Callable[[int], object]] = {
            **self.apps[number].deeds(),
            **(self.cluster.deeds() if self.cluster is not None else {}),
            "api-slow": self._api_slow,
            "pods-away": lambda seconds: self._kind_away("pods", seconds),
            "claims-away": lambda seconds: self._kind_away("persistentvolumeclaims", seconds),
            "budgets-away": lambda seconds: self._kind_away("poddisruptionbudgets", seconds),
            "forbid": lambda seconds: self._namespace_away(number, 403, seconds),
            "fail": lambda seconds: self._namespace_away(number, 500, seconds),
            "silence": lambda seconds: self._namespace_away(number, 0, seconds),
            "refuse-template": lambda status: setattr(self.board, "refuses_template", status),
            "refuse-statefulset": self._refuse_statefulset,
            "deny": self._deny,
            **self.lives.deeds(self._installation(self.apps[number].key)),
        }
        if what not in makers:
            return False
        makers[what](which)
        return True

    def _namespace_away(self, number: int, status: int, seconds: int) -> None:
        """For so long, nothing of the namespace of a StreamApp can be read or written."""
        namespace = self.apps[number].key.namespace
        self.board.namespaces_away[namespace] = status
        self.last_second = max(self.last_second, self.loop.time() + seconds)
        self.loop.call_later(seconds, self.board.namespaces_away.pop, namespace, None)
        for one in self.apps:
            if one.key.namespace == namespace:
                one.judge.raises.silent_for(seconds)
            elif not status:
                one.judge.raises.reads_late_for(seconds)

    def _kind_away(self, plural: str, seconds: int) -> None:
        """For so long, one kind of object cannot be read; all others can."""
        self.board.kinds_away.add(plural)
        self.last_second = max(self.last_second, self.loop.time() + seconds)
        self.loop.call_later(seconds, self.board.kinds_away.discard, plural)

    def _refuse_statefulset(self, status: int) -> None:
        """Refuse every write of a template and of a retention policy; those of replicas alone pass."""
        self.board.refuses_template = self.board.refuses_retention = status

    def _deny(self, seconds: int) -> None:
        """For so long, an admission policy denies every write of a StatefulSet, as most of them do."""
        self.board.denies = INVALID
        until = self.loop.time() + seconds
        self.last_second = max(self.last_second, until)
        self.loop.call_at(until, setattr, self.board, "denies", 0)
        for one in self.apps:
            one.judge.raises.denied_for(seconds)

    def _api_slow(self, seconds: int) -> None:
        """For 40 seconds, every answer takes so long."""
        self.board.be_slow(seconds)
        self.loop.call_later(40, self.board.be_slow, 0.0)

    def _disturbed(self) -> None:
        self.disturbed_at = self.loop.time()

    def _tell_generation(self, group: Group) -> None:
        if self.board.is_told:
            members = group.truth.members.values()
            shares = ", ".join(
                f"{member.id} runs {_names(member.running)} of {_names(member.active)}, "
                f"has {_names(member.standby)}{'' if member.is_alive else ' (dead)'}"
                for member in members
            )
            self.board.tell(f"generation {group.truth.generation}: {shares}")

    # Where it comes to rest.

    def unrest(self) -> str | None:
        """What is not yet as its users want it; None: the world is at rest."""
        if self.cluster is not None and (left := self.cluster.unrest(self.restored_within)):
            return left
        found = ((one.key, one.unrest()) for one in self.apps)
        key, why = next(((key, why) for key, why in found if why is not None), (KEY, None))
        return f"{key}: {why}" if why is not None and self.board.has_several else why

    def gives_up(self) -> bool:
        """Whether a user has just given up what is held with good reason, for ever."""
        if self.loop.time() <= max(self.last_second, self.disturbed_at) + GIVEN_UP_AFTER:
            return False
        has_given_up = any(one.gives_up() for one in self.apps)
        if has_given_up:
            self.board.tell("--- a user gives up")
            self._disturbed()
        return has_given_up

    @property
    def restored_within(self) -> float:
        """Seconds that two restores of everything take, in the slowest group, and the turns of drained pods."""
        restores = max(2 * one.truth.end / one.truth.shape.restore for one in self._groups.values())
        return restores + (PATIENCE if self.cluster is not None else 0.0)


def _names(tasks: Iterable[TaskId]) -> str:
    return "/".join(str(task.partition) for task in sorted(tasks)) or "none"


def fresh_picture(replicas: int, shape: Shape, **spec: Any) -> Picture:
    """Nothing but one StreamApp, just applied."""
    store = ObjectStore(lambda: NOW)
    store.put("streamapps", a_stream_app(KEY, replicas, **spec))
    return Picture(store.objects, {FIRST_ID: GroupTruth(replace(shape))}, {KEY: NodesTruth()}, store.version)


def picture_of(scene: Scene) -> Picture:
    """Nothing but the StreamApps that are there from the beginning, just applied."""
    store = ObjectStore(lambda: NOW)
    operator = scene.setups[0].name if scene.is_labelled else ""
    store.put("streamapps", a_stream_app(KEY, scene.replicas, operator, **scene.spec))
    for other in scene.others:
        if other.is_there:
            store.put("streamapps", body_of(scene, other))
    for number in range(scene.replicas + 1 if scene.has_nodes else 0):
        store.put("nodes", a_node(number))
    groups = {name: a_truth(replace(shape), name) for name, shape in scene.shapes.items()}
    nodes = {other.key: NodesTruth(numbers=(at + 1) * APPS_APART) for at, other in enumerate(scene.others)}
    return Picture(store.objects, groups, {KEY: NodesTruth(), **nodes}, store.version)


def body_of(scene: Scene, other: Neighbour) -> Json:
    """What the users of another StreamApp apply."""
    operator = scene.setups[other.installation].name if scene.is_labelled else ""
    return a_stream_app(other.key, other.replicas, operator, **other.spec)


def copied(picture: bytes) -> Picture:
    """A picture to begin a run with."""
    found: Picture = pickle.loads(picture)  # noqa: S301 (made by this process)
    return found
