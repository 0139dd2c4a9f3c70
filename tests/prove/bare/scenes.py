"""Scenes of applications that have neither standbys nor learners: no other pod has the tasks of a pod that restarts.

Their containers have no readiness probe, so that a pod is ready long before its tasks run again.
"""

from tests.prove.scene import Ends, Scene
from tests.prove.story import Disturbance

Happening = tuple[int, str, int]
_SLOW_START: Happening = (2, "starts-take", 35)


def _bare(name: str, *happens: Happening, static: bool, restarts: int) -> Scene:
    at = tuple(Disturbance("second", second, what, which) for second, what, which in happens)
    ends = Ends(counted=(("restarts", restarts), ("removals", 0)))
    return Scene(name, 3, at, standbys=0, static=static, unprobed=True, ends=ends, share=0.3)


BARE = (
    _bare("bare-rollout", _SLOW_START, (4, "template", 2), static=True, restarts=3),
    _bare("bare-rollout-dynamic", _SLOW_START, (4, "template", 2), static=False, restarts=3),
    _bare("bare-kill-in-rollout", _SLOW_START, (4, "template", 2), (30, "kill", 0), static=True, restarts=3),
)
