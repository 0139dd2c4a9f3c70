"""A small world for `migrate`: an operator, a StatefulSet and brokers that move on by one step between two looks.

They stand in for real ones, which the lab's tests have: only there do a broker and a JVM show that it is so.
"""

import hashlib
import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from streamapp.api.http.messages import GroupTold, Task, Tasks, group_path, tasks_path
from streamapp.api.names import MIGRATION, TEMPLATE_HASH
from tests.builders import NOW
from tests.cli.cluster import NAMESPACE, Cluster
from tests.cli.conftest import Ran
from tests.cli.operator_there import OperatorThere
from tests.streamapps import stored

Json = dict[str, Any]
NAME = "wordcount"
VARIABLE = "GROUP_PROTOCOL"
TO_STREAMS = ("--env", f"{VARIABLE}=streams")
TO_CLASSIC = ("--env", f"{VARIABLE}=classic")
REPLICAS = 3
CLASSIC = ("classic", REPLICAS, REPLICAS, {VARIABLE: "classic", "LEVEL": "info"}, None, None)
STREAMS = ("streams", REPLICAS, REPLICAS, {VARIABLE: "streams", "LEVEL": "info"}, None, None)
HPAS = "horizontalpodautoscalers"


def zulu(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def an_autoscaler(name: str = "cpu", policy: str | None = None, **metadata: Any) -> Json:
    behavior = {} if policy is None else {"behavior": {"scaleUp": {"selectPolicy": policy}}}
    target = {"apiVersion": "streamapp.dev/v1alpha1", "kind": "StreamApp", "name": NAME}
    return {
        "metadata": {"namespace": NAMESPACE, "name": name, **metadata},
        "spec": {"minReplicas": 2, "maxReplicas": 5, "scaleTargetRef": target, **behavior},
    }


@dataclass
class World:
    """What runs beside the command."""

    cluster: Cluster
    there: OperatorThere
    pods: int = REPLICAS
    ready: int = REPLICAS
    members: int = REPLICAS
    protocol: str = "classic"
    static_members: int = 0
    support: bool | None = True
    release: str | None = "4.3"
    now: datetime = NOW
    ticks: int = 0
    stays: set[str] = field(default_factory=set)
    """What does not move: `pods`, `members`, `template`, `convergence`."""
    is_silent: bool = False
    """The operator does not say what it knows of the group."""
    ignores_template: bool = False
    """The application has another setting for its protocol."""
    steps: list[Json] = field(default_factory=list)
    on_tick: Callable[["World"], None] = lambda _: None
    ran: list[tuple[str, int]] = field(default_factory=list)
    """Protocol and number of the pods that started, each time."""
    converged_at: datetime = NOW - timedelta(hours=1)

    def begin(self, **changes: Any) -> None:
        """Have it run and settled, with what is changed of the StreamApp."""
        container = "spec.template.spec.containers.0.env"
        fields = {container: [{"name": VARIABLE, "value": self.protocol}, {"name": "LEVEL", "value": "info"}]}
        agent = {"spec.agent": {"enabled": True}, "metadata.generation": 1}
        paths = {path.replace("__", "."): value for path, value in changes.items()}
        self.cluster.put(stored({**fields, **agent, **paths}))
        self._put_statefulset()
        self._tell()

    async def tick(self) -> None:
        """Move on by one step; the command pauses meanwhile."""
        self.ticks += 1
        self.now += timedelta(seconds=1)
        self.on_tick(self)
        self._move()
        self._tell()

    @property
    def app(self) -> Json:
        """The StreamApp."""
        return self.cluster.get(NAME)

    @property
    def desired(self) -> int:
        return int(self.app["spec"]["replicas"])

    @property
    def record(self) -> Json | None:
        """The migration on record."""
        text = self.app["metadata"].get("annotations", {}).get(MIGRATION)
        return None if text is None else json.loads(text)

    @property
    def env(self) -> dict[str, str]:
        """The variables of the application in the StreamApp."""
        return {one["name"]: one["value"] for one in self.app["spec"]["template"]["spec"]["containers"][0]["env"]}

    @property
    def end(self) -> tuple[Any, ...]:
        """What counts in the end: protocol and pods, the StreamApp's replicas, template and record."""
        allow_zero = self.app["spec"].get("scaleDown", {}).get("allowZero")
        return (self.protocol, self.pods, self.desired, self.env, self.record, allow_zero)

    def policy(self, name: str = "cpu") -> str | None:
        """Of the scale-ups of an autoscaler."""
        found = self.cluster.do(lambda server: server.get("horizontalpodautoscalers", NAMESPACE, name))
        assert found is not None
        policy: str | None = found["spec"].get("behavior", {}).get("scaleUp", {}).get("selectPolicy")
        return policy

    def _move(self) -> None:
        if self.desired == 0 and self.pods:
            if "pods" not in self.stays:
                self.steps.insert(0, {"from": self.pods, "to": 0, "at": zulu(self.now), "duration": "1s"})
                self.pods = self.ready = 0
            return
        if self.members and not self.pods:
            self.members = self.members if "members" in self.stays else 0
            return
        if self._template_hash() != self._written_hash() and self.pods == 0 and "template" not in self.stays:
            self._put_statefulset()
            return
        if self.desired > 0 and self.pods != self.desired:
            self.pods = self.desired
            self.protocol = self.protocol if self.ignores_template else self._written_protocol()
            self.ran.append((self.protocol, self.pods))
            return
        if self.pods and self.ready != self.pods and "convergence" not in self.stays:
            self.ready = self.members = self.pods
            self.converged_at = self.now

    def _put_statefulset(self) -> None:
        template = deepcopy(self.app["spec"]["template"])
        metadata = {"namespace": NAMESPACE, "name": NAME, "annotations": {TEMPLATE_HASH: self._template_hash()}}
        self.there.put("statefulsets", {"metadata": metadata, "spec": {"template": template}})

    def _statefulset(self) -> Json:
        found = self.cluster.do(lambda server: server.get("statefulsets", NAMESPACE, NAME))
        assert found is not None
        return found

    def _written_hash(self) -> str:
        return str(self._statefulset()["metadata"]["annotations"][TEMPLATE_HASH])

    def _written_protocol(self) -> str:
        env = self._statefulset()["spec"]["template"]["spec"]["containers"][0]["env"]
        return str({one["name"]: one["value"] for one in env}[VARIABLE])

    def _template_hash(self) -> str:
        return hashlib.sha256(json.dumps(self.app["spec"]["template"], sort_keys=True).encode()).hexdigest()

    def _tell(self) -> None:
        """Write the status as the operator would, and answer."""
        app, is_there = self.app, self.members > 0 or self.protocol != "none"
        runs = self.pods == self.ready == self.desired > 0 == (self.members == 0)
        is_held = self.desired < self.pods
        generation = app["metadata"]["generation"]

        def condition(kind: str, status: bool, reason: str) -> Json:
            changed = self.converged_at if status else self.now
            told = {"observedGeneration": generation, "lastTransitionTime": zulu(changed)}
            return {"type": kind, "status": str(status), "reason": reason, "message": reason, **told}

        app["status"] = {
            "observedGeneration": generation,
            "replicas": self.pods,
            "statefulSetReplicas": self.pods,
            "readyReplicas": self.ready,
            "lastSteps": self.steps[:5],
            "conditions": [
                condition("Converged", runs, "Converged" if runs else "PodsNotReady"),
                condition("Ready", runs, "Ready" if runs else "PodsNotReady"),
                condition("Reconciling", False, "Steady"),
                condition("ScaleDownHeld", is_held, "Stabilizing" if is_held else "Steady"),
                condition("Stalled", False, "Steady"),
            ],
        }
        self.cluster.put(app)
        self._tell_of_group(is_there=is_there)

    def _tell_of_group(self, *, is_there: bool) -> None:
        """Answer about the group and its tasks as the operator would."""
        told = GroupTold(
            namespace=NAMESPACE,
            name=NAME,
            as_of=self.now,
            protocol=self.protocol if is_there else None,
            state="Stable" if self.members else "Empty",
            members=self.members,
            static_members=self.static_members,
            settled=self.members > 0,
            streams_supported=True if self.protocol == "streams" else self.support,
            broker_release=self.release,
        )
        body = told.as_json().replace(b"{", b'{"toldAt":"' + self.now.isoformat().encode() + b'",', 1)
        if self.is_silent:
            self.there.answers.pop(group_path(NAMESPACE, NAME), None)
        else:
            self.there.answers[group_path(NAMESPACE, NAME)] = (200, body)
        table = Tasks(
            namespace=NAMESPACE,
            name=NAME,
            as_of=self.now,
            tasks=tuple(Task(task=f"0_{number}", stateful=True, records=1000) for number in range(6)),
        )
        self.there.tell(tasks_path(NAMESPACE, NAME), table)


def interrupt_at(world: World, tick: int) -> None:
    def interrupt(world: World) -> None:
        if world.ticks == tick:
            raise KeyboardInterrupt

    world.on_tick = interrupt


def refused(ran: Ran, world: World, code: str) -> None:
    assert ran.code == 1
    assert f"{code}:" in ran.err
    assert (world.cluster.written, world.record, world.desired) == ([], None, REPLICAS)
