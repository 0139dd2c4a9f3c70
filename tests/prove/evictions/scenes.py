"""Scenes with Kubernetes' nodes and `disruption.policy: WhenCaughtUp`: nodes are drained, and pods are evicted."""

from dataclasses import replace

from tests.prove.scene import Scene
from tests.prove.story import Disturbance

Happening = tuple[int, str, int]


def _evictions(name: str, replicas: int, *happens: Happening, operators: int = 0) -> Scene:
    """With standbys."""
    at = tuple(Disturbance("second", second, what, which) for second, what, which in happens)
    return Scene(name, replicas, at, has_nodes=True, operators=operators, apart=60.0 if operators else 0.0, share=0.2)


def _on_demand(name: str, replicas: int, *happens: Happening, operators: int = 0) -> Scene:
    """With learners on demand, and nothing else."""
    at = tuple(Disturbance("second", second, what, which) for second, what, which in happens)
    apart = 60.0 if operators else 0.0
    return Scene(
        *(name, replicas, at), standbys=0, on_demand=True, has_nodes=True, operators=operators, apart=apart, share=0.2
    )


def _streams(name: str, replicas: int, *happens: Happening) -> Scene:
    """With the streams protocol, and with a copy of each task on each pod: one pod is as well covered as another."""
    return replace(_evictions(name, replicas, *happens), standbys=replicas - 1, streams=True)


_CORDONED: tuple[Happening, ...] = ((4, "cordon", 0), (4, "cordon", 1), (4, "cordon", 2))
_TRIES: tuple[Happening, ...] = tuple((second, "evict", second % 3) for second in range(16, 75, 2))
"""As of a descheduler, one pod after the other."""

_TURNS: tuple[Happening, ...] = ((4, "cordon", 1), (4, "cordon", 2), (5, "evict-at-turns", 0))
"""Two nodes are to be drained. The turn passes from one to the other after 30 s, and both pods are evicted then."""

EVICTIONS = (
    _evictions("node-drain", 3, (6, "drain", 0)),
    _on_demand("node-drain-on-demand", 3, (6, "drain", 0)),
    _evictions("node-drain-two", 3, (6, "drain", 0), (6, "drain", 1)),
    _on_demand("node-drain-two-on-demand", 3, (6, "drain", 0), (6, "drain", 1)),
    _evictions("nodes-cordoned-first", 3, *_CORDONED, (6, "drain-in-turn", 210)),
    _on_demand("nodes-cordoned-first-on-demand", 3, *_CORDONED, (6, "drain-in-turn", 210)),
    _evictions("node-drain-in-hold", 4, (4, "wish", 3), (8, "drain", 0)),
    _on_demand("node-drain-in-hold-on-demand", 4, (4, "wish", 3), (8, "drain", 0)),
    _evictions("hold-in-node-drain", 4, (4, "drain", 0), (5, "wish", 3)),
    _on_demand("hold-in-node-drain-on-demand", 4, (4, "drain", 0), (12, "wish", 3)),
    _evictions("node-drain-in-rollout", 3, (4, "template", 2), (12, "drain", 0)),
    _on_demand("node-drain-in-rollout-on-demand", 3, (4, "template", 2), (12, "drain", 0)),
    _evictions("cordon-uncordon", 3, (4, "cordon", 0), (20, "uncordon", 0)),
    _on_demand(
        "cordon-uncordon-on-demand", 3, (4, "cordon", 0), (11, "uncordon", 0), (22, "cordon", 1), (90, "uncordon", 1)
    ),
    _evictions("evict", 3, (5, "evict", 0), (6, "evict", 1)),
    replace(_evictions("node-drain-behind", 3, (3, "slow", 10_300), (4, "drain", 0)), rate=300.0),
    _evictions("evict-after-changes", 3, (5, "kill", 2), *_TRIES),
    _evictions("evict-after-uncordon", 3, (4, "cordon", 3), (5, "cordon", 0), (24, "uncordon", 0), *_TRIES),
    _on_demand("evict-on-demand", 3, (5, "evict", 0), (6, "drain", 0), *_TRIES),
    _evictions("node-drain-leader-dies", 3, (10, "drain", 0), (11, "leader-dies", 0), operators=2),
    _on_demand("node-drain-leader-freezes", 3, (10, "drain", 0), (18, "leader-freezes", 25), operators=2),
    _evictions("node-drain-kill", 3, (6, "drain", 0), (8, "kill", 1), (30, "kill", 2)),
    _on_demand("node-drain-kill-on-demand", 3, (6, "drain", 0), (12, "kill", 1), (30, "kill", 2)),
    _streams("streams-node-turns", 3, *_TURNS, (100, "uncordon", 1), (100, "uncordon", 2)),
    _evictions("node-drain-without-room", 3, (3, "cordon", 3), (4, "drain-in-turn", 10), (150, "uncordon", 3)),
)
