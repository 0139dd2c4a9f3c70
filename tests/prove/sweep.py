"""Plays very many stories on all cores and adds up what came of them."""

import itertools
import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

from tests.prove.judge_raises import During
from tests.prove.plans import WHOLE, mixtures, systematic
from tests.prove.play import PICTURES, Outcome, picture_at_rest, play, play_family
from tests.prove.scene import Scene
from tests.prove.scenes import SCENES
from tests.prove.story import Story

FAMILY = 200
"""Stories that one worker takes at a time, at most; they share their beginning, which is played once for all of them.

So few of them are cut in two. The longest families come first, so that both cores end at about the same time.
"""
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


def calls_of_scenes(names: Iterable[str], workers: int = 1) -> dict[str, Counter[str]]:
    """How many calls an undisturbed run of each scene makes, by site; this process then has all of their pictures."""
    by_ground: dict[Scene, list[str]] = defaultdict(list)
    for name in names:
        by_ground[SCENES[name].ground].append(name)
    counts: dict[str, Counter[str]] = {}
    with _several(workers) as each:
        for ground, picture, found in each(_undisturbed, by_ground.items()):
            PICTURES[ground] = picture
            counts |= found
    return {name: counts[name] for name in names}


def _undisturbed(scenes: tuple[Scene, list[str]]) -> tuple[Scene, bytes, dict[str, Counter[str]]]:
    ground, names = scenes
    return ground, picture_at_rest(ground), {name: play(Story(name, 1)).counts for name in names}


@contextmanager
def _several(workers: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """What maps a function over work, in any order, in so many processes."""
    if workers == 1:
        yield map
        return
    with get_context("fork").Pool(workers) as pool:
        yield pool.imap_unordered


def chosen(runs: int | None, seed: int, scenes: Sequence[str] = (), workers: int = 1) -> list[Story]:
    """The stories of one sweep.

    Args:
        runs: How many; None for every systematic one, and a quarter as many mixtures.
        seed: Which part of the systematic ones, and which mixtures.
        scenes: Only these; empty for all.
        workers: Processes that play each scene once, to count its calls.
    """
    names = scenes or tuple(SCENES)
    counts = calls_of_scenes(names, workers)
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
    families = sorted(_families(stories), key=_cost, reverse=True)
    with _several(workers or cores()) as each:
        for outcomes in each(_play, families):
            for outcome in outcomes:
                report.add(outcome)
                told(outcome)
    return report


def cores() -> int:
    """How many processes run at a time."""
    return os.cpu_count() or 1


def _cost(family: Sequence[Story]) -> int:
    """About how long a family takes; the longest come first, so that no core waits for the last one alone."""
    scene = SCENES[family[0].scene]
    return len(family) * (1 + len(scene.others)) * (2 if scene.streams or scene.operators else 1)


def _play(family: Sequence[Story]) -> list[Outcome]:
    return list(play_family(family))


def _families(stories: Iterable[Story]) -> Iterator[list[Story]]:
    by_beginning: dict[tuple[str, int], list[Story]] = defaultdict(list)
    for story in stories:
        by_beginning[story.scene, story.seed].append(story)
    for found in by_beginning.values():
        for begin in range(0, len(found), FAMILY):
            yield found[begin : begin + FAMILY]
