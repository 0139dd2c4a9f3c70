"""What befalls the other StreamApps of a scene, at each call and in mixtures."""

import random
from collections.abc import Iterator, Mapping

from tests.prove.scene import FIRST_ID, Neighbour, Scene
from tests.prove.story import Disturbance, Story

HOUR = 3600


def of_neighbours(scene: Scene, counts: Mapping[str, int], seed: int) -> Iterator[Story]:
    """Their users act, their pods end, and what they depend on is away, at each look and each write."""
    if scene.is_quiet:
        return
    for at, other in enumerate(scene.others, 1):
        for site in ("kafka", "write"):
            for number in range(1, counts.get(site, 0) + 1):
                for what, which in _happenings(scene, other, number):
                    kind = "rival" if other.application_id == FIRST_ID else "neighbour"
                    yield Story(scene.name, seed, (Disturbance(site, number, f"{what}@{at}", which),), kind)


def any_of_neighbours(scene: Scene, counts: Mapping[str, int], chance: random.Random) -> Disturbance:
    """One of these, drawn."""
    at = chance.randint(1, len(scene.others))
    what, which = chance.choice(_happenings(scene, scene.others[at - 1], chance.randint(1, 6)))
    site = chance.choice(("kafka", "write", "second"))
    return Disturbance(site, chance.randint(1, counts[site] or 60), f"{what}@{at}", which)


def _happenings(scene: Scene, other: Neighbour, number: int) -> tuple[tuple[str, int], ...]:
    """What can befall it at a call; the rare things at some calls only."""
    if other.application_id == FIRST_ID:
        return (("create", 0), ("create", HOUR), ("delete-app", number % 2), ("wish", other.replicas + 1))
    common = (
        ("wish", other.replicas),
        ("wish", other.replicas + 1),
        ("wish", 1),
        ("kill", number % other.replicas),
        ("pause", 8),
        ("brokers-away", 40),
    )
    rare = (("delete-app", number % 4 // 2), ("template", 7), ("lose", 0)) if number % 2 else ()
    agents = (("agents-away", 40),) if other.on_demand else ()
    lost = ((("forbid", "fail", "silence")[number % 3], 60),) if len(scene.watched) > 1 else ()
    return (*common, *rare, *agents, *lost)
