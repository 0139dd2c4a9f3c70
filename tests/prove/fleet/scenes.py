"""Scenes with several StreamApps: neighbours, rivals for one application ID, lost namespaces, two operators.

What happens with `@1` happens to the first of `others`. `NEAR` has the name of one of the first StreamApp's pods.
"""

from streamapp.kube.client.kinds import Key
from tests.prove.kubelet import KEY
from tests.prove.scene import FIRST_ID, Neighbour, Scene
from tests.prove.story import Disturbance

NEAR = Key(KEY.namespace, f"{KEY.name}-2")
FAR = Key("shop", KEY.name)
HOUR = 3600
BOTH = (KEY.namespace, FAR.namespace)
RIVAL = Neighbour(key=NEAR, replicas=2, application_id=FIRST_ID, is_there=False)
FAR_RIVAL = Neighbour(key=FAR, replicas=2, application_id=FIRST_ID, is_there=False)


def _at(*happens: tuple[int, str, int]) -> tuple[Disturbance, ...]:
    return tuple(Disturbance("second", second, what, which) for second, what, which in happens)


_SCALED = _at((4, "wish", 3), (5, "wish@1", 2), (40, "wish@1", 4), (41, "wish", 4))
_DRAINED = (Neighbour(key=FAR, standbys=0, on_demand=True),)

NEIGHBOURS = (
    Scene("two-apps", 4, _SCALED, others=(Neighbour(key=NEAR),), share=0.5),
    Scene("two-namespaces", 4, _SCALED, others=(Neighbour(key=FAR),), share=0.5),
    Scene(
        "two-drains",
        3,
        _at((4, "wish", 2), (5, "wish@1", 2), (50, "wish@1", 3)),
        standbys=0,
        on_demand=True,
        others=_DRAINED,
        share=0.5,
    ),
    Scene(
        "quiet-neighbours",
        3,
        _at((4, "wish", 2), (12, "kill", 0), (60, "wish", 3)),
        others=(Neighbour(key=NEAR), Neighbour(key=FAR, application_id="third")),
        is_quiet=True,
        share=0.5,
    ),
    Scene(
        "neighbours-brokers-away",
        4,
        _at((3, "brokers-away@1", 150), (4, "wish", 3), (60, "wish", 5), (70, "wish@1", 4)),
        others=(Neighbour(key=NEAR),),
        share=0.5,
    ),
    Scene(
        "neighbours-agents-away",
        3,
        _at((3, "agents-away@1", 150), (4, "wish@1", 2), (5, "wish", 2), (60, "wish", 4), (70, "wish@1", 4)),
        standbys=0,
        on_demand=True,
        others=_DRAINED,
        share=0.5,
    ),
)
RIVALS = (
    Scene(
        "rival-before",
        4,
        _at((4, "wish", 3), (40, "wish", 5), (60, "delete-app@1", 0)),
        others=(Neighbour(key=NEAR, replicas=2, application_id=FIRST_ID),),
        share=0.5,
    ),
    Scene(
        "rival-in-hold",
        4,
        _at((4, "wish", 2), (10, "create@1", 0), (40, "delete-app@1", 0)),
        others=(RIVAL,),
        share=0.5,
    ),
    Scene(
        "far-rival-in-hold",
        4,
        _at((4, "wish", 3), (10, "create@1", 0), (30, "wish", 5), (60, "delete-app@1", 1)),
        others=(FAR_RIVAL,),
        watched=BOTH,
        share=0.5,
    ),
    Scene("rival-after", 3, _at((4, "wish", 2), (60, "create@1", 0), (70, "wish", 4)), others=(RIVAL,), share=0.5),
    Scene(
        "older-rival",
        4,
        _at((4, "wish", 3), (10, "create@1", HOUR), (40, "wish", 4), (50, "wish", 2)),
        others=(FAR_RIVAL,),
        share=0.5,
    ),
    Scene(
        "older-rival-new-process",
        4,
        _at((4, "create@1", HOUR), (10, "wish", 3), (20, "die", 0), (40, "wish", 5)),
        others=(RIVAL,),
        share=0.5,
    ),
    Scene(
        "owner-deleted", 3, _at((4, "wish", 2), (10, "create@1", 0), (30, "delete-app", 0)), others=(RIVAL,), share=0.5
    ),
    Scene("owner-deleted-slowly", 3, _at((4, "create@1", 0), (20, "delete-app", 1)), others=(FAR_RIVAL,), share=0.5),
)
NAMESPACES = tuple(
    Scene(
        f"namespace-{name}",
        4,
        _at((3, f"{what}@1", 180), (4, "wish", 3), (60, "wish", 5), (70, "wish@1", 4), (90, "wish", 3)),
        others=(Neighbour(key=FAR),),
        watched=BOTH,
        share=0.5,
    )
    for name, what in (("forbidden", "forbid"), ("fails", "fail"), ("silent", "silence"))
)
LOST_IN_HOLD = (
    Scene(
        "namespace-silent-new-process",
        4,
        _at((4, "wish@1", 2), (12, "silence@1", 150), (20, "wish", 3), (27, "die", 0), (28, "wish", 5)),
        others=(Neighbour(key=FAR),),
        watched=BOTH,
        share=0.5,
    ),
)
OPERATORS = (
    Scene("two-operators", 4, _SCALED, others=(Neighbour(key=FAR, installation=1),), installations=2, share=0.5),
    Scene(
        "two-operators-in-a-namespace",
        4,
        _SCALED,
        others=(Neighbour(key=NEAR, installation=1),),
        installations=2,
        is_labelled=True,
        share=0.5,
    ),
)
REPLICAS = (
    Scene(
        "two-replicas-two-apps",
        4,
        _at((10, "wish", 3), (11, "wish@1", 2), (19, "leader-dies", 0), (40, "wish@1", 4)),
        operators=2,
        apart=60.0,
        others=(Neighbour(key=NEAR),),
        share=0.5,
    ),
    Scene(
        "replicas-namespace-silent",
        4,
        _at((5, "silence@1", 150), (10, "wish", 3), (20, "leader-dies", 0), (21, "wish", 5)),
        operators=2,
        apart=60.0,
        others=(Neighbour(key=FAR),),
        watched=BOTH,
        share=0.5,
    ),
    Scene(
        "replicas-namespace-silent-in-hold",
        4,
        _at((5, "silence@1", 150), (10, "wish", 3)),
        operators=2,
        apart=60.0,
        others=(Neighbour(key=FAR),),
        watched=BOTH,
        share=0.5,
    ),
)
_LEARNERS = (Neighbour(key=NEAR, standbys=0, on_demand=True, restore=4_000.0),)
_TWO_LEARNERS = (*_LEARNERS, Neighbour(key=FAR, application_id="third", standbys=0, on_demand=True, restore=4_000.0))


def _budget(
    name: str, happens: tuple[Disturbance, ...], others: tuple[Neighbour, ...] = _LEARNERS, share: float = 0.5
) -> Scene:
    """One place for learners, and learners that take their time."""
    return Scene(name, 3, happens, standbys=0, on_demand=True, restore=4_000.0, others=others, restores=1, share=share)


BUDGETS = (
    _budget("budget-of-one", _at((4, "wish", 2), (5, "wish@1", 2), (5, "wish@2", 2)), _TWO_LEARNERS, share=0.3),
    _budget("budget-raise", _at((4, "wish", 2), (5, "wish@1", 2), (30, "wish@1", 4))),
    _budget("budget-pause", _at((4, "wish", 2), (5, "wish@1", 2), (30, "pause", 40))),
    _budget("budget-invalid", _at((4, "wish", 2), (5, "wish@1", 2), (20, "break-spec", 60)), share=0.3),
    _budget("budget-deleted", _at((4, "wish", 2), (5, "wish@1", 2), (30, "delete-app", 0))),
    _budget("budget-rollout", _at((4, "template", 2), (5, "wish@1", 2)), share=0.3),
    _budget("budget-new-process", _at((4, "wish", 2), (5, "wish@1", 2), (30, "die", 0))),
)
_STANDBYS = (Neighbour(key=NEAR, standbys=0, on_demand=True, restore=4_000.0, streams=True),)


def _of_streams(
    name: str, happens: tuple[Disturbance, ...], others: tuple[Neighbour, ...] = _STANDBYS, restores: int = 1
) -> Scene:
    """Groups of the streams protocol, whose standbys are raised on demand."""
    return Scene(
        *(f"streams-{name}", 3, happens),
        standbys=0,
        on_demand=True,
        streams=True,
        restore=4_000.0,
        others=others,
        restores=restores,
        share=0.3,
    )


STANDBYS_OF_TWO = (
    _of_streams("two-raises", _at((4, "wish", 2), (5, "wish@1", 2), (40, "wish@1", 3)), restores=0),
    _of_streams("raise-beside-a-hold", _at((3, "agents-away@1", 150), (4, "wish@1", 2), (5, "wish", 2))),
    _of_streams("budget-of-one", _at((4, "wish", 2), (5, "wish@1", 2))),
    _of_streams("budget-called-off", _at((4, "wish", 2), (5, "wish@1", 2), (30, "wish", 3))),
    _of_streams("budget-deleted", _at((4, "wish", 2), (5, "wish@1", 2), (30, "delete-app", 0))),
    _of_streams("budget-new-process", _at((4, "wish", 2), (5, "wish@1", 2), (30, "die", 0))),
    _of_streams("budget-of-two-protocols", _at((4, "wish", 2), (5, "wish@1", 2)), _LEARNERS),
)
FLEET = (*NEIGHBOURS, *RIVALS, *NAMESPACES, *LOST_IN_HOLD, *OPERATORS, *REPLICAS, *BUDGETS, *STANDBYS_OF_TWO)
