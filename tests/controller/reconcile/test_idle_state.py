"""A pod that waits to start until its state is too old: deleted if it still waits, and left alone if it started."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest

from tests.controller.doubles.bench import NAME, Bench, a_bench
from tests.controller.doubles.fake_pods import NAMESPACE
from tests.kube.api_server import Write

Json = dict[str, Any]


def on_a_bench(play: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    """Play something on a bench whose application has four pods and is converged."""

    async def run() -> None:
        async with a_bench(4) as bench:
            await play(bench)

    asyncio.run(run())


def pod(bench: Bench, ordinal: int) -> Json | None:
    """The pod of an ordinal."""
    return bench.server.get("pods", NAMESPACE, f"{NAME}-{ordinal}")


def keep_from_starting(bench: Bench, ordinal: int, idle: timedelta) -> Json:
    """Make a pod one whose seeder has just ended, and whose image cannot be pulled; give it as it ran before."""
    ran = pod(bench, ordinal)
    assert ran is not None
    ended = {
        "exitCode": 0,
        "finishedAt": bench.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        "message": f'{{"seeded":false,"idleSeconds":{idle.total_seconds():.0f}}}',
    }
    waits = {"name": "app", "restartCount": 0, "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    status = {
        **ran["status"],
        "containerStatuses": [waits],
        "initContainerStatuses": [{"name": "streamapp-seed", "state": {"terminated": ended}}],
        "conditions": [],
    }
    bench.server.put("pods", {**ran, "status": status})
    return ran


async def for_hours(bench: Bench, hours: float) -> None:
    """Let time pass, half an hour at a time."""
    for _ in range(round(hours * 2)):
        bench.clock.move(1800)
        await bench.make_pass()


@pytest.mark.guarantee(4)
def test_a_pod_is_deleted_when_the_state_that_it_waits_with_is_too_old() -> None:
    async def play(bench: Bench) -> None:
        keep_from_starting(bench, 2, timedelta(hours=16))
        await for_hours(bench, 3.5)
        assert pod(bench, 2) is not None
        assert bench.condition("ProcessIdentityStable")[1] != "IdleStateExpired"
        await for_hours(bench, 0.5)
        assert pod(bench, 2) is None
        assert [write.method for write in bench.server.writes if write.plural == "pods"] == ["DELETE"]

    on_a_bench(play)


@pytest.mark.guarantee(4)
def test_a_pod_is_deleted_that_ran_and_could_not_start_again_until_its_state_was_too_old() -> None:
    async def play(bench: Bench) -> None:
        keep_from_starting(bench, 2, timedelta(0))
        found = pod(bench, 2)
        assert found is not None
        (waits,) = found["status"]["containerStatuses"]
        now = bench.clock.now()
        ran = {"exitCode": 1, "startedAt": now.isoformat(), "finishedAt": (now + timedelta(minutes=30)).isoformat()}
        again = {**waits, "restartCount": 1, "lastState": {"terminated": {"containerID": "containerd://x", **ran}}}
        bench.server.put("pods", {**found, "status": {**found["status"], "containerStatuses": [again]}})
        await for_hours(bench, 20)
        assert pod(bench, 2) is not None
        await for_hours(bench, 0.5)
        assert pod(bench, 2) is None

    on_a_bench(play)


@pytest.mark.guarantee(4)
def test_a_pod_that_started_since_it_was_read_is_not_deleted() -> None:
    async def play(bench: Bench) -> None:
        ran = keep_from_starting(bench, 2, timedelta(hours=19))

        def start(write: Write) -> str | None:
            """Let the container start in the instant in which the deletion is sent."""
            if write.plural == "pods":
                bench.server.put("pods", ran)
            return None

        bench.server.fault = start
        await for_hours(bench, 1)
        assert [write.method for write in bench.server.writes if write.plural == "pods"] == ["DELETE"]
        kept = pod(bench, 2)
        assert kept is not None
        assert kept["status"] == ran["status"]

    on_a_bench(play)
