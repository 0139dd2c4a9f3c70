"""Real processes of the operator: what the kernel's signals do to the one that leads, and who goes on.

One story, since each process takes a second of the processor to start.
"""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.controller.leader.processes import LEASE, Replica, Replicas, replicas

SHORT = {"lease_seconds": 4.0, "lease_renew_seconds": 3.0, "lease_retry_seconds": 0.4}
"""A process on a busy machine may well stand still for a second."""


@pytest.mark.slow
@pytest.mark.guarantee(2)
@pytest.mark.timeout(300)
def test_leaders_are_followed_and_whoever_wakes_up_late_writes_nothing_and_ends(tmp_path: Path) -> None:
    async def main() -> None:
        async with replicas(tmp_path, **SHORT) as them:
            one = await them.start("one")
            await them.until_it_works("one")
            await stands_by_and_ends_when_it_is_told_to(them)
            await is_stopped_and_wakes_up_late(them, one, await stand_by(them, "three"))
            await is_told_to_end(them, them.all["three"], await stand_by(them, "four"))
            await is_killed(them, them.all["four"], await stand_by(them, "five"))

    asyncio.run(main())


async def stand_by(them: Replicas, name: str) -> Replica:
    """Start one more."""
    other = await them.start(name)
    await them.until(f"{name} stands by", lambda: other.said("standby"))
    return other


async def stands_by_and_ends_when_it_is_told_to(them: Replicas) -> None:
    """Without a handler of its own the first process of a container would not hear of it."""
    other = await stand_by(them, "two")
    other.send(signal.SIGTERM)
    assert (await other.ended(), other.words, them.server.leader()) == (0, [], "one")


async def is_stopped_and_wakes_up_late(them: Replicas, former: Replica, other: Replica) -> None:
    """As a machine that was suspended."""
    former.send(signal.SIGSTOP)
    await them.until_it_works(other.name)
    former.send(signal.SIGCONT)
    assert await former.ended() == 1
    (line,) = former.said("lease lost, the process ends")
    assert (line["lease"], line["transitions"], line["level"]) == (str(LEASE), 1, "error")
    assert former.words == []
    assert (them.server.leader(), other.process.returncode) == (other.name, None)


async def is_told_to_end(them: Replicas, former: Replica, other: Replica) -> None:
    """As in a rollout of the Deployment."""
    former.send(signal.SIGTERM)
    await them.until_it_works(other.name)
    assert (await former.ended(), former.words) == (0, [])
    assert [line["transitions"] for line in former.said("lease released")] == [2]
    (led,) = other.said("became leader")
    assert (led["transitions"], led["previous"]) == (3, None)


async def is_killed(them: Replicas, former: Replica, other: Replica) -> None:
    """Nobody gives anything back."""
    former.send(signal.SIGKILL)
    await them.until_it_works(other.name)
    (led,) = other.said("became leader")
    assert (led["transitions"], led["previous"].startswith(f"{former.name}_")) == (4, True)
