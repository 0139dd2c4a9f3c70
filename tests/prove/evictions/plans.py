"""What befalls nodes and pods at every call of a scene that has nodes: cordons, drains, single evictions."""

import random
from collections.abc import Iterator, Mapping

from tests.prove.scene import Scene
from tests.prove.story import Disturbance, Story


def of_evictions(scene: Scene, counts: Mapping[str, int], seed: int) -> Iterator[Story]:
    """A node is cordoned or drained, or a pod is evicted, at each look, each second write, and each event."""
    for site, rare in (("kafka", 1), ("write", 2), ("told", 2)):
        for number in range(rare, counts.get(site, 0) + 1, rare):
            which = number // rare % scene.replicas
            for what in ("drain", "cordon", "evict"):
                yield Story(scene.name, seed, (Disturbance(site, number, what, which),), "eviction")
    for number in range(4, counts.get("kafka", 0) + 1, 4):
        yield Story(scene.name, seed, (Disturbance("kafka", number, "evict-at-turns"),), "eviction")


def any_eviction(scene: Scene, counts: Mapping[str, int], chance: random.Random) -> Disturbance:
    """Something of the sort, at any time."""
    what = chance.choice(("drain", "drain", "cordon", "uncordon", "evict", "evict", "evict-at-turns"))
    calls = ((site, counts[site]) for site in ("kafka", "write", "told"))
    site, most = chance.choice((("second", 60), *calls, ("removal", 1)))
    return Disturbance(site, chance.randint(1, most or 60), what, chance.randrange(scene.replicas + 1))
