"""What goes wrong at each read and write of a streams group's setting, and what another hand does to it meanwhile."""

import random
from collections.abc import Iterator, Mapping, Sequence

from tests.prove.scene import Scene
from tests.prove.story import Disturbance, Story

Fault = tuple[str, int]
CRASHES: Sequence[Fault] = (("crash-before", 0), ("crash-after", 0))
REFUSALS: Sequence[Fault] = (("refused", 0), ("timeout-before", 0), ("timeout-after", 0))
AT_SETTING_READS: Mapping[str, Sequence[Fault]] = {"kafka": REFUSALS}
AT_SETTING_WRITES: Mapping[str, Sequence[Fault]] = {
    "setting": REFUSALS,
    "crash": CRASHES,
    "freeze": (("freeze", 8), ("freeze", 12), ("freeze", 25), ("freeze-raise", 9)),
}
HANDS = (0, 1, 2, 9)
"""What another hand can set; 9 removes the value."""


def of_settings(scene: Scene, counts: Mapping[str, int], seed: int) -> Iterator[Story]:
    """Another hand writes at every write of the operator to the brokers, and at every fourth look and every write."""
    for site, rare in (("config-write", 1), ("kafka", 4), ("write", 2)):
        for number in range(rare, counts.get(site, 0) + 1, rare):
            for which in HANDS:
                yield Story(scene.name, seed, (Disturbance(site, number, "set-standbys", which),), "another hand")
    for number in range(1, counts.get("config-write", 0) + 1):
        for what, which in (("delete-app", 0), ("pause", 40), ("wish", scene.replicas), ("kill", 0), ("die", 0)):
            yield Story(scene.name, seed, (Disturbance("config-write", number, what, which),), "setting")


def any_of_settings(counts: Mapping[str, int], chance: random.Random) -> Disturbance:
    """Another hand, at any time."""
    site = chance.choice(("config-write", "kafka", "write", "second"))
    return Disturbance(site, chance.randint(1, counts[site] or 60), "set-standbys", chance.choice(HANDS))
