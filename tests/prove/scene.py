"""What a scene is: the applications, who operates them, and what their users do before anything goes wrong."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from streamapp.kube.client.kinds import Key
from tests.prove.fleet.setup import NAMES, Setup
from tests.prove.group import Shape
from tests.prove.kubelet import KEY
from tests.prove.nodes_truth import APPLICATION, SIDECAR
from tests.prove.story import Disturbance

STATE: dict[str, object] = {
    "mountPath": "/state",
    "volumeClaimTemplate": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """Another StreamApp of a scene; its users act on it by what happens with `@` and its number, which begins at 1."""

    key: Key
    replicas: int = 3
    application_id: str = "other"
    """A rival has that of another one."""
    standbys: int = 1
    on_demand: bool = False
    streams: bool = False
    """Its group has the streams protocol."""
    restore: float = 40_000.0
    is_there: bool = True
    """From the beginning; else it is created by what happens."""
    installation: int = 0
    """The number of the operator that it belongs to."""

    @property
    def shape(self) -> Shape:
        """The application."""
        is_drained = self.on_demand and not self.streams
        return Shape(standbys=self.standbys, on_demand=is_drained, restore=self.restore, streams=self.streams)

    @property
    def spec(self) -> dict[str, object]:
        """What the StreamApp says beside what all of them say."""
        agent = AGENT if self.streams else {}
        return {**agent, **(LEARNERS if self.on_demand else {}), "applicationId": self.application_id}


FIRST_ID = "wordcount"
"""The application ID of the first StreamApp."""
EVICTIONS: dict[str, object] = {"disruption": {"policy": "WhenCaughtUp"}}
SOON = {"stabilizationWindow": "2s"}
NO_WINDOW = "soon"
"""A stabilization window that makes the spec invalid."""
TIMEOUT = 60.0
"""Seconds after which a hold waits on, gives up or proceeds, where a scene says which: the least."""
WHY = "the night shift needs the memory"
"""Why copies can be ignored then, in the words of the user."""
AGENT: dict[str, object] = {"agent": {"enabled": True}}
LEARNERS: dict[str, object] = {**AGENT, "learners": {"source": "OnDemand"}}


def template_of(image: str, *, sidecar: bool, name: str = APPLICATION) -> dict[str, object]:
    """A template of pods with this image, in a container of this name, as users write it."""
    return {"spec": {"containers": [*([SIDECAR] if sidecar else []), {"name": name, "image": image}]}}


def is_invalid(spec: Mapping[str, Any]) -> bool:
    """Whether users have made the spec invalid."""
    return bool(spec.get("scaleDown", {}).get("stabilizationWindow") == NO_WINDOW)


def must_wait(spec: Mapping[str, Any]) -> bool:
    """Whether users have said that nothing is done, or nothing that the operator can read."""
    return bool(spec.get("paused") or spec.get("dryRun") or is_invalid(spec))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """What must have come of a scene in which nothing goes wrong but what belongs to it."""

    told: tuple[str, ...] = ()
    """What the status has said at some time, as `HoldJudge` notes it."""
    counted: tuple[tuple[str, int], ...] = ()
    """What the judge has noted, and how often."""
    keeps_pods: bool = False
    """The pods are those of the beginning."""
    keeps_tasks: bool = False
    """Each task runs where it ran in the beginning."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One."""

    name: str
    replicas: int
    happens: tuple[Disturbance, ...]
    threads: int = 1
    tasks: int = 6
    rate: float = 50.0
    standbys: int = 1
    on_demand: bool = False
    restore: float = 40_000.0
    """Records a second that a copy catches up with."""
    share: float = 1.0
    """How many of its stories are in a sample, by those of other scenes; long stories have fewer."""
    static: bool = False
    """Members are static."""
    sidecar: bool = False
    """Pods have a second container, which stands before the application's."""
    unprobed: bool = False
    """Containers have no readiness probe: a pod is ready as soon as its container runs, before it takes part."""
    streams: bool = False
    """The group has the streams protocol; `standbys` are those that users set for it at the brokers."""
    retention: str = ""
    """What becomes of claims after a scale-down, or after the end; empty: nothing is said, so they stay."""

    copies: int = 0
    """The application's `scaleDown.minCopies`; 0: nothing is said."""
    zones: str = ""
    """The zone of each ordinal, a letter each; copies are then asked for in two zones."""
    zero: bool = False
    """The last pod can go, too: the application's `scaleDown.allowZero`."""
    memory: int = 0
    """Bytes that are free below each container's limit, of an application that asks for 64 MiB for each task."""

    times_out: str = ""
    """What a hold does after `TIMEOUT`: Wait, GiveUp or Proceed; empty: its user gave it an hour."""
    sized: bool = False
    """Volumes have a size: they can be full, and grow."""
    ends: Ends = Ends()

    behind: float = 0.0
    """So many seconds all watches but that of StreamApps are behind, for ever, their lists too."""

    has_nodes: bool = False
    """Kubernetes' nodes are there: pods run on them, they are cordoned and drained, and evictions wait for coverage."""

    operators: int = 0
    """Replicas of the operator that stand for a Lease; 0: one process without a Lease, that another follows."""
    apart: float = 0.0
    """Seconds by which the wall clocks of their nodes are off, at most; by which the only one is ahead."""

    others: tuple[Neighbour, ...] = ()
    """StreamApps beside the first one."""
    is_quiet: bool = False
    """Nothing happens to the other StreamApps, so nothing may be done to them."""
    watched: tuple[str, ...] = ()
    """Namespaces that the operator watches; empty: all."""
    installations: int = 1
    """Operators, each with StreamApps of its own."""
    restores: int = 0
    """The operator's `restores_per_cluster`; 0: no limit."""
    is_labelled: bool = False
    """Operators watch all namespaces, and labels on StreamApps say whose they are; else each watches its own."""

    @property
    def shape(self) -> Shape:
        """The application."""
        return Shape(
            threads=self.threads,
            tasks=self.tasks,
            rate=self.rate,
            restore=self.restore,
            probing=600.0 if self.restore >= 40_000 else 60.0,
            standbys=self.standbys,
            on_demand=self.on_demand and not self.streams,
            static=self.static,
            streams=self.streams,
            memory=self.memory,
        )

    @property
    def shapes(self) -> dict[str, Shape]:
        """The applications, by their IDs."""
        own = {FIRST_ID: self.shape}
        return {**own, **{other.application_id: other.shape for other in self.others}, **own}

    @property
    def spec(self) -> dict[str, object]:
        """What the StreamApp says beside what all of them say."""
        retention = dict.fromkeys(self.retention.split(), "Delete")
        evictions = EVICTIONS if self.has_nodes else {}
        agent = AGENT if self.streams else {}
        source = {"source": "OnDemand"} if self.on_demand else {}
        said = {"minCopies": self.copies, "minZones": 2 if self.zones else 0, "allowZero": self.zero}
        patience = {"timeout": "1m", "onTimeout": self.times_out, "reason": WHY} if self.times_out else {}
        asked = {**patience, **{name: word for name, word in said.items() if word}}
        return {
            **agent,
            **(LEARNERS if self.on_demand else {}),
            **({"learners": {**source, "memoryPerTask": "64Mi"}} if self.memory else {}),
            **({"scaleDown": {**SOON, **asked}} if asked else {}),
            **evictions,
            **({"container": APPLICATION, "template": template_of("app:1", sidecar=True)} if self.sidecar else {}),
            "state": {**STATE, "retention": retention},
        }

    @property
    def setups(self) -> tuple[Setup, ...]:
        """How each operator is installed."""
        if self.installations == 1:
            return (Setup(namespaces=self.watched, restores=self.restores, watches_nodes=self.has_nodes),)
        owners = ((KEY.namespace, 0), *((other.key.namespace, other.installation) for other in self.others))
        return tuple(
            Setup(
                number, name, () if self.is_labelled else tuple(sorted({at for at, whose in owners if whose == number}))
            )
            for number, name in enumerate(NAMES[: self.installations])
        )

    @property
    def ground(self) -> "Scene":
        """Scenes of the same ground begin with the same picture; how fast copies are restored makes none."""
        others = tuple(replace(other, restore=40_000.0) for other in self.others)
        plain = replace(self, name="", happens=(), restore=40_000.0, share=1.0, behind=0.0, operators=0, apart=0.0)
        plain = replace(plain, ends=Ends())
        return replace(plain, others=others, is_quiet=False, restores=0)
