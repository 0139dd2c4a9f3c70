"""Plays stories to their ends: the world comes to rest where the user wants it, or the run has failed.

Stories of one scene and seed are the same until their first disturbance. So `play_family` plays that beginning once and
forks the process where each of them branches off; a story played alone by `play` comes to the same end.
"""

import asyncio
import gc
import logging
import os
import pickle
import random
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import structlog

from tests.prove.judge_raises import Delay
from tests.prove.replicas.gate import GatedLoop
from tests.prove.scene import Scene
from tests.prove.scenes import SCENES
from tests.prove.story import Story
from tests.prove.virtual_time import VirtualLoop, run
from tests.prove.world import World, copied, picture_of

REST_WITHIN = 900.0
"""Seconds after the last thing that happened, and the time that two restores of everything take."""
OFFSET = 0.25
"""Seconds that what happens by a story's clock comes later than what happens by the scene's."""
LOOKED_AT = 0.5
"""Seconds between two looks whether the world is at rest."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a story."""

    story: Story
    wrongs: tuple[str, ...]
    notes: Counter[str]
    """What the judge counted."""
    hits: Counter[str]
    """What really went wrong or happened."""
    counts: Counter[str]
    """Calls by site."""
    seconds: float
    """Of the world's time."""
    visited: frozenset[str] = frozenset()
    """What it came past, as `coverage` names it."""
    raises: tuple[Delay, ...] = ()
    """How long each raise took, by what went wrong meanwhile."""


def play(story: Story) -> Outcome:
    """Play one."""
    return _Played(SCENES[story.scene], story, ()).outcome()


def told(story: Story) -> tuple[Outcome, list[str]]:
    """Play one and write down what happens."""
    played = _Played(SCENES[story.scene], story, ())
    played.world.board.is_told = True
    return played.outcome(), played.world.board.chronicle


def shrunk(story: Story) -> Story:
    """The same failure with as few disturbances as it takes."""
    for one in story.disturbances:
        left = tuple(other for other in story.disturbances if other is not one)
        shorter = Story(story.scene, story.seed, left, story.kind)
        if play(shorter).wrongs:
            return shrunk(shorter)
    return story


def play_family(stories: Sequence[Story]) -> Iterator[Outcome]:
    """Play stories of one scene and seed; where one of them branches off, in a process of its own."""
    first = stories[0]
    assert all((story.scene, story.seed) == (first.scene, first.seed) for story in stories)
    with _no_collections():
        played = _Played(SCENES[first.scene], Story(first.scene, first.seed, kind=first.kind), stories)
        played.outcome()
    yield from played.outcomes
    told = {outcome.story for outcome in played.outcomes}
    # Whoever never came to its branch, since the beginning ended before, is played alone.
    yield from (play(story) for story in stories if story not in told)


class _Played:
    """One loop with one world, and the stories that branch off."""

    def __init__(self, scene: Scene, story: Story, branches: Sequence[Story]) -> None:
        _log_nothing()
        picture = copied(picture_at_rest(scene.ground))
        _leave_modules_alone()
        for name, shape in scene.shapes.items():
            picture.groups[name].shape = shape
        self.loop = loop_of(scene)
        self.story = story
        self.outcomes: list[Outcome] = []
        self._pipe: int | None = None
        self._branches: dict[tuple[str, int], list[Story]] = defaultdict(list)
        self._gone: set[Story] = set()
        for branch in branches:
            for one in branch.disturbances:
                self._branches[one.site, one.number].append(branch)
        random.seed(story.seed)  # the product's own jitter
        self.world = World(self.loop, scene, story.seed, picture)

    def outcome(self) -> Outcome:
        """Play to the end."""
        try:
            found = run(self.loop, self._play())
        except Exception:  # (whatever it was, the story has failed and is told)
            if self._pipe is None:
                raise
            found = self._told((traceback.format_exc(),))
        return self._handed_in(found)

    def _handed_in(self, found: Outcome) -> Outcome:
        """Give what came of it; a process that branched off hands it to its parent, and ends without tidying up."""
        if self._pipe is not None:
            with os.fdopen(self._pipe, "wb") as pipe:
                pickle.dump(found, pipe)
            os._exit(0)
        return found

    async def _play(self) -> Outcome:
        self.world.begin()
        self.world.expect(self.story.disturbances, OFFSET)
        if self._branches:
            self.world.board.arrival = self._arrived
            seconds = {number for site, number in self._branches if site == "second"}
            for number in sorted(seconds):
                self.loop.call_at(number + OFFSET, self._arrived, "second", number)
        await until_rest(self.world)
        self.world.lives.end()
        return self._handed_in(self._told(tuple(self.world.judge.wrongs)))

    def _told(self, wrongs: tuple[str, ...]) -> Outcome:
        board, judge = self.world.board, self.world.judge
        visited = frozenset(judge.visited)
        raises = judge.delays
        return Outcome(self.story, wrongs, judge.notes, board.hits, board.counts, self.loop.time(), visited, raises)

    def _arrived(self, site: str, number: int) -> None:
        """Everybody who branches off here does; each is waited for."""
        for branch in self._branches.get((site, number), ()):
            if branch not in self._gone and self._pipe is None:
                self._gone.add(branch)
                self._fork(branch)

    def _fork(self, branch: Story) -> None:
        chance = random.getstate()  # Python seeds it anew in a child
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            random.setstate(chance)
            asyncio._set_running_loop(self.loop)  # it is remembered by process
            self._pipe, self.story, self.outcomes = writing, branch, []
            self.world.expect(branch.disturbances, OFFSET)
            return
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            text = pipe.read()
        os.waitpid(child, 0)
        self.outcomes.append(pickle.loads(text))  # noqa: S301 (written by our own child)


async def until_rest(world: World) -> None:
    """Let time pass until the world is at rest, or for too long."""
    while not world.judge.wrongs:
        await asyncio.sleep(LOOKED_AT)
        if world.loop.broken is not None:
            raise world.loop.broken
        if world.loop.time() <= world.last_second + 1:
            continue
        unrest = "no process acts" if world.lives.present is None else world.unrest()
        if unrest is None:
            return
        if world.gives_up():
            continue
        if world.loop.time() > max(world.last_second, world.disturbed_at) + REST_WITHIN + world.restored_within:
            world.judge.wrongs.append(f"no rest within {REST_WITHIN:g} s: {unrest}")


def loop_of(scene: Scene) -> VirtualLoop:
    """The loop of a scene's world."""
    return GatedLoop() if scene.operators else VirtualLoop()


def _log_nothing() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


@cache
def _leave_modules_alone() -> None:
    """Have no garbage collection look at what all modules have made: that is most of what there is, and it stays."""
    gc.freeze()


@contextmanager
def _no_collections() -> Iterator[None]:
    """Keep the garbage until the end: what branches off ends soon, and a collection would touch what it shares."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()


PICTURES: dict[Scene, bytes] = {}
"""Of each ground, once it was brought up."""


def picture_at_rest(ground: Scene) -> bytes:
    """A world that the operator brought up from nothing, at rest."""
    if ground not in PICTURES:
        PICTURES[ground] = _brought_up(ground)
    return PICTURES[ground]


def _brought_up(ground: Scene) -> bytes:
    async def bring_up() -> bytes:
        world = World(loop, ground, 0, picture_of(ground))
        world.begin()
        await until_rest(world)
        assert world.judge.wrongs == [], world.judge.wrongs
        world.lives.end()
        return pickle.dumps(world.picture())

    loop, logged = VirtualLoop(), structlog.get_config()
    _log_nothing()
    try:
        return run(loop, bring_up())
    finally:
        structlog.configure(**logged)
