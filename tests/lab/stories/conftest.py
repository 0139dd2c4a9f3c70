"""What the five stories share: the telling of their steps."""

import shutil
import uuid
from collections.abc import Generator, Iterator
from contextlib import suppress

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from lab.clusters.cluster import Session
from lab.scenarios import demo_application
from tests.lab.stories.telling import LEFT, Stage, Story


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


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left(bootstrap: str) -> Iterator[None]:
    """Begin without what stories of another run left for the report, and delete the topics of all at the end."""
    shutil.rmtree(LEFT, ignore_errors=True)
    yield
    admin = AdminClient({"bootstrap.servers": bootstrap})
    left = [name for name in admin.list_topics(timeout=20).topics if name.startswith("story-")]
    for deleted in (admin.delete_topics(left) if left else {}).values():
        with suppress(KafkaException):
            deleted.result(20)


@pytest.fixture
def stage(story: Story, session: Session, bootstrap: str) -> Iterator[Stage]:
    """Give a namespace of the story's own, which is deleted afterwards if the story made it."""
    name = f"story-{story.title.replace('_', '-')}-{uuid.uuid4().hex[:6]}"
    made = Stage(story, session, bootstrap, name)
    yield made
    if made.kubectl.run("get", "namespace", name, "--ignore-not-found"):
        demo_application.delete_namespaces(made.kubectl, name)


PASSED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note whether the test itself passed."""
    report = yield
    if call.when == "call":
        item.stash[PASSED] = report.passed
    return report
