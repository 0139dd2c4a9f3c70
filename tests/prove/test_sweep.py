"""A small sample of the sweep for every day, and what the sweep itself has to be: repeatable, and loud on failure."""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from click.testing import CliRunner

from tests.prove.__main__ import main
from tests.prove.mutants import MUTANTS
from tests.prove.plans import systematic
from tests.prove.play import Outcome, play, play_family, shrunk, told
from tests.prove.scenes import SCENES
from tests.prove.story import Disturbance, Story
from tests.prove.sweep import chosen, sweep

BROKEN = next(mutant for mutant in MUTANTS if mutant.name == "one reading is enough")

PINNED = 1
"""Faults in each scene, each in a story of its own: the same tree plays the same stories."""


def broken(runs: int, seed: int, scenes: Sequence[str]) -> list[str]:
    """Play a sample of the stories of these scenes; give those that fail."""
    stories = chosen(runs, seed=seed, scenes=scenes)
    report = sweep(stories, workers=1)
    # A mixture may be drawn twice; it is played once.
    assert report.runs == len(set(stories)) > 0.9 * min(runs, len(stories))
    return [f"{outcome.story}: {outcome.wrongs[0]}" for outcome in report.failed]


def test_a_few_of_all_faults_break_no_guarantee() -> None:
    assert broken(12, 7, ("kill", "down-4-3")) == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "scene", [pytest.param(scene, marks=[pytest.mark.slow] * bool(at % 4)) for at, scene in enumerate(SCENES)]
)
def test_a_scene_comes_to_rest_without_a_fault_and_breaks_no_guarantee_with_one(scene: str) -> None:
    """`make test PART=sweep` plays new stories."""
    undisturbed = play(Story(scene, 1))
    assert undisturbed.wrongs == ()
    stories = pinned(scene, undisturbed.counts)
    outcomes = play_family(stories) if stories else ()
    assert [f"{one.story}: {one.wrongs[0]}" for one in outcomes if one.wrongs] == []


def pinned(scene: str, counts: Mapping[str, int]) -> list[Story]:
    """Choose stories by the name of the scene."""
    every = list(systematic(SCENES[scene], counts))
    return random.Random(scene).sample(every, min(PINNED, len(every)))  # noqa: S311 (chooses stories)


def test_a_story_is_the_same_alone_and_in_its_family() -> None:
    counts = play(Story("kill", 1)).counts
    stories = list(systematic(SCENES["kill"], counts))[::40]
    mixed = Story("kill", 1, (Disturbance("second", 9, "wish", 2), Disturbance("kafka", 20, "crash-after")))
    alone = {story: to_the_millisecond(play(story)) for story in (*stories, mixed)}
    family = {outcome.story: outcome for outcome in play_family((*stories, mixed))}
    assert {story: to_the_millisecond(one) for story, one in family.items()} == alone


def to_the_millisecond(outcome: Outcome) -> Outcome:
    """Leave out what reading the clock itself adds: a microsecond each time."""
    return replace(outcome, seconds=round(outcome.seconds, 3))


def test_a_story_can_be_written_down_and_read_again() -> None:
    story = Story("kill", 3, (Disturbance("write", 5, "crash-after"), Disturbance("second", 9, "wish", 2)))
    read = Story.parse(str(story))
    assert (str(story), read.disturbances) == ("kill seed=3 write:5:crash-after second:9:wish:2", story.disturbances)


@pytest.mark.parametrize("text", ["kill", "kill seed=x", "kill seed=1 nowhere:5:lost", "kill seed=1 write:5:kill:1:2"])
def test_what_is_no_story_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Story.parse(text)


@pytest.mark.slow
def test_a_failure_is_told_with_its_shortest_story_its_history_and_the_command_to_see_it_again() -> None:
    play(Story("down-4-3", 1))
    with BROKEN.at_work():
        runner = CliRunner()
        answer = runner.invoke(main, ["--runs", "20", "--scene", "down-4-3", "--workers", "1"])
        story = answer.output.partition("--replay '")[2].partition("'")[0]
        again = runner.invoke(main, ["--replay", story])
    assert (answer.exit_code, again.exit_code, story) == (1, 1, "down-4-3 seed=1")
    assert re.search(r"^runs: 20, violations: [1-9]", answer.output, re.MULTILINE)
    assert "guarantee 2" in again.output
    assert "statefulsets replicas=3 record=step" in again.output


def test_success_is_told_in_one_line_and_a_table() -> None:
    answer = CliRunner().invoke(main, ["--runs", "12", "--scene", "kill", "--workers", "1"])
    assert (answer.exit_code, answer.output.splitlines()[-1]) == (0, "runs: 12, violations: 0")


def test_what_does_not_matter_to_a_failure_is_left_out_of_its_story() -> None:
    play(Story("down-4-3", 1))
    with BROKEN.at_work():
        long = Story("down-4-3", 1, (Disturbance("read", 3, "500"), Disturbance("event", 2, "doubled", 1)))
        assert shrunk(long) == Story("down-4-3", 1)
    assert told(long)[0].wrongs == ()
