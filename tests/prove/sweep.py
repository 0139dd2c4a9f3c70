"""Plays very many stories on all cores and adds up what came of them."""

import itertools
import os
import random
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context

from tests.prove.judge_raises import During
from tests.prove.plans import WHOLE, mixtures, systematic
from tests.prove.play import Outcome, play, play_family
from tests.prove.scenes import SCENES
from tests.prove.story import Story

FAMILY = 40
"""Stories that one worker takes at a time; they share their beginning."""
MIXED = 0.2
"""Share of mixtures."""


@dataclass(slots=True)
class Row:
    """What came of all stories of one kind."""

    runs: int = 0
    hits: int = 0
    """Disturbances that took place; a story may have several, or end before its only one."""
    violations: int = 0
    notes: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Report:
    """What came of a sweep."""

    rows: dict[str, Row] = field(default_factory=lambda: defaultdict(Row))
    failed: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0
    """Of all worlds together."""
    visited: Counter[str] = field(default_factory=Counter)
    """In how many stories each of what `coverage` names was visited."""
    raises: dict[During, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Seconds that each raise took, by what went wrong meanwhile."""

    def add(self, outcome: Outcome) -> None:
        """Count one."""
        row = self.rows[outcome.story.kind]
        row.runs += 1
        row.hits += outcome.hits.total()
        row.notes.update(outcome.notes)
        self.seconds += outcome.seconds
        self.visited.update(outcome.visited)
        for befell, seconds in outcome.raises:
            self.raises[befell].append(seconds)
        if outcome.wrongs:
            row.violations += 1
            self.failed.append(outcome)

    @property
    def runs(self) -> int:
        """How many there were."""
        return sum(row.runs for row in self.rows.values())

    @property
    def shortest(self) -> Outcome | None:
        """The failure that is easiest to understand."""
        return min(self.failed, key=lambda one: (len(one.story.disturbances), one.seconds), default=None)


def seed_of_commit() -> int:
    """The seed of the commit that is checked out, so that each commit has stories of its own.

    `STREAMAPP_PROVE_SEED` plays those of another commit again; without Git, it is always the same seed.
    """
    given = os.environ.get("STREAMAPP_PROVE_SEED")
    if given is not None:
        return int(given)
    asked = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return int(asked.stdout[:7] or "1", 16)


def calls_of_scenes(names: Iterable[str]) -> dict[str, Counter[str]]:
    """How many calls an undisturbed run of each scene makes, by site."""
    return {name: play(Story(name, 1)).counts for name in names}


def chosen(runs: int | None, seed: int, scenes: Sequence[str] = ()) -> list[Story]:
    """The stories of one sweep.

    Args:
        runs: How many; None for every systematic one, and a quarter as many mixtures.
        seed: Which part of the systematic ones, and which mixtures.
        scenes: Only these; empty for all.
    """
    names = scenes or tuple(SCENES)
    counts = calls_of_scenes(names)
    every = {name: list(systematic(SCENES[name], counts[name])) for name in names}
    mixed = mixtures(counts, seed, names)
    if runs is None:
        everything = [story for stories in every.values() for story in stories]
        return [*everything, *itertools.islice(mixed, len(everything) // 4)]
    chance = random.Random(seed)  # noqa: S311 (chooses stories)
    systematic_runs = round(runs * (1 - MIXED))
    whole: list[Story] = []
    for name in WHOLE:
        if len(every.get(name, ())) < systematic_runs / 2:
            whole += every.pop(name, [])
    # As many of each scene as of every other, and all of those that have fewer.
    ordered = sorted(every.items(), key=lambda one: (SCENES[one[0]].share, len(one[1])))
    for left, (name, stories) in zip(range(len(every), 0, -1), ordered, strict=True):
        most = round((systematic_runs - len(whole)) // left * SCENES[name].share)
        whole += chance.sample(stories, min(len(stories), most))
    return [*whole, *itertools.islice(mixed, runs - len(whole))]


def sweep(stories: Iterable[Story], workers: int | None = None, told: Callable[[Outcome], object] = id) -> Report:
    """Play them; `told` hears of each as it ends."""
    report = Report()
    families = list(_families(stories))
    count = workers or os.cpu_count() or 1
    if count == 1:
        for family in families:
            for outcome in play_family(family):
                report.add(outcome)
                told(outcome)
        return report
    with get_context("fork").Pool(count) as pool:
        for outcomes in pool.imap_unordered(_play, families):
            for outcome in outcomes:
                report.add(outcome)
                told(outcome)
    return report


def _play(family: Sequence[Story]) -> list[Outcome]:
    return list(play_family(family))


def _families(stories: Iterable[Story]) -> Iterator[list[Story]]:
    by_beginning: dict[tuple[str, int], list[Story]] = defaultdict(list)
    for story in stories:
        by_beginning[story.scene, story.seed].append(story)
    for found in by_beginning.values():
        for begin in range(0, len(found), FAMILY):
            yield found[begin : begin + FAMILY]
