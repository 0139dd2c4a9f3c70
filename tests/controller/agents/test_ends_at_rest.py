"""At rest, ends are read for a group of the streams protocol alone, and now and then."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

import pytest

from streamapp.controller.agents.poller import ENDS_AT_REST, AgentPoller
from streamapp.controller.apps.apps import Application
from streamapp.controller.apps.memory import Memory
from streamapp.core.facts.agent_reports import AgentsSeen, EndsAfter
from streamapp.core.facts.group import GroupReading
from streamapp.core.facts.lag import EndOffsets
from streamapp.core.facts.tasks import TaskSet
from tests.support import example
from tests.support.streams import streams_group, streams_reading

SECOND = timedelta(seconds=1)


@dataclass
class Watch:
    """Of a group for which nothing is waited, or something."""

    is_awaited: bool = False
    is_busy: bool = False
    asked: list[TaskSet] = field(default_factory=list)

    @property
    def group(self) -> "Watch":
        return self

    async def ends(self, task_set: TaskSet) -> EndOffsets:
        self.asked.append(task_set)
        return example.ends(example.NOW)


def classic_reading() -> GroupReading:
    return example.reading(example.members(), SECOND)


def is_read(reading: GroupReading, watch: Watch, ago: timedelta | None) -> bool:
    """Whether ends are read, so long after they were read last."""
    seen = () if ago is None else (EndsAfter(example.NOW - ago, example.ends(example.NOW - ago)),)
    memory = Memory("uid", readings=(reading,), task_set=example.task_set(), agents=AgentsSeen({}, seen))
    poller = AgentPoller(cast("Any", None), lambda: example.NOW, cast("Any", None))
    application = Application(memory, watch=cast("Any", watch))
    found = asyncio.run(poller._ends(application, is_shrinking=False))
    assert (found is not None) == bool(watch.asked)
    return found is not None


@pytest.mark.parametrize(
    ("ago", "expected"), [(None, True), (ENDS_AT_REST, True), (ENDS_AT_REST - SECOND, False), (SECOND, False)]
)
def test_a_streams_group_at_rest_has_its_ends_read_now_and_then(ago: timedelta | None, *, expected: bool) -> None:
    assert is_read(streams_reading(example.members(), 1, streams_group()), Watch(), ago) == expected


def test_while_something_is_waited_for_they_are_read_each_time() -> None:
    assert is_read(streams_reading(example.members(), 1, streams_group()), Watch(is_awaited=True), SECOND)
    assert is_read(classic_reading(), Watch(is_busy=True), SECOND)


def test_a_classic_group_at_rest_has_those_of_its_last_join() -> None:
    assert not is_read(classic_reading(), Watch(), None)
