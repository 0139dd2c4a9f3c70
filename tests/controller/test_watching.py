"""The watch of a group goes on whatever a look ends with."""

import asyncio

from structlog.typing import EventDict

from streamapp.controller.memory import Memory
from streamapp.controller.ports import Poll
from streamapp.controller.watching import GroupWatch, Pace
from streamapp.core.group import GroupDescription, GroupState
from tests.controller.fake_group import FakeGroup
from tests.prove.virtual_time import VirtualLoop, run


class Faulty(FakeGroup):
    """Its first look ends with something that nobody expects."""

    described = 0

    async def describe(self) -> Poll:
        self.described += 1
        if self.described == 1:
            raise AttributeError("no such thing")
        return Poll(GroupDescription(GroupState.EMPTY))


def test_after_an_error_that_nobody_expects_the_group_is_looked_at_again(log_lines: list[EventDict]) -> None:
    async def play(loop: VirtualLoop) -> tuple[int, int]:
        memory, group = Memory("uid"), Faulty("uid", list, loop.now)
        watch = GroupWatch(group, memory, Pace(10, 2, 0.5), lambda: None, loop.now)
        task = loop.create_task(watch.run())
        await asyncio.sleep(3)
        task.cancel()
        return group.described, len(memory.readings)

    loop = VirtualLoop()
    looks = run(loop, play(loop))
    assert looks == (2, 1)
    assert [line["event"] for line in log_lines] == ["look at the group failed"]
