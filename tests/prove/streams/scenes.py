"""Scenes of an application with `group.protocol=streams`: with standbys that its users set, or on demand."""

from tests.prove.scene import Ends, Scene
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


def _by_word(**counts: int) -> Ends:
    """What came of it was by the user's word alone."""
    alone = counts.get("removals", 0) + counts.get("restarts", 0)
    return Ends(counted=(("by a word alone", alone), *counts.items()))


def _undescribed(
    name: str, replicas: int, *happens: Happening, seconds: int = 40, retention: str = "", ends: Ends
) -> Scene:
    """Brokers do not describe the group for a while, and the user lets pods leave and restart all the same."""
    first: tuple[Happening, ...] = ((2, "at-once", 0), (3, "group-undescribed", seconds))
    at = tuple(Disturbance("second", second, what, which) for second, what, which in (*first, *happens))
    name = f"streams-undescribed-{name}"
    return Scene(name, replicas, at, streams=True, retention=retention, ends=ends, share=0.5)


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
    _undescribed("4-2", 4, (4, "wish", 2), ends=_by_word(removals=2)),
    _undescribed(
        "kill", 3, (2, "starts-take", 35), (8, "kill", 0), (12, "wish", 2), seconds=70, ends=_by_word(removals=1)
    ),
    _undescribed("delete", 3, (2, "stops-take", 25), (8, "delete", 0), (9, "wish", 2), ends=_by_word(removals=1)),
    _undescribed("rollout", 3, (4, "template", 2), ends=_by_word(restarts=3)),
    _undescribed(
        *("claim-deleted", 3, (4, "delete-claim", 2), (18, "wish", 2), (50, "restart-anew", 2)),
        ends=_by_word(removals=1),
        seconds=90,
    ),
    _undescribed(
        *("claims-stay", 3, (6, "refuse-statefulset", 403), (7, "claims-stay", 0), (8, "wish", 2)),
        (30, "refuse-statefulset", 0),
        ends=_by_word(removals=1),
        retention="whenScaled",
    ),
    _on_demand("leader-dies", 3, (10, "wish", 2), (22, "leader-dies", 0), operators=2),
)
