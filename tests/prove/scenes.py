"""The scenes: what the application is like, and what its user does, before anything goes wrong."""

from typing import Any

from tests.prove.bare.scenes import BARE
from tests.prove.event_scenes import EVENTS
from tests.prove.evictions.scenes import EVICTIONS
from tests.prove.fleet.scenes import FLEET
from tests.prove.holds.scenes import HOLDS
from tests.prove.scene import Ends, Scene
from tests.prove.story import Disturbance
from tests.prove.streams.scenes import STREAMS


def _at(*happens: tuple[int, str, int]) -> tuple[Disturbance, ...]:
    return tuple(Disturbance("second", second, what, which) for second, what, which in happens)


def _drain(
    name: str, replicas: int, happens: tuple[Disturbance, ...], restore: float = 40_000.0, retention: str = ""
) -> Scene:
    """With learners on demand, and nothing else."""
    return Scene(name, replicas, happens, standbys=0, on_demand=True, restore=restore, retention=retention)


def _shifted(name: str, replicas: int, *happens: tuple[int, str, int], at: int = 4, **shape: Any) -> Scene:
    """Somebody moves the ordinals, while a quota lets no further pod be made, and moves them back after a while."""
    back = 110
    moved = (at, "pods-refused", back + 10 - at), (at, "shift-ordinals", 1), (back, "shift-ordinals", 0)
    ends = Ends(told=("ScaleDownHeld=True OrdinalsShifted",))
    return Scene(f"ordinals-{name}", replicas, _at(*moved, *happens), ends=ends, share=0.3, **shape)


SHIFTED = (
    _shifted("shifted", 3, (6, "wish", 2)),
    _shifted("shifted-in-a-drain", 3, (6, "wish", 2), standbys=0, on_demand=True),
    _shifted("shifted-undescribed", 3, (2, "at-once", 0), (3, "group-undescribed", 60), (6, "wish", 2), streams=True),
    _shifted(
        "shifted-never-ran", 2, (4, "broken-template", 0), (5, "wish", 3), (16, "wish", 2), (112, "template", 1), at=14
    ),
)

SCENES = {
    scene.name: scene
    for scene in (
        Scene("down-4-3", 4, _at((4, "wish", 3))),
        Scene("down-4-2", 4, _at((4, "wish", 2))),
        Scene("down-3-2", 3, _at((4, "wish", 2)), threads=2),
        Scene("down-2-1", 2, _at((4, "wish", 1))),
        Scene("down-up-down", 3, _at((4, "wish", 2), (12, "wish", 3), (20, "wish", 2))),
        Scene("up-2-3", 2, _at((4, "wish", 3))),
        Scene("up-1-4-down", 1, _at((4, "wish", 4), (9, "wish", 2))),
        Scene("kill", 3, _at((14, "kill", 1))),
        Scene("kill-in-hold", 3, _at((4, "wish", 2), (13, "kill", 0))),
        Scene("kill-of-a-fast-clock", 3, _at((2, "skew", 3), (14, "kill", 1))),
        Scene("down-on-a-slow-server", 4, _at((3, "api-slow", 2), (4, "wish", 3))),
        Scene("down-by-slow-controllers", 3, _at((2, "controllers-take", 6), (4, "wish", 2))),
        Scene("down-by-slow-stops", 4, _at((2, "stops-take", 25), (4, "wish", 2)), standbys=2),
        Scene("rollout", 2, _at((4, "template", 2))),
        Scene("template-in-hold", 3, _at((4, "wish", 2), (10, "template", 2))),
        Scene("pause-in-hold", 3, _at((4, "wish", 2), (10, "pause", 15))),
        Scene("dry-run-in-hold", 3, _at((4, "wish", 2), (10, "dry-run", 15))),
        _drain("drain-dry-run", 3, _at((4, "wish", 2), (11, "dry-run", 15))),
        Scene("to-zero-and-back", 2, _at((4, "wish", 0), (110, "wish", 3)), zero=True, share=0.3),
        Scene("behind", 3, _at((3, "slow", 10_300), (4, "wish", 2)), rate=300.0),
        Scene("never-ran", 2, _at((4, "broken-template", 0), (5, "wish", 3), (14, "wish", 2), (16, "template", 1))),
        Scene(
            *("never-ran-beside-another-process-id", 2),
            _at(
                *((4, "broken-template", 0), (5, "wish", 3), (6, "other-process-id", 0), (70, "wish", 2)),
                *((90, "own-process-id", 0), (92, "template", 1)),
            ),
            share=0.3,
        ),
        Scene(
            *("never-ran-beside-a-doubled-process-id", 2),
            _at(
                *((4, "broken-template", 0), (5, "wish", 3), (6, "same-process-id", 0), (70, "wish", 2)),
                *((90, "own-process-id", 0), (92, "template", 1)),
            ),
            share=0.3,
        ),
        Scene(
            *("brokers-away", 3, _at((4, "wish", 2), (12, "brokers-away", 20))),
            ends=Ends(told=("KafkaReachable=False BrokersUnreachable", "ScaleDownHeld=True BrokersUnreachable")),
        ),
        Scene("failover-in-hold", 3, _at((4, "wish", 2), (12, "fail-over", 120))),
        Scene(
            *("failover-of-a-restart", 3),
            _at((2, "starts-take", 35), (4, "wish", 2), (9, "kill", 0), (11, "fail-over", 115)),
        ),
        _drain("drain-failover", 3, _at((4, "wish", 2), (12, "fail-over", 130))),
        # The raise comes while a policy denies the StatefulSet, and right after that two times at which it was denied.
        Scene("raise-denied", 2, _at((3, "deny", 38), (6, "wish", 3))),
        Scene("raise-denied-in-hold", 3, _at((4, "wish", 2), (9, "deny", 40), (11, "wish", 4)), share=0.5),
        Scene("raise-without-brokers", 2, _at((3, "brokers-away", 40), (6, "wish", 3))),
        Scene("raise-without-pods", 2, _at((3, "pods-away", 300), (150, "wish", 3))),
        Scene("raise-without-claims", 2, _at((3, "claims-away", 300), (150, "wish", 3))),
        Scene("raise-in-hold-without-budgets", 3, _at((4, "wish", 2), (9, "budgets-away", 120), (60, "wish", 4))),
        Scene(
            *("other-process-id", 3, _at((4, "wish", 2), (16, "other-process-id", 0), (50, "own-process-id", 0))),
            ends=Ends(told=("ProcessIdentityStable=False ProcessIdMismatch",)),
        ),
        Scene(
            *("other-process-id-above", 3, _at((4, "wish", 2), (16, "other-process-id", 2), (70, "own-process-id", 2))),
            ends=Ends(told=("ProcessIdentityStable=False ProcessIdMismatch",)),
        ),
        _drain("drain-3-2", 3, _at((4, "wish", 2))),
        _drain("drain-4-2", 4, _at((4, "wish", 2))),
        _drain("drain-up-down", 3, _at((4, "wish", 2), (11, "wish", 3), (22, "wish", 2))),
        _drain("drain-pause", 3, _at((4, "wish", 2), (11, "pause", 15))),
        _drain("drain-up-2-3", 2, _at((4, "wish", 3))),
        _drain("drain-rollout", 2, _at((4, "template", 2))),
        Scene("copies-3-2-3", 3, _at((4, "wish", 2), (60, "wish", 3)), copies=2, share=0.5),
        Scene("copies-2-1-2", 2, _at((4, "wish", 1), (60, "wish", 2)), copies=2, share=0.5),
        Scene("copies-4-1-2", 4, _at((4, "wish", 1), (160, "wish", 2)), standbys=2, copies=2, share=0.3),
        Scene("zones-4-3-4", 4, _at((4, "wish", 3), (60, "wish", 4)), zones="abab", share=0.5),
        Scene("zones-up-4-down", 3, _at((4, "wish", 4), (40, "wish", 3)), standbys=2, zones="abca", share=0.3),
        Scene("drain-copies", 3, _at((4, "wish", 2), (70, "wish", 3)), standbys=0, on_demand=True, copies=2, share=0.5),
        Scene(
            "drain-zones", 3, _at((4, "wish", 2), (70, "wish", 3)), standbys=0, on_demand=True, zones="aba", share=0.5
        ),
        Scene(
            *("drain-tight-memory", 3, _at((4, "wish", 2), (60, "wish", 3))),
            standbys=0,
            on_demand=True,
            memory=10 << 20,
            share=0.3,
        ),
        Scene(
            "streams-tight-memory", 3, _at((4, "wish", 2), (60, "wish", 3)), streams=True, memory=10 << 20, share=0.5
        ),
        Scene("restart", 3, _at((4, "restart", 1))),
        Scene("restart-anew", 3, _at((4, "restart-anew", 1), (5, "restart", 0)), share=0.5),
        Scene("restart-two-anew", 3, _at((4, "restart-anew", 1), (5, "restart-anew", 2)), share=0.5),
        Scene("restart-in-hold", 4, _at((4, "wish", 2), (9, "restart-anew", 0)), share=0.5),
        Scene("restart-then-leave", 3, _at((4, "restart-anew", 2), (6, "wish", 2)), share=0.5),
        Scene("static-restart-anew", 3, _at((4, "restart-anew", 1)), static=True),
        _drain("drain-restart-anew", 3, _at((4, "restart-anew", 1))),
        Scene("node-lost", 3, _at((4, "wish", 2), (12, "lose", 1))),
        Scene("wiped-in-hold", 3, _at((4, "wish", 2), (8, "wipe", 0)), restore=2_000.0, share=0.3),
        Scene("wiped-slowly", 3, _at((4, "wish", 2), (8, "wipe", 0)), restore=500.0, share=0.1),
        Scene("up-then-down-later", 3, _at((4, "wish", 4), (100, "wish", 2)), share=0.5),
        Scene("up-slowly-then-down", 2, _at((4, "wish", 4), (40, "wish", 2)), restore=2_000.0),
        _drain("drain-slowly", 3, _at((4, "wish", 2)), restore=4_000.0),
        Scene("static-members", 3, _at((4, "wish", 2), (10, "kill", 1)), static=True),
        Scene("static-node-lost", 3, _at((4, "wish", 2), (12, "lose", 0)), static=True),
        Scene(
            *("claim-deleted-by-hand", 3),
            _at((4, "fill", 2), (6, "delete-claim", 2), (70, "template", 2), (140, "restart-anew", 2)),
            sized=True,
        ),
        Scene(
            *("rollout-beside-an-ill-leaver", 3, _at((4, "template", 2), (14, "fill", 2), (60, "wish", 2))),
            sized=True,
            ends=Ends(counted=(("volumes made larger", 0),)),
        ),
        Scene("down-up-without-claims", 3, _at((4, "wish", 2), (30, "wish", 3)), retention="whenScaled whenDeleted"),
        Scene("claims-stay-in-hold", 4, _at((4, "wish", 2), (12, "claims-stay", 0)), retention="whenScaled"),
        Scene(
            "claims-stay-refused",
            3,
            # After the second join: a pass that cannot write the template triggers none.
            _at((6, "wish", 2), (20, "refuse-statefulset", 403), (21, "claims-stay", 0), (50, "refuse-statefulset", 0)),
            retention="whenScaled",
        ),
        _drain(
            "drain-other-process-id",
            3,
            _at((4, "wish", 2), (5, "other-process-id", 2), (60, "own-process-id", 2)),
        ),
        _drain(
            "drain-claims-stay",
            3,
            _at((3, "refuse-statefulset", 403), (4, "claims-stay", 0), (6, "wish", 2), (50, "refuse-statefulset", 0)),
            retention="whenScaled",
        ),
        Scene(
            "never-ran-claims-stay",
            2,
            _at(
                (4, "broken-template", 0),
                (5, "wish", 3),
                (13, "refuse-statefulset", 403),
                (14, "claims-stay", 0),
                (16, "wish", 2),
                (50, "refuse-statefulset", 0),
                (52, "template", 1),
            ),
            retention="whenScaled",
        ),
        Scene(
            *("deleted-in-a-pause", 3, _at((4, "pause", 300), (6, "claims-outlive", 0), (80, "delete-app", 0))),
            retention="whenDeleted",
            share=0.3,
        ),
        *SHIFTED,
        Scene("down-behind", 4, _at((4, "wish", 3)), behind=20.0, share=0.3),
        Scene(
            "down-up-down-far-behind", 3, _at((4, "wish", 2), (50, "wish", 3), (90, "wish", 2)), behind=50.0, share=0.2
        ),
        Scene("kill-behind", 3, _at((4, "wish", 2), (13, "kill", 0)), behind=30.0, share=0.3),
        Scene("kill-behind-a-fast-clock", 3, _at((2, "skew", 60), (14, "kill", 1)), behind=30.0, share=0.001),
        Scene("rollout-behind", 2, _at((4, "template", 2)), behind=30.0, share=0.2),
        Scene("pause-behind", 3, _at((4, "wish", 2), (10, "pause", 15)), behind=30.0, share=0.2),
        Scene("two-replicas", 4, _at((10, "wish", 3)), operators=2, apart=60.0),
        Scene("leader-dies-in-hold", 4, _at((10, "wish", 3), (19, "leader-dies", 0)), operators=2, apart=60.0),
        Scene(
            "leader-freezes-in-hold",
            4,
            _at((10, "wish", 3), (20, "leader-freezes", 25), (27, "wish", 4), (70, "wish", 2)),
            operators=3,
            apart=60.0,
        ),
        Scene("leader-cut-off", 3, _at((10, "wish", 2), (17, "leader-cut-off", 40)), operators=3, apart=60.0),
        Scene("leader-dies-raise", 2, _at((20, "leader-dies", 0), (21, "wish", 4)), operators=2, apart=60.0, share=0.5),
        Scene("leader-stops-in-hold", 4, _at((10, "wish", 2), (19, "leader-stops", 0)), operators=2, share=0.5),
        Scene("clock-set-forward", 4, _at((10, "wish", 2), (39, "clock-step", 60)), operators=1, share=0.5),
        Scene("clock-set-back", 4, _at((10, "wish", 3), (20, "clock-step", -60)), operators=1, share=0.5),
        Scene("clock-ahead", 3, _at((10, "wish", 2)), operators=1, apart=60.0, share=0.5),
        Scene("deleted-in-hold", 3, _at((4, "wish", 2), (10, "delete-app", 0))),
        Scene("deleted-with-claims", 3, _at((4, "wish", 2), (10, "delete-app", 1)), retention="whenDeleted"),
        *BARE,
        *HOLDS,
        *FLEET,
        *EVICTIONS,
        *STREAMS,
        *EVENTS,
    )
}
