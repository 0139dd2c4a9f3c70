"""What blocks runs in few threads: a name that never resolves takes no place that another tenant or name needs."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from streamapp.kafka.connection import blocking_calls
from streamapp.kafka.connection.blocking_calls import BlockingCalls

pytestmark = pytest.mark.slow  # threads and real time


class Names:
    """Looks names up; those that begin with `dead` hang until the end."""

    def __init__(self) -> None:
        self.end = threading.Event()
        self.begun: list[str] = []
        self.calls = BlockingCalls("test-names", at_once=2, doubtful_at_once=4, of_one_tenant=2)

    async def resolve(self, tenant: str, name: str) -> str:
        def work() -> str:
            self.begun.append(name)
            if name.startswith("dead"):
                self.end.wait(10)
            if name.startswith("wrong"):
                raise OSError("no such name")
            return f"address of {name}"

        return await self.calls.run(tenant, name, work)

    def threads(self) -> int:
        return sum(one.name.startswith("test-names") for one in threading.enumerate())


@asynccontextmanager
async def names() -> AsyncIterator[Names]:
    one = Names()
    try:
        yield one
    finally:
        one.end.set()
        one.calls.close()


async def settle() -> None:
    await asyncio.sleep(0.05)


def test_a_name_that_never_resolves_has_one_thread_however_many_ask_for_it() -> None:
    async def main() -> None:
        async with names() as one:
            asking = [asyncio.create_task(one.resolve(f"tenant-{n}", "dead.example")) for n in range(50)]
            await settle()
            assert one.begun == ["dead.example"]
            assert await one.resolve("tenant-1", "alive.example") == "address of alive.example"
            one.end.set()
            assert set(await asyncio.gather(*asking)) == {"address of dead.example"}
            assert one.threads() <= 2

    asyncio.run(main())


def test_a_tenant_with_a_thousand_dead_names_takes_two_places_and_those_who_gave_up_take_none_later() -> None:
    async def main() -> None:
        async with names() as one:
            asking = [asyncio.create_task(one.resolve("hostile", f"dead-{n}")) for n in range(1000)]
            await settle()
            assert one.begun == ["dead-0", "dead-1"]
            began = time.monotonic()
            found = await asyncio.gather(*(one.resolve(f"tenant-{n}", f"new-{n}") for n in range(20)))
            assert found == [f"address of new-{n}" for n in range(20)]
            assert time.monotonic() - began < 1
            for each in asking:
                each.cancel()  # as a deadline does
            await asyncio.gather(*asking, return_exceptions=True)
            # The threads still hang: their places are not free, and another round begins no third one.
            again = asyncio.create_task(one.resolve("hostile", "dead-1000"))
            await settle()
            assert [name for name in one.begun if name.startswith("dead")] == ["dead-0", "dead-1"]
            one.end.set()
            assert await again == "address of dead-1000"
            assert one.threads() <= 6

    asyncio.run(main())


def test_names_that_were_quick_have_places_of_their_own() -> None:
    async def main() -> None:
        async with names() as one:
            await one.resolve("honest", "kafka.example")
            dead = [asyncio.create_task(one.resolve(f"hostile-{n}", f"dead-{n}")) for n in range(10)]
            await settle()
            assert len(one.begun) == 1 + 4
            async with asyncio.timeout(1):
                assert await one.resolve("honest", "kafka.example") == "address of kafka.example"
            for each in dead:
                each.cancel()
            await asyncio.gather(*dead, return_exceptions=True)

    asyncio.run(main())


def test_a_name_that_was_slow_counts_as_new_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking_calls, "QUICK_SECONDS", 0.0)

    async def main() -> None:
        async with names() as one:
            await one.resolve("honest", "kafka.example")
            dead = [asyncio.create_task(one.resolve(f"hostile-{n}", f"dead-{n}")) for n in range(4)]
            await settle()
            waiting = asyncio.create_task(one.resolve("honest", "kafka.example"))
            await settle()
            assert not waiting.done()
            one.end.set()
            assert await waiting == "address of kafka.example"
            await asyncio.gather(*dead)

    asyncio.run(main())


def test_an_error_is_that_of_each_who_asked_and_the_next_one_asks_anew() -> None:
    async def main() -> None:
        async with names() as one:
            ends = await asyncio.gather(
                *(one.resolve("tenant", "wrong.example") for _ in range(3)), return_exceptions=True
            )
            assert [str(end) for end in ends] == ["no such name"] * 3
            with pytest.raises(OSError, match="no such name"):
                await one.resolve("tenant", "wrong.example")
            assert one.begun == ["wrong.example"] * 2

    asyncio.run(main())
