"""What an answer about a large application costs: `python -m tests.benchmarks.answers`.

Answers are made in a thread beside the loop that runs passes. The delay is that of a task that wants to run every
millisecond, while answers are made and while none is.
"""

import asyncio
import platform
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from streamapp.controller.http.answers import Endpoint, _build
from streamapp.core.doctor.subject import Subject, TemplateFacts
from streamapp.core.facts.policy import ScalingPolicy
from streamapp.kube.client.kinds import Key
from tests.benchmarks.decisions import SIZES, held

RUNS = 7
KEY = Key("demo", "wordcount")


def main() -> None:
    """Measure all sizes and print one table."""
    table = Table("tasks", "pods", "answer", "size", "build", "delay of the loop", "without", box=None)
    for size in SIZES:
        subject = Subject(snapshot=held(size), policy=ScalingPolicy(), template=TemplateFacts(has_readiness_probe=True))
        for question in Endpoint:
            build = partial(_build, question, KEY, subject)
            body, seconds = timed(build)
            delays = asyncio.run(delayed(build))
            table.add_row(
                f"{size.tasks:,}",
                str(size.pods),
                question.value,
                f"{len(body):,} B",
                f"{seconds * 1000:.1f} ms",
                *(f"{delay * 1000:.1f} ms" for delay in delays),
            )
    console = Console()
    console.print(f"answers, Python {platform.python_version()} on {platform.machine()}", style="bold")
    console.print(table)


def timed(build: Callable[[], bytes]) -> tuple[bytes, float]:
    """The answer, and the median of the seconds that it takes."""
    times = []
    body = b""
    for _ in range(RUNS):
        began = time.perf_counter()
        body = build()
        times.append(time.perf_counter() - began)
    return body, sorted(times)[RUNS // 2]


async def delayed(build: Callable[[], bytes]) -> tuple[float, float]:
    """The longest delay of the loop while answers are made, and while it waits for as long."""
    began = time.perf_counter()
    with_builds = await _longest_delay(_built(build))
    spent = time.perf_counter() - began
    return with_builds, await _longest_delay(asyncio.sleep(spent))


async def _built(build: Callable[[], bytes]) -> None:
    for _ in range(RUNS):
        await asyncio.to_thread(build)


async def _longest_delay(what: Coroutine[Any, Any, None]) -> float:
    task = asyncio.ensure_future(what)
    longest = 0.0
    while not task.done():
        began = time.perf_counter()
        await asyncio.sleep(0.001)
        longest = max(longest, time.perf_counter() - began - 0.001)
    return longest


if __name__ == "__main__":
    main()
