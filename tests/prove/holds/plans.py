"""What befalls scenes of holds that time out or are overridden, and of volumes that can be full, beside all else."""

import random
from collections.abc import Iterator, Mapping

from tests.prove.scene import Scene
from tests.prove.story import Disturbance, Story


def is_own(scene: Scene) -> bool:
    """Whether something of the sort can happen in a scene."""
    return bool(scene.times_out) or scene.sized or is_overridden(scene)


def is_overridden(scene: Scene) -> bool:
    """Whether its user overrides a hold."""
    return any(one.what == "override" for one in scene.happens)


def of_overrides(scene: Scene, counts: Mapping[str, int], seed: int) -> Iterator[Story]:
    """At every second look the user overrides the hold, calls the scale-down off, or lets the operator do nothing."""
    deeds = (("override", 0), ("wish", scene.replicas), ("dry-run", 20), ("break-spec", 20))
    for number in range(2, counts.get("kafka", 0) + 1, 2):
        for what, which in deeds:
            yield Story(scene.name, seed, (Disturbance("kafka", number, what, which),), "override")


def any_of_holds(scene: Scene, counts: Mapping[str, int], chance: random.Random) -> Disturbance:
    """Copies stand still, a volume is full, or the user overrides a hold, at any time; or makes a volume larger."""
    site = chance.choice(("kafka", "write", "told", "second"))
    number = chance.randint(1, counts[site] or 60)
    if scene.sized:
        return Disturbance(site, number, "fill", chance.randrange(scene.replicas))
    if is_overridden(scene) and chance.random() < 0.7:
        what, which = chance.choice((("override", 0), ("dry-run", 20), ("break-spec", 20)))
        return Disturbance(site, number, what, which)
    if scene.times_out and chance.random() < 0.3:
        return Disturbance(site, number, "call-off", 2)
    return Disturbance(site, number, "stand-still", chance.randint(30, 150))
