"""Scenes of an application with `group.protocol=streams`: with standbys that its users set, or on demand."""

from tests.prove.scene import Scene
from tests.prove.story import Disturbance

Happening = tuple[int, str, int]


def _standbys(
    name: str, replicas: int, *happens: Happening, standbys: int = 1, threads: int = 1, tasks: int = 6
) -> Scene:
    """With standbys that its users set."""
    at = tuple(Disturbance("second", second, what, which) for second, what, which in happens)
    return Scene(f"streams-{name}", replicas, at, standbys=standbys, threads=threads, tasks=tasks, streams=True)


def _on_demand(
    name: str, replicas: int, *happens: Happening, standbys: int = 0, restore: float = 40_000.0, operators: int = 0
) -> Scene:
    """With standbys that the operator asks for while it needs them."""
    at = tuple(Disturbance("second", second, what, which) for second, what, which in happens)
    apart = 60.0 if operators else 0.0
    return Scene(
        *(f"streams-demand-{name}", replicas, at),
        standbys=standbys,
        on_demand=True,
        restore=restore,
        streams=True,
        operators=operators,
        apart=apart,
    )


STREAMS = (
    _standbys("down-3-2", 3, (4, "wish", 2)),
    _standbys("down-4-2", 4, (4, "wish", 2), standbys=2),
    _standbys("threads-3-2", 3, (4, "wish", 2), threads=2, tasks=7, standbys=2),
    _standbys("down-up", 3, (4, "wish", 2), (12, "wish", 3)),
    _standbys("up-2-3", 2, (4, "wish", 3)),
    _standbys("kill", 3, (14, "kill", 1)),
    _standbys("kill-in-hold", 3, (4, "wish", 2), (13, "kill", 0)),
    _standbys("rollout", 3, (4, "template", 2), standbys=2),
    _standbys("set-in-hold", 3, (4, "wish", 2), (9, "set-standbys", 2), (60, "set-standbys", 1)),
    _standbys("failover-in-hold", 3, (4, "wish", 2), (12, "fail-over", 130)),
    _on_demand("down-3-2", 3, (4, "wish", 2)),
    _on_demand("down-4-2", 4, (4, "wish", 2)),
    _on_demand("one-down-4-3", 4, (4, "wish", 3), standbys=1),
    _on_demand("slowly", 3, (4, "wish", 2), restore=4_000.0),
    _on_demand("up-down", 3, (4, "wish", 2), (14, "wish", 3), (40, "wish", 2)),
    _on_demand("kill", 3, (4, "wish", 2), (16, "kill", 1)),
    _on_demand("operator-dies", 3, (4, "wish", 2), (14, "die", 0)),
    _on_demand("set-in-hold", 3, (4, "wish", 2), (14, "set-standbys", 2)),
    _on_demand("unset-in-hold", 4, (4, "wish", 3), (14, "set-standbys", 9), standbys=1),
    _on_demand("rollout", 3, (4, "template", 2)),
    _on_demand("pause", 3, (4, "wish", 2), (14, "pause", 45)),
    _on_demand("deleted", 3, (4, "wish", 2), (14, "delete-app", 0)),
    _on_demand("deleted-slowly", 3, (4, "wish", 2), (16, "delete-app", 1), restore=4_000.0),
    _on_demand("record-removed", 3, (4, "wish", 2), (16, "forget-record", 0), (20, "wish", 3)),
    _on_demand("leader-dies", 3, (10, "wish", 2), (22, "leader-dies", 0), operators=2),
)
