"""`python -m tests.benchmarks.fleet`, or `make bench-fleet`: what a fleet costs, one checkout beside another.

For each size, each checkout's operator runs as a process of its own against a stand-in of the API server and a broker
that answers. The groups are empty: as with pods that are Pending, nothing converges. After all StatefulSets are there
and a pause, a minute at rest is measured; then replicas are raised, one application after the other.
"""

import argparse
import asyncio
import json
import logging
import platform
import random
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from lab.settings import REPOSITORY
from streamapp.kube.client.kinds import STATEFUL_SETS, STREAM_APPS, Key
from tests.benchmarks.fleet.broker import FleetBroker, brokers, merged
from tests.benchmarks.fleet.process import OperatorProcess, operator
from tests.benchmarks.fleet.stand_in import FleetServer, a_stream_app
from tests.kube.discovery import write_kubeconfig

SETTLE_SECONDS = 45.0
"""After the last StatefulSet was made, before anything is measured."""
RAISE_EVERY = 0.3
GIVE_UP_SECONDS = 120.0
SWALLOWED = "127.0.0.1:9"
NAMESPACES = 20
WINDOWS = (0.0, 0.01, 0.1, 0.5)
"""Within which requests to one broker could be made one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The figures of one run."""

    source: str
    applications: int
    pods: int
    hostile: bool
    made_seconds: float
    """From the start of the process to the last StatefulSet."""
    requests_per_second: float
    """At rest, watches left out."""
    requests_at_rest: dict[str, int]
    """By method and kind, in the measured time."""
    kafka_per_second: float
    describes: dict[str, float]
    """DescribeGroups a second at rest, if those to one broker within so long were one request."""
    connections: int
    threads: int
    cpu_percent: float
    """Of one core, at rest."""
    memory_mib: float
    raise_ms: tuple[float, ...]
    """Sorted; from the write of the wish to the arrival of the PATCH."""
    unanswered: int
    """Raises that were not made in time."""

    def at(self, share: float) -> float:
        """A percentile of the raises."""
        return (
            self.raise_ms[min(len(self.raise_ms) - 1, round(share * (len(self.raise_ms) - 1)))] if self.raise_ms else 0
        )


def main() -> None:
    """Measure, print a table, and write all figures."""
    arguments = _arguments()
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # an operator that ends leaves requests behind
    runs = []
    for count, pods in arguments.sizes:
        for source in arguments.sources:
            run = asyncio.run(measured(source, count, pods, arguments))
            runs.append(run)
            Console(stderr=True).print("  ".join(_row(run)))
    Console(width=150).print(table(runs))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(run) for run in runs], indent=1))


async def measured(source: Path, count: int, pods: int, arguments: argparse.Namespace) -> Run:
    """Measure one size with the operator of one checkout."""
    server = FleetServer()
    keys = [Key(f"team-{number % NAMESPACES}", f"app-{number}") for number in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        async with brokers(arguments.brokers) as cluster, server.serving() as url:
            bootstrap = ",".join(f"localhost:{one.port}" for one in cluster)
            for key in keys:
                server.put(STREAM_APPS.plural, a_stream_app(key, pods, bootstrap))
            if arguments.hostile:
                _plant_a_hostile_one(server)
            write_kubeconfig(Path(folder, "kubeconfig"), url)
            log = arguments.log or Path(folder, "log")
            began = time.monotonic()
            async with operator(source, Path(folder, "kubeconfig"), log) as process:
                await _until_made(server, keys)
                made = time.monotonic() - began
                await asyncio.sleep(arguments.settle)
                at_rest = await _at_rest(server, cluster, process, arguments.seconds)
                unanswered = await _raise(server, keys, pods, arguments.raises)
                return replace(
                    at_rest,
                    source=_named(source),
                    applications=count,
                    pods=pods,
                    hostile=arguments.hostile,
                    made_seconds=made,
                    raise_ms=tuple(sorted(1000 * one for one in server.latencies)),
                    unanswered=unanswered,
                )


def _plant_a_hostile_one(server: FleetServer) -> None:
    """One whose broker refuses every connection, and whose user changes it all the time."""
    key = Key("hostile", "hostile")
    server.put(STREAM_APPS.plural, a_stream_app(key, 50, SWALLOWED))

    def change() -> None:
        app = server.objects[STREAM_APPS.plural, key.namespace, key.name].body
        labels = {"changed": str(time.monotonic())}
        server.put(STREAM_APPS.plural, {**app, "metadata": {**app["metadata"], "labels": labels}})
        asyncio.get_running_loop().call_later(0.02, change)

    change()


async def _until_made(server: FleetServer, keys: Sequence[Key]) -> None:
    def is_made(key: Key) -> bool:
        return (STATEFUL_SETS.plural, key.namespace, key.name) in server.objects

    for key in keys:
        while not is_made(key):  # noqa: ASYNC110 (the stand-in tells nobody)
            await asyncio.sleep(0.1)


async def _at_rest(
    server: FleetServer, cluster: Sequence[FleetBroker], process: OperatorProcess, seconds: float
) -> Run:
    before, asked = Counter(server.requests), sum(one.asked for one in cluster)
    for one in cluster:
        one.described_at.clear()
    cpu, began = process.cpu_seconds(), time.monotonic()
    await asyncio.sleep(seconds)
    took = time.monotonic() - began
    made = {
        f"{method} {plural}": number
        for (method, plural), number in (server.requests - before).items()
        if method != "WATCH"
    }
    return Run(
        source="",
        applications=0,
        pods=0,
        hostile=False,
        made_seconds=0,
        requests_per_second=sum(made.values()) / took,
        requests_at_rest=made,
        kafka_per_second=(sum(one.asked for one in cluster) - asked) / took,
        describes={f"{window:g} s": merged([one.described_at for one in cluster], window) / took for window in WINDOWS},
        connections=sum(one.connections for one in cluster),
        threads=process.threads(),
        cpu_percent=100 * (process.cpu_seconds() - cpu) / took,
        memory_mib=process.memory_mib(),
        raise_ms=(),
        unanswered=0,
    )


async def _raise(server: FleetServer, keys: Sequence[Key], pods: int, count: int) -> int:
    """Raise one application after the other; give how many were not granted in the end."""
    server.latencies.clear()
    server.raised_at.clear()
    chance = random.Random(len(keys))  # noqa: S311 (chooses applications)
    wished = dict.fromkeys(keys, pods)
    for _ in range(count):
        key = chance.choice([key for key in keys if key not in server.raised_at] or list(keys))
        wished[key] += 1
        server.wish(key, wished[key])
        await asyncio.sleep(RAISE_EVERY)
    waited = 0.0
    while server.raised_at and waited < GIVE_UP_SECONDS:
        await asyncio.sleep(0.1)
        waited += 0.1
    return len(server.raised_at)


def table(runs: Sequence[Run]) -> Table:
    """The figures side by side."""
    names = ("applications × pods", "commit", "raise p50", "p99", "worst", "requests/s", "Kafka/s", "CPU", "memory")
    shown = Table(*names, "connections", "threads", "all made", box=None, header_style="bold")
    for column in shown.columns[2:]:
        column.justify = "right"
    for run in runs:
        shown.add_row(*_row(run))
    return shown


def _row(run: Run) -> tuple[str, ...]:
    return (
        f"{run.applications} × {run.pods}{' + hostile' if run.hostile else ''}",
        run.source,
        *(f"{run.at(share):,.0f} ms" for share in (0.5, 0.99, 1)),
        f"{run.requests_per_second:.1f}",
        f"{run.kafka_per_second:.1f}",
        f"{run.cpu_percent:.0f} %",
        f"{run.memory_mib:.0f} MiB",
        str(run.connections),
        str(run.threads),
        f"{run.made_seconds:.0f} s" + (f", {run.unanswered} not raised" if run.unanswered else ""),
    )


def _named(source: Path) -> str:
    said = subprocess.run(
        ["git", "-C", str(source), "rev-parse", "--short", "HEAD"], check=False, capture_output=True, text=True
    )
    return said.stdout.strip() or source.name


def _size(text: str) -> tuple[int, int]:
    count, _, pods = text.partition("x")
    return int(count), int(pods or 3)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", type=_size, default=[(1, 3), (50, 3), (200, 3)], metavar="NxP")
    parser.add_argument("--sources", nargs="+", type=Path, default=[REPOSITORY], help="checkouts, side by side")
    parser.add_argument("--settle", type=float, default=SETTLE_SECONDS, help="seconds before the measurement")
    parser.add_argument("--seconds", type=float, default=60.0, help="seconds at rest that are measured")
    parser.add_argument("--raises", type=int, default=100)
    parser.add_argument("--brokers", type=int, default=1, help="of the one cluster that all applications use")
    parser.add_argument("--hostile", action="store_true", help="one more application, which wishes all others ill")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--log", type=Path, help="where the operator's log goes")
    found = parser.parse_args()
    console = Console(stderr=True)
    console.print(
        f"Python {platform.python_version()} on {platform.machine()}, median of raises is a median", style="dim"
    )
    return found


if __name__ == "__main__":
    main()
