"""What the five stories share: the telling of their steps."""

import os
import uuid
from collections.abc import Generator, Iterator

import pytest

from lab.clusters.cluster import Session
from lab.scenarios import demo_application
from tests.lab.stories.telling import LEFT, Stage, Story
from tests.parts.outcome import REPEATED


@pytest.fixture
def story(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Iterator[Story]:
    """Give the story of a test, whose steps are printed as they pass; each must have been played at the end.

    A test says how many there are with the mark `steps`.
    """

    def show(line: str) -> None:
        with capsys.disabled():
            print(f"\n{line}", end="", flush=True)  # noqa: T201 (for who waits for it)

    mark = request.node.get_closest_marker("steps")
    told = Story(request.node.name.removeprefix("test_"), show, mark.args[0])
    yield told
    if request.node.stash.get(PASSED, False):
        assert told.passed == told.steps


@pytest.fixture
def stage(story: Story, session: Session, bootstrap: str) -> Iterator[Stage]:
    """Give a namespace of the story's own, which is deleted afterwards if the story made it."""
    name = f"story-{story.title.replace('_', '-')}-{uuid.uuid4().hex[:6]}"
    made = Stage(story, session, bootstrap, name)
    yield made
    if made.kubectl.run("get", "namespace", name, "--ignore-not-found"):
        demo_application.delete_namespaces(made.kubectl, name)


PASSED = pytest.StashKey[bool]()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write down that a story begins once more, and what it had waited for: the gate prints it, and counts."""
    outcome: str = report.outcome  # a word of pytest-rerunfailures, which pytest's own types do not have
    if outcome == "rerun":
        load = " ".join(f"{one:.2f}" for one in os.getloadavg())
        why = next((line[1:].strip() for line in report.longreprtext.splitlines() if line.startswith("E ")), "unknown")
        with (LEFT.parent / REPEATED).open("a") as file:
            file.write(f"{report.nodeid}: {why} (load {load})\n")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note whether the test itself passed."""
    report = yield
    if call.when == "call":
        item.stash[PASSED] = report.passed
    return report
