"""Which stories are played: every fault at every call of every scene, then random mixtures until there are enough."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tests.prove.denials import any_denial, can_be_denied, of_denials
from tests.prove.evictions.plans import any_eviction, of_evictions
from tests.prove.failover import FAILOVERS
from tests.prove.fleet.plans import any_of_neighbours, of_neighbours
from tests.prove.holds import plans as holds
from tests.prove.scene import Scene
from tests.prove.scenes import SCENES
from tests.prove.story import Disturbance, Story
from tests.prove.streams.plans import AT_SETTING_READS, AT_SETTING_WRITES, any_of_settings, of_settings

CRASHES = (("crash-before", 0), ("crash-after", 0))
ERRORS = (("timeout-before", 0), ("timeout-after", 0), ("429", 0), ("409", 0), ("500", 0))
FREEZES = (
    ("freeze", 8),
    ("freeze", 25),
    ("freeze-raise", 9),
    ("freeze-sending", 8),
    ("freeze-sending", 25),
    ("freeze-sending-raise", 9),
)
STALE = (("stale", 1), ("stale", 4), ("stale", 16))
KAFKA = (("refused", 0), ("timeout-before", 0), ("timeout-after", 0), ("ghost", 0))
EVENTS = (("lost", 0), ("doubled", 1), ("delayed", 5), ("delayed", 60), ("gap", 0))

Fault = tuple[str, int]

AT_WRITES: Mapping[str, Sequence[Fault]] = {"crash": CRASHES, "error": ERRORS, "freeze": FREEZES}
AT_READS: Mapping[str, Sequence[Fault]] = {
    "stale read": STALE,
    "error": (("timeout-before", 0), ("500", 0)),
    "crash": CRASHES[:1],
    "freeze": (("freeze", 12), ("freeze-raise", 12)),
}
AT_KAFKA: Mapping[str, Sequence[Fault]] = {"kafka": KAFKA, "crash": CRASHES, "freeze": (("freeze", 12),)}
AGENTS = (("silent", 0), ("silent", 1), ("old", 1), ("old", 2))
AT_AGENTS: Mapping[str, Sequence[Fault]] = {
    "agent": AGENTS,
    "crash": CRASHES,
    "freeze": (("freeze", 12), ("freeze", 25)),
}
AT_EVENTS: Mapping[str, Sequence[Fault]] = {"watch": EVENTS}
AT_TOLD: Mapping[str, Sequence[Fault]] = {"crash": CRASHES, "freeze": (("freeze", 12), ("freeze", 25))}
SITES: Mapping[str, Mapping[str, Sequence[Fault]]] = {
    "write": AT_WRITES,
    "kafka": AT_KAFKA,
    "agent": AT_AGENTS,
    "event": AT_EVENTS,
    "told": AT_TOLD,
    "read": AT_READS,
}

LONG_FREEZES = (
    ("freeze", 8),
    ("freeze", 25),
    ("freeze-raise", 18),
    ("freeze-sending", 8),
    ("freeze-sending", 25),
    ("freeze-sending-raise", 18),
)
CUTS = (("cut", 8), ("cut", 25))
LEASE_ERRORS = (("timeout-before", 0), ("timeout-after", 0), ("403", 0), ("409", 0), ("500", 0))
SITES_OF_REPLICAS: Mapping[str, Mapping[str, Sequence[Fault]]] = {
    "write": {"crash": CRASHES, "error": ERRORS, "freeze": LONG_FREEZES, "cut off": CUTS},
    "kafka": {"kafka": KAFKA, "crash": CRASHES, "freeze": (("freeze", 12), ("freeze", 25)), "cut off": CUTS},
    "event": AT_EVENTS,
    "told": AT_TOLD,
    "read": {
        "stale read": STALE,
        "error": (("timeout-before", 0), ("500", 0)),
        "crash": CRASHES[:1],
        "freeze": (("freeze", 12), ("freeze-raise", 18)),
        "cut off": CUTS[1:],
    },
    "lease": {
        "lease": (*LEASE_ERRORS, ("slow", 3), ("slow", 7), ("slow", 30)),
        "crash": CRASHES,
        "freeze": (("freeze", 9), ("freeze", 12), ("freeze", 25), ("freeze-sending", 12), ("freeze-sending", 25)),
        "cut off": CUTS,
    },
}
"""The same for several replicas and their Lease, which no freeze of less than ten seconds ends."""
OF_LEADERS: Sequence[Fault] = (
    ("leader-dies", 0),
    ("leader-stops", 0),
    ("leader-freezes", 9),
    ("leader-freezes", 25),
    ("leader-cut-off", 12),
    ("leader-cut-off", 40),
    ("standby-dies", 0),
    ("standby-freezes", 25),
    ("all-die", 0),
    ("clock-step", 60),
    ("clock-step", -60),
)

FAMILY = 25
"""Mixtures of one seed, which share their beginning."""

WHOLE = ("down-4-3",)
"""Scenes in which every fault meets every call, in every sweep of some length."""


def systematic(scene: Scene, counts: Mapping[str, int], seed: int = 1) -> Iterator[Story]:
    """Every fault at every call that an undisturbed run of the scene makes.

    Args:
        scene: The scene.
        counts: How many calls that run makes, by site.
        seed: Of that run.
    """
    for site, faults in sites_of(scene).items():
        for number in range(1, counts.get(site, 0) + 1):
            if site in {"read", "lease", "config"} and scene.name not in WHOLE and number % 4:
                continue
            for kind, each in faults.items():
                for what, which in each:
                    yield Story(scene.name, seed, (Disturbance(site, number, what, which),), kind)
    yield from _happenings(scene, counts, seed)


def sites_of(scene: Scene) -> Mapping[str, Mapping[str, Sequence[Fault]]]:
    """What can go wrong in a scene, by the call at which it does."""
    sites = SITES_OF_REPLICAS if scene.operators else SITES
    if scene.streams:
        without_ghosts = {**sites["kafka"], "kafka": KAFKA[:-1]}
        sites = {**sites, "kafka": without_ghosts, "config": AT_SETTING_READS, "config-write": AT_SETTING_WRITES}
    return sites


def _happenings(scene: Scene, counts: Mapping[str, int], seed: int) -> Iterator[Story]:
    """What users and nodes do, at every call; and a server that becomes slow at it."""
    yield from _changes(scene, counts, seed)
    yield from of_neighbours(scene, counts, seed)
    yield from _losses(scene, counts, seed)
    yield from _failovers(scene, counts, seed)
    yield from of_denials(scene, counts, seed)
    yield from _of_kinds(scene, counts, seed)
    kills = tuple(("kill", ordinal) for ordinal in range(scene.replicas))
    at_once = (("wish", scene.replicas), ("wish", scene.replicas + 1), ("pause", 8), ("template", 7))
    for site, number in _calls(counts, "removal"):
        for what, which in (*at_once, ("die", 0), *kills):
            yield Story(scene.name, seed, (Disturbance(site, number, what, which),), "after a removal")
    for site, number in _calls(counts, "kafka", "told"):
        yield Story(scene.name, seed, (Disturbance(site, number, "wish", scene.replicas),), "wish")
        for seconds in (1, 3, 4) if site == "kafka" else ():
            yield Story(scene.name, seed, (Disturbance(site, number, "api-slow", seconds),), "slow server")
    rare = 2 if scene.name in WHOLE else 6
    calls = (one for one in _calls(counts, "kafka", "told", "read", "write") if one[0] != "read" or one[1] % rare == 0)
    for site, number in calls:
        for what, which in kills:
            yield Story(scene.name, seed, (Disturbance(site, number, what, which),), "restart in place")


def _of_kinds(scene: Scene, counts: Mapping[str, int], seed: int) -> Iterator[Story]:
    """What befalls some scenes alone: nodes, settings of groups, replicas of the operator, claims."""
    if scene.has_nodes:
        yield from of_evictions(scene, counts, seed)
    if scene.streams:
        yield from of_settings(scene, counts, seed)
    if scene.operators:
        yield from _of_leaders(scene, counts, seed)
    if holds.is_overridden(scene):
        yield from holds.of_overrides(scene, counts, seed)
    if scene.retention:
        yield from _retention(scene, counts, seed)


def _changes(scene: Scene, counts: Mapping[str, int], seed: int) -> Iterator[Story]:
    """The user changes or deletes the StreamApp, at every write."""
    for site, number in _calls(counts, "write"):
        for what, which in (("wish", scene.replicas), ("wish", scene.replicas + 1), ("wish", 1), ("pause", 8)):
            yield Story(scene.name, seed, (Disturbance(site, number, what, which),), "wish")
        if number % 3 == 0:
            yield Story(scene.name, seed, (Disturbance(site, number, "template", 7),), "template")
            yield Story(scene.name, seed, (Disturbance(site, number, "delete-app", number % 2),), "StreamApp deleted")


def _of_leaders(scene: Scene, counts: Mapping[str, int], seed: int) -> Iterator[Story]:
    """A replica dies, stops, freezes or is cut off, or its clock is set, at each look and each write."""
    for site, number in _calls(counts, "kafka", "write"):
        for what, which in OF_LEADERS:
            kind = "clock set" if what == "clock-step" else "replicas"
            yield Story(scene.name, seed, (Disturbance(site, number, what, which),), kind)


def _losses(scene: Scene, counts: Mapping[str, int], seed: int) -> Iterator[Story]:
    """A container that loses its state, and a node that is lost, at every fourth look."""
    for site, number in _calls(counts, "kafka"):
        if number % 4 == 0:
            for what, kind in (("wipe", "state wiped"), ("lose", "node lost")):
                yield Story(scene.name, seed, (Disturbance(site, number, what, number // 4 % scene.replicas),), kind)


def _failovers(scene: Scene, counts: Mapping[str, int], seed: int) -> Iterator[Story]:
    """Another broker coordinates the group, at every look and after every removal."""
    for site, number in _calls(counts, "kafka", "removal"):
        which = FAILOVERS[number % len(FAILOVERS)]
        yield Story(scene.name, seed, (Disturbance(site, number, "fail-over", which),), "failover")


def _retention(scene: Scene, counts: Mapping[str, int], seed: int) -> Iterator[Story]:
    """The user changes what becomes of claims, at every call, also while the API server refuses every template."""
    for site, number in _calls(counts, "write", "kafka"):
        for what in ("claims-stay", "claims-go"):
            yield Story(scene.name, seed, (Disturbance(site, number, what),), "retention")
        refused = Disturbance(site, number, "refuse-template", 403 if number % 2 else 422)
        taken = Disturbance("second", 90, "refuse-template")
        yield Story(scene.name, seed, (refused, Disturbance(site, number, "claims-stay"), taken), "retention")


def _calls(counts: Mapping[str, int], *sites: str) -> Iterator[tuple[str, int]]:
    return ((site, number) for site in sites for number in range(1, counts.get(site, 0) + 1))


def mixtures(counts: Mapping[str, Counter[str]], seed: int, names: Sequence[str]) -> Iterator[Story]:
    """Without end: any scene, several things at once, and nodes whose clocks differ."""
    chance = random.Random(seed)  # noqa: S311 (draws stories)
    number = 0
    while True:
        number += 1
        scene = SCENES[chance.choices(names, [SCENES[name].share for name in names])[0]]
        for _ in range(FAMILY):
            drawn = tuple(_any(scene, counts[scene.name], chance) for _ in range(chance.randint(1, 4)))
            skew = (Disturbance("second", 2, "skew", chance.choice((-2, 2))),) if chance.random() < 0.3 else ()
            yield Story(scene.name, seed * 1_000_000 + number, (*skew, *drawn), "mixture")


def _any_of_its_kind(scene: Scene, counts: Mapping[str, int], chance: random.Random) -> Disturbance | None:
    """What befalls some scenes alone, in a part of the draws; None: it is something that befalls all."""
    if scene.operators and chance.random() < 0.3:
        what, which = chance.choice(OF_LEADERS)
        site = chance.choice(("kafka", "write", "second"))
        return Disturbance(site, chance.randint(1, counts[site] or 60), what, which)
    if scene.others and not scene.is_quiet and chance.random() < 0.25:
        return any_of_neighbours(scene, counts, chance)
    if scene.has_nodes and chance.random() < 0.3:
        return any_eviction(scene, counts, chance)
    if holds.is_own(scene) and chance.random() < 0.2:
        return holds.any_of_holds(scene, counts, chance)
    if scene.streams and chance.random() < 0.2:
        return any_of_settings(counts, chance)
    return None


def _any(scene: Scene, counts: Mapping[str, int], chance: random.Random) -> Disturbance:
    of_its_kind = _any_of_its_kind(scene, counts, chance)
    if of_its_kind is not None:
        return of_its_kind
    if can_be_denied(scene) and chance.random() < 0.03:
        return any_denial(counts, chance)
    if chance.random() < 0.35:
        what, which = chance.choice(
            (
                ("wish", chance.randint(1, 4)),
                ("kill", chance.randrange(scene.replicas)),
                ("lose", chance.randrange(scene.replicas)),
                ("wipe", chance.randrange(scene.replicas)),
                ("copy-lost", chance.randrange(scene.replicas)),
                ("thread-replaced", chance.randrange(scene.replicas)),
                (chance.choice(("claims-stay", "claims-go")), 0),
                ("delete", chance.randrange(scene.replicas)),
                ("pause", chance.randint(2, 20)),
                ("brokers-away", chance.randint(2, 30)),
                ("brokers-slow", chance.choice((1, 3, 4))),
                ("changelog-unseen", chance.randint(5, 40)),
                ("fail-over", chance.choice(FAILOVERS)),
                ("starts-take", chance.choice((20, 35))),
                (chance.choice(("template", "rename-container")), chance.randint(5, 6)),
                ("pods-refused", chance.choice((15, 60))),
                ("slow", chance.choice((0, 9_000, 30_000))),
                ("api-slow", chance.choice((1, 3, 4))),
            )
        )
        calls = ((site, counts[site]) for site in ("kafka", "write", "told"))
        site, most = chance.choice((("second", 30), *calls, ("removal", 2)))
        return Disturbance(site, chance.randint(1, most), what, which)
    sites = sites_of(scene)
    site = chance.choice([site for site in sites if counts[site]])
    what, which = chance.choice(chance.choice(list(sites[site].values())))
    return Disturbance(site, chance.randint(1, counts[site]), what, which)
