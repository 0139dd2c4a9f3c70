"""Examples that are written down: deeds one after the other, with pauses, on one ground.

The tour puts every guarantee at stake without a draw, and planted faults are tried on parts of it. What the machine
finds is kept here in the same form.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.prove.second_judge.deeds import Deeds
from tests.prove.second_judge.ledger import Figures
from tests.prove.second_judge.machine import AT_THE_END, GUARANTEES
from tests.prove.second_judge.stage import Plant, stage_of


@dataclass(frozen=True, slots=True)
class Script:
    """One example."""

    name: str
    ground: str
    deeds: tuple[tuple[str, int, float], ...]
    """What, with which number, and how many seconds pass then."""
    seed: int = 1
    ending: float = AT_THE_END


DOWN = Script("a scale-down", "four pods", (("wait", 0, 5), ("scale", 3, 40)), ending=20)
DOWN_UP = Script(
    "down, and up again in the hold", "four pods", (("wait", 0, 5), ("scale", 3, 9), ("scale", 4, 8)), ending=0
)
KILL = Script("a container that ends", "four pods", (("wait", 0, 12), ("kill", 1, 12)), ending=0)
UP = Script("a raise", "four pods", (("wait", 0, 3), ("scale", 5, 10)), ending=0)
BEHIND = Script(
    "a scale-down whose copies are far behind",
    "slow restore",
    (("wait", 0, 5), ("copies-behind", 90, 1), ("scale", 2, 75)),
)
MISMATCH = Script(
    "another process ID in a hold",
    "four pods",
    (("wait", 0, 5), ("other-process-id", 0, 20), ("scale", 3, 60)),
    ending=30,
)
FORCED = Script(
    "an override by policy", "no copies", (("wait", 0, 5), ("scale-down", 1, 5), ("scale", 2, 60)), ending=60
)
DARK = Script(
    "a scale-down without brokers, and a leader that dies",
    "four pods",
    (("wait", 0, 5), ("scale", 3, 8), ("brokers-away", 12, 14), ("die", 0, 1), ("scale", 5, 10)),
    ending=10,
)
FRESH_VOLUME = Script("a volume that is new", "four pods", (("wait", 0, 5), ("wipe", 2, 30)), ending=0)
ON_DEMAND = Script("empty pods go together", "on demand", (("wait", 0, 5), ("scale", 2, 45)), ending=20)

SOON = Script(
    "a scale-down whose copies have just fallen behind",
    "slow restore",
    (("wait", 0, 5), ("copies-behind", 90, 1), ("scale", 2, 10)),
    ending=0,
)
HELD = Script(
    "a scale-down that the user holds", "four pods", (("wait", 0, 5), ("hold", 1, 8), ("scale", 3, 45)), ending=0
)
FROZEN = Script(
    "a leader that freezes in a hold and wakes up beside its successor",
    "four pods",
    (("wait", 0, 5), ("scale", 3, 7), ("freeze", 8, 20)),
    ending=0,
)

LOWER_AGAIN = Script(
    "fewer still are desired while a window of 20 s keeps the former number",
    "on demand",
    (("wait", 0, 5), ("scale-down", 5, 5), ("scale", 2, 9), ("scale", 1, 45)),
    ending=0,
)
UP_AND_DOWN = Script(
    "in a user's hold, the replicas are raised and lowered at once",
    "four pods",
    (("wait", 0, 5), ("hold", 1, 3), ("scale", 2, 30), ("scale", 4, 0), ("scale", 2, 26)),
    ending=0,
)
UP_THEN_GONE = Script(
    "a raise cancels a hold, and the StatefulSet is deleted two seconds later",
    "four pods",
    (("wait", 0, 5), ("scale", 3, 8), ("scale", 4, 2), ("delete-statefulset", 0, 8)),
    ending=0,
)
HELD_THEN_GONE = Script(
    "the StatefulSet is deleted in a user's hold, and made again with as many replicas",
    "on demand",
    (("wait", 0, 5), ("hold", 1, 3), ("scale", 1, 3), ("delete-statefulset", 0, 12)),
    ending=0,
)
GARBLED = Script(
    "a raise carries a hold record that nobody can read",
    "four pods",
    (("wait", 0, 5), ("scale", 2, 1), ("garble-record", 0, 0), ("scale", 5, 20)),
    ending=0,
)
FOUND = (LOWER_AGAIN, UP_AND_DOWN, UP_THEN_GONE, HELD_THEN_GONE, GARBLED)
"""What the machine found, in the product or in a judge."""

TOUR = (DOWN, DOWN_UP, KILL, UP, BEHIND, MISMATCH, FORCED, DARK, FRESH_VOLUME, ON_DEMAND, HELD, FROZEN)


def played(script: Script, plants: Sequence[Plant] = (), figures: Figures | None = None) -> list[str]:
    """Play one; what was wrong."""
    figures = figures or Figures()
    stage = stage_of(script.ground, script.seed, [make() for make in GUARANTEES], figures)
    stage.plants.extend(plants)
    Deeds(stage)
    try:
        for what, which, seconds in script.deeds:
            if what != "wait":
                stage.strikes(what, which)
                figures.rules[what] += 1
            stage.wait(seconds)
        stage.wait(script.ending)
    finally:
        figures.examples += 1
        figures.seconds += stage.now - stage.began
        stage.close()
    return stage.ledger.wrongs


def toured(scripts: Iterable[Script] = TOUR) -> tuple[list[str], Figures]:
    """Play the tour; what was wrong, and what was counted."""
    figures = Figures()
    return [wrong for script in scripts for wrong in played(script, (), figures)], figures
