"""An admission policy that denies StatefulSets for a while, in the answer that most of them give: 422.

It is another person's, who can change it at any moment. So a raise that was denied must be made soon after that.
"""

import random
from collections.abc import Iterator, Mapping

from tests.prove.scene import Scene
from tests.prove.story import Disturbance, Story

SECONDS = 25
"""More than the longest pause between two tries of a raise, less than the minute for which all else waits."""


def can_be_denied(scene: Scene) -> bool:
    """Whether a scene bears it: what users say of claims must come into force before pods or the StreamApp go."""
    return not scene.retention


def of_denials(scene: Scene, counts: Mapping[str, int], seed: int) -> Iterator[Story]:
    """At each write and each third look, together with a raise right after it."""
    for site, rare in (("write", 1), ("kafka", 3)) if can_be_denied(scene) else ():
        for number in range(rare, counts.get(site, 0) + 1, rare):
            denied = Disturbance(site, number, "deny", SECONDS)
            raised = Disturbance(site, number + 1, "wish", scene.replicas + 1)
            yield Story(scene.name, seed, (denied, raised), "denial")


def any_denial(counts: Mapping[str, int], chance: random.Random) -> Disturbance:
    """At any time, for less than half a minute."""
    site = chance.choice(("write", "kafka", "second"))
    return Disturbance(site, chance.randint(1, counts[site] or 60), "deny", chance.randint(2, SECONDS))
