"""Scenes of holds that end otherwise than by a copy that has caught up, and of pods that go together.

Each has its own ends (`Ends`): what must have come of it where nothing else goes wrong. The guarantees hold besides.
"""

from tests.prove.scene import WHY, Ends, Scene
from tests.prove.story import Disturbance

Happening = tuple[int, str, int]


def _at(*happens: Happening) -> tuple[Disturbance, ...]:
    return tuple(Disturbance("second", second, what, which) for second, what, which in happens)


def _counted(**counts: int) -> tuple[tuple[str, int], ...]:
    return tuple(counts.items())


def _timed_out(
    name: str, replicas: int, policy: str, *happens: Happening, on_demand: bool = False, ends: Ends
) -> Scene:
    """Copies stand still for longer than the hold may last."""
    return Scene(
        name,
        replicas,
        _at(*happens),
        standbys=0 if on_demand else 1,
        on_demand=on_demand,
        times_out=policy,
        ends=ends,
        share=0.2,
    )


_STILL: Happening = (3, "stand-still", 170)
_FORCED, _IN_TIME = f"forced by Timeout: {WHY}", "forced in time"
_STALLED, _GAVE_UP = "Stalled=True NoProgress", "ScaleDownHeld=True GaveUp"

_TIME_OUTS = (
    _timed_out(
        *("hold-waits", 3, "Wait", _STILL, (4, "wish", 2)),
        ends=Ends(told=(_STALLED,), counted=_counted(removals=1)),
    ),
    _timed_out(
        *("hold-gives-up", 3, "GiveUp", _STILL, (4, "wish", 2), (400, "pause", 2)),
        ends=Ends(told=(_GAVE_UP,), counted=_counted(removals=1)),
    ),
    _timed_out(
        *("hold-gives-up-then-raise", 3, "GiveUp", _STILL, (4, "wish", 2), (120, "wish", 4)),
        ends=Ends(told=(_GAVE_UP,), counted=_counted(removals=0)),
    ),
    _timed_out(
        *("hold-proceeds", 3, "Proceed", _STILL, (4, "wish", 2)),
        ends=Ends(told=(_FORCED, _IN_TIME), counted=_counted(removals=1)),
    ),
    _timed_out(
        *("hold-proceeds-operator-dies", 3, "Proceed", _STILL, (4, "wish", 2), (45, "die", 0)),
        ends=Ends(told=(_FORCED, _IN_TIME), counted=_counted(removals=1)),
    ),
    # Before the next process reads, after 47 s, the scale-down is called off and begins again: its time counts anew.
    _timed_out(
        *("hold-called-off-unseen", 3, "Proceed", _STILL, (4, "wish", 2), (45, "die", 0)),
        *((46, "wish", 3), (47, "wish", 2)),
        ends=Ends(told=(_FORCED, _IN_TIME), counted=_counted(removals=1)),
    ),
    # The same within a moment, so that no pass of the one process reads the replicas in between.
    _timed_out(
        *("hold-called-off-between-passes", 3, "Proceed", _STILL, (4, "wish", 2), (45, "call-off", 2)),
        ends=Ends(told=(_FORCED, _IN_TIME), counted=_counted(removals=1)),
    ),
    # A pod that lost its state restores: until that is over, one follow-up rebalance is scheduled after another.
    _timed_out(
        *("hold-proceeds-wiped", 3, "Proceed", _STILL, (4, "wish", 2), (8, "wipe", 0)),
        ends=Ends(told=(_FORCED, _IN_TIME), counted=_counted(removals=1)),
    ),
    _timed_out(
        *("drain-proceeds", 3, "Proceed", _STILL, (4, "wish", 2)),
        on_demand=True,
        ends=Ends(told=(_FORCED, _IN_TIME), counted=_counted(removals=1)),
    ),
    _timed_out(
        *("drain-gives-up", 3, "GiveUp", _STILL, (4, "wish", 2), (230, "pause", 2)),
        on_demand=True,
        ends=Ends(told=(_GAVE_UP,), counted=_counted(removals=1)),
    ),
)

_OVERRIDDEN = f"forced by Override: {WHY}"
_AGAIN: tuple[Happening, ...] = ((30, "override", 0), (40, "wish", 3), (55, "wish", 2))
"""A user overrides the hold, calls the scale-down off, and begins another one later."""
_OVERRIDES = (
    Scene(
        *("hold-overridden", 3, _at((3, "stand-still", 170), (4, "wish", 2), (20, "override", 0))),
        ends=Ends(told=(_OVERRIDDEN,), counted=_counted(removals=1)),
        share=0.3,
    ),
    # In the second hold copies stand still until 203 s: nobody may go before.
    Scene(
        "hold-overridden-in-a-dry-run",
        3,
        _at((3, "stand-still", 200), (4, "wish", 2), (20, "dry-run", 60), *_AGAIN),
        ends=Ends(counted=_counted(removals=1)),
        share=0.3,
    ),
    Scene(
        "hold-overridden-while-invalid",
        3,
        _at((3, "stand-still", 200), (4, "wish", 2), (20, "break-spec", 60), *_AGAIN),
        ends=Ends(counted=_counted(removals=1)),
        share=0.3,
    ),
)

_FULL = ("Ready=False VolumeFull",)
_FULL_VOLUMES = (
    Scene(
        *("volume-full", 3, _at((4, "fill", 1), (60, "grow", 2))),
        sized=True,
        ends=Ends(told=_FULL, counted=_counted(removals=0, restarts=0), keeps_pods=True),
        share=0.3,
    ),
    Scene(
        *("volume-full-in-hold", 4, _at((4, "wish", 3), (6, "fill", 1), (60, "grow", 2))),
        sized=True,
        ends=Ends(told=_FULL, counted=_counted(removals=1, restarts=0)),
        share=0.3,
    ),
    Scene(
        *("volume-full-raise", 2, _at((4, "fill", 1), (30, "wish", 3), (60, "grow", 2))),
        sized=True,
        ends=Ends(told=_FULL, counted=_counted(removals=0, restarts=0)),
        share=0.3,
    ),
    Scene(
        *("drain-volume-full", 3, _at((4, "wish", 2), (6, "fill", 0), (60, "grow", 2))),
        standbys=0,
        on_demand=True,
        sized=True,
        ends=Ends(told=_FULL, counted=_counted(removals=1, restarts=0)),
        share=0.3,
    ),
)

_NEVER_RAN = (
    Scene(
        "several-never-ran",
        2,
        _at((4, "broken-template", 0), (5, "wish", 5), (14, "wish", 2), (16, "template", 1)),
        ends=Ends(counted=_counted(removals=1, evictions=0)),
        share=0.5,
    ),
    Scene(
        "several-never-ran-above-one",
        2,
        _at((4, "wish", 3), (70, "broken-template", 0), (71, "wish", 5), (80, "wish", 2), (82, "template", 1)),
        ends=Ends(counted=_counted(removals=2)),
        share=0.5,
    ),
)

_AUTOSCALERS = (
    # One pod a period, as by the policies of a HorizontalPodAutoscaler; down, and up again before all have left.
    Scene(
        "autoscaler-one-by-one",
        4,
        _at((4, "wish", 3), (19, "wish", 2), (34, "wish", 1), (100, "wish", 2), (115, "wish", 3)),
        share=0.5,
    ),
    Scene(
        "autoscaler-turns",
        4,
        _at((4, "wish", 3), (7, "wish", 2), (14, "wish", 3)),
        ends=Ends(counted=_counted(removals=1)),
        share=0.5,
    ),
    Scene(
        "drain-autoscaler-turns",
        4,
        _at((4, "wish", 3), (9, "wish", 2), (14, "wish", 3)),
        standbys=0,
        on_demand=True,
        restore=4_000.0,
        ends=Ends(counted=_counted(removals=1)),
        share=0.3,
    ),
    Scene(
        "drain-4-2-4",
        4,
        _at((4, "wish", 2), (14, "wish", 4)),
        standbys=0,
        on_demand=True,
        restore=4_000.0,
        ends=Ends(counted=_counted(removals=0), keeps_pods=True, keeps_tasks=True),
        share=0.5,
    ),
    Scene(
        "drain-4-2-4-2",
        4,
        _at((4, "wish", 2), (14, "wish", 4), (18, "wish", 2)),
        standbys=0,
        on_demand=True,
        restore=8_000.0,
        share=0.3,
    ),
)

_TOGETHER = (
    Scene(
        *("idle-5-3", 5, _at((4, "wish", 3))),
        tasks=2,
        ends=Ends(counted=_counted(removals=1)),
        share=0.5,
    ),
    Scene(
        *("idle-5-2", 5, _at((4, "wish", 2))),
        tasks=2,
        ends=Ends(counted=_counted(removals=2)),
        share=0.5,
    ),
)

_ROLLOUTS = (
    # The template and the replicas change together: the pod that leaves goes after the rollout.
    Scene(
        "template-and-replicas",
        3,
        _at((4, "template", 2), (4, "wish", 2)),
        ends=Ends(told=("ScaleDownHeld=True RolloutInProgress",), counted=_counted(removals=1, restarts=2)),
        share=0.5,
    ),
    Scene(
        *("hold-in-rollout", 3, _at((4, "template", 2), (25, "wish", 2))),
        ends=Ends(told=("Converged=False RolloutInProgress",), counted=_counted(removals=1)),
        share=0.5,
    ),
    Scene(
        "drain-template-and-replicas",
        3,
        _at((4, "template", 2), (4, "wish", 2)),
        standbys=0,
        on_demand=True,
        ends=Ends(counted=_counted(removals=1)),
        share=0.5,
    ),
)

HOLDS = (*_TIME_OUTS, *_OVERRIDES, *_FULL_VOLUMES, *_NEVER_RAN, *_AUTOSCALERS, *_TOGETHER, *_ROLLOUTS)
