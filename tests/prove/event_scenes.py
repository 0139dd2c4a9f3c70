"""Scenes of what befalls an application while Kubernetes shows nothing of it, or shows what it seldom shows.

Where it happens between a judgement and its write, every answer of the API server takes a second, so that there is time
for it.
"""

from tests.prove.scene import Ends, Scene
from tests.prove.story import Disturbance

Happening = tuple[int, str, int]
_SLOW: Happening = (3, "api-slow", 1)


def _at(*happens: Happening) -> tuple[Disturbance, ...]:
    return tuple(Disturbance("second", second, what, which) for second, what, which in happens)


EVENTS = (
    Scene("thread-replaced-in-hold", 3, _at((4, "wish", 2), (9, "thread-replaced", 0)), threads=2, share=0.5),
    Scene("thread-replaced-as-it-goes", 4, _at(_SLOW, (4, "wish", 3), (21, "thread-replaced", 0)), share=0.5),
    Scene("copy-lost-in-hold", 3, _at((4, "wish", 2), (9, "copy-lost", 0)), restore=4_000.0, share=0.5),
    Scene(
        # Only members tell a new process of state.
        "changelog-unseen-by-a-new-process",
        3,
        _at((3, "slow", 10_300), (4, "wish", 2), (4, "changelog-unseen", 55), (5, "die", 0)),
        rate=300.0,
        share=0.5,
    ),
    Scene(
        *("claim-lost-in-hold", 3, _at((4, "wish", 2), (6, "claim-lost", 0), (70, "claim-found", 0))),
        ends=Ends(told=("ProcessIdentityStable=False VolumeClaimMissing",)),
        share=0.5,
    ),
    Scene(
        "brokers-slow-in-rollout",
        3,
        _at((4, "wish", 2), (10, "template", 2), (16, "brokers-slow", 4)),
        share=0.5,
    ),
    Scene(
        # Its user does not ask for copies; but whom a restart would meet is unknown while no broker answers.
        *("brokers-away-in-a-rollout-at-once", 3, _at((2, "at-once", 0), (4, "template", 2), (5, "brokers-away", 75))),
        share=0.5,
    ),
    Scene("sidecar-ends", 3, _at((8, "sidecar-ends", 1), (20, "wish", 2), (24, "sidecar-ends", 0)), sidecar=True),
    Scene("quota-in-hold", 3, _at((3, "pods-refused", 60), (4, "wish", 4), (14, "wish", 2)), share=0.5),
    Scene("quota-in-rollout", 3, _at((4, "template", 2), (9, "pods-refused", 60), (20, "wish", 2)), share=0.5),
    Scene("container-renamed", 3, _at((4, "rename-container", 2), (25, "wish", 2)), share=0.5),
    Scene(
        "container-renamed-beside-a-sidecar",
        3,
        _at((4, "rename-container", 2), (25, "wish", 2), (30, "sidecar-ends", 0)),
        sidecar=True,
        share=0.5,
    ),
    Scene(
        *("statefulset-deleted-slowly", 3, _at((4, "statefulset-deleting", 60), (6, "wish", 2))),
        ends=Ends(told=("Ready=False StatefulSetMissing",), counted=(("removals", 1),)),
        share=0.5,
    ),
    Scene(
        # Standbys are put back for the pause, so that soon nobody tells of state any more.
        *("streams-demand-changelog-unseen", 3),
        _at((4, "wish", 2), (8, "changelog-unseen", 60), (14, "pause", 45)),
        standbys=0,
        on_demand=True,
        streams=True,
        share=0.5,
    ),
    Scene(
        *("streams-demand-copy-lost-as-it-goes", 3, _at(_SLOW, (4, "wish", 2), (37, "copy-lost", 0))),
        standbys=0,
        on_demand=True,
        streams=True,
        share=0.5,
    ),
)
