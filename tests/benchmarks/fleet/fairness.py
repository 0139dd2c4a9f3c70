"""`python -m tests.benchmarks.fleet.fairness`: what one application that misbehaves costs all the others.

One process of the operator serves all; in turn nobody misbehaves, and one application does in each way. So each figure
stands beside those of the same process a moment before and after. Two things are timed of the others: a raise, from the
write of `spec.replicas` to the arrival of the PATCH, and a pass, from the write of another field to the arrival of the
status that has observed it. Brokers and API server are in the process of the benchmark: what they do costs time, too.
"""

import argparse
import asyncio
import itertools
import json
import logging
import random
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from kio.serial import entity_writer
from rich.console import Console
from rich.table import Table

from lab.settings import REPOSITORY
from streamapp.kafka.group.groups import MOST_MEMBERS
from streamapp.kube.client.kinds import STATEFUL_SETS, STREAM_APPS, Key
from tests.benchmarks.fleet.__main__ import NAMESPACES, _named, _until_made
from tests.benchmarks.fleet.broker import FleetBroker
from tests.benchmarks.fleet.process import OperatorProcess, operator
from tests.benchmarks.fleet.stand_in import FleetServer, a_stream_app
from tests.kafka.answers import described
from tests.kube.discovery import write_kubeconfig
from tests.kube.object_store import Change, Request
from tests.tenants.brokers import (
    API_VERSIONS,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    HostileBroker,
    api_versions,
    itself_as_coordinator,
)
from tests.wire.captures import captured

BAD = Key("bad", "bad")
EVERY_SECONDS = 0.25
LARGEST_BYTES = 15 * 1024 * 1024
"""Just below what the operator takes."""
LATE_SECONDS = 4.5
"""Just before the deadline of the operator."""


class TimedServer(FleetServer):
    """Times passes, too, and fails the writes of one application."""

    def __init__(self) -> None:
        super().__init__()
        self.edited: dict[Key, tuple[int, float]] = {}
        """The generation that a status must have observed, and when it was written."""
        self.pass_latencies: list[float] = []

    def edit(self, key: Key, seconds: int) -> None:
        """Write a field that changes no replicas, and time what follows."""
        app = self.objects[STREAM_APPS.plural, key.namespace, key.name].body
        scale_down = {**app["spec"].get("scaleDown", {}), "stabilizationWindow": f"{seconds}s"}
        put = self.put(STREAM_APPS.plural, {**app, "spec": {**app["spec"], "scaleDown": scale_down}})
        self.edited[key] = (put["metadata"]["generation"], time.monotonic())

    def _remember(self, change: Change) -> None:
        super()._remember(change)
        plural, namespace, name = change.identity
        key = Key(namespace, name)
        if plural == STREAM_APPS.plural and change.body is not None and key in self.edited:
            generation, at = self.edited[key]
            if change.body.get("status", {}).get("observedGeneration", 0) >= generation:
                self.pass_latencies.append(time.monotonic() - at)
                del self.edited[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """The figures of one phase."""

    name: str
    raise_ms: tuple[float, ...]
    pass_ms: tuple[float, ...]
    unanswered: int
    cpu_percent: float
    memory_mib: float


@dataclass(slots=True)
class Stage:
    """Who takes part."""

    server: TimedServer
    broker: FleetBroker
    keys: Sequence[Key]
    process: OperatorProcess
    edits: Iterator[int] = field(default_factory=partial(itertools.count, 60))
    """Another number each time: an edit that changes nothing makes no pass."""

    bad: Key = field(default_factory=lambda: Key(BAD.namespace, BAD.name))

    def add(self, bootstrap: str) -> None:
        """Plant the application that misbehaves; each time another one, of the same group."""
        self.bad = Key(BAD.namespace, f"{BAD.name}-{next(self.edits)}")
        app = a_stream_app(self.bad, 3, bootstrap)
        self.server.put(STREAM_APPS.plural, {**app, "spec": {**app["spec"], "applicationId": BAD.name}})

    @property
    def bootstrap(self) -> str:
        """The brokers of all others."""
        return f"127.0.0.1:{self.broker.port}"


Way = Callable[[Stage], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def nobody(_: Stage) -> AsyncIterator[None]:
    """Have no application misbehave."""
    yield


@asynccontextmanager
async def all_writes_fail(stage: Stage) -> AsyncIterator[None]:
    """Answer 500 to every write of its objects."""

    def refuse(request: Request) -> tuple[int, str] | None:
        return (500, "injected") if request.namespace == BAD.namespace else None

    stage.server.refuse_write = refuse
    stage.add(stage.bootstrap)
    try:
        yield
    finally:
        stage.server.refuse_write = lambda _: None


@asynccontextmanager
async def own_broker(stage: Stage, answers: Mapping[int, Callable[[int], bytes]]) -> AsyncIterator[None]:
    """Give it a broker of its own."""
    async with HostileBroker(answers).running() as broker:
        stage.add(broker.address)
        yield


@asynccontextmanager
async def slow_broker(stage: Stage) -> AsyncIterator[None]:
    """Give it a broker of its own that answers just before the deadline."""
    own = FleetBroker()
    own.slow[BAD.name] = LATE_SECONDS
    async with own.running():
        stage.add(f"127.0.0.1:{own.port}")
        yield


@asynccontextmanager
async def slow_group(stage: Stage, seconds: float) -> AsyncIterator[None]:
    """Have the brokers of all others answer late for its group alone."""
    stage.broker.slow[BAD.name] = seconds
    stage.add(stage.bootstrap)
    try:
        yield
    finally:
        stage.broker.slow.clear()


@asynccontextmanager
async def edited(stage: Stage) -> AsyncIterator[None]:
    """Change it twenty times a second."""
    stage.add(stage.bootstrap)

    async def change() -> None:
        for number in itertools.count():
            app = stage.server.objects[STREAM_APPS.plural, stage.bad.namespace, stage.bad.name].body
            spec = {**app["spec"], "scaleDown": {"stabilizationWindow": f"{number}s"}}
            stage.server.put(STREAM_APPS.plural, {**app, "spec": spec})
            await asyncio.sleep(0.05)

    changing = asyncio.create_task(change())
    try:
        yield
    finally:
        changing.cancel()


def large_group(most_bytes: int) -> Mapping[int, Callable[[int], bytes]]:
    """A group of as many members as the operator takes, which can be decoded; padded to so many bytes, it cannot."""
    one = captured("4.2.1-standbys")[0]
    size = len(one.metadata) + len(one.assignment) + 200
    padding = b"\0" * max(0, most_bytes // MOST_MEMBERS - size)
    members = [
        replace(one, member_id=f"member-{number}", assignment=one.assignment + padding)
        for number in range(MOST_MEMBERS)
    ]
    answer = described("Stable", members, group=BAD.name)
    parts: list[bytes] = []

    class _Parts:
        def write(self, part: bytes) -> int:
            parts.append(part)
            return len(part)

    entity_writer(type(answer))(_Parts(), answer)  # type: ignore[arg-type]  # all it needs
    body = b"".join(parts)
    return {
        API_VERSIONS: api_versions,
        FIND_COORDINATOR: itself_as_coordinator(BAD.name),
        DESCRIBE_GROUPS: lambda _: body,
    }


def ways() -> Mapping[str, Way]:
    """In which one application misbehaves."""
    return {
        "every write fails": all_writes_fail,
        "own broker answers after 4.5 s": slow_broker,
        "own broker never answers": partial(own_broker, answers={API_VERSIONS: api_versions}),
        "shared broker answers after 4.5 s for its group": partial(slow_group, seconds=LATE_SECONDS),
        "shared broker never answers for its group": partial(slow_group, seconds=1e6),
        "own broker sends 5,000 members each time": partial(own_broker, answers=large_group(0)),
        "own broker sends 15 MiB each time": partial(own_broker, answers=large_group(LARGEST_BYTES)),
        "edited 20 times a second": edited,
    }


async def phase(stage: Stage, name: str, way: Way, seconds: float) -> Phase:
    """Measure the others while this goes on."""
    server = stage.server
    async with way(stage):
        await asyncio.sleep(4)
        for figures in (server.latencies, server.pass_latencies, server.raised_at, server.edited):
            figures.clear()
        chance = random.Random(7)  # noqa: S311 (chooses applications)
        cpu, began = stage.process.cpu_seconds(), time.monotonic()
        while time.monotonic() - began < seconds:
            raised, changed = chance.sample(list(stage.keys), 2)
            if raised not in server.raised_at and raised not in server.edited:
                app = server.objects[STREAM_APPS.plural, raised.namespace, raised.name].body
                server.wish(raised, app["spec"]["replicas"] + 1)
            await asyncio.sleep(EVERY_SECONDS / 2)
            if changed not in server.edited and changed not in server.raised_at:
                server.edit(changed, next(stage.edits))
            await asyncio.sleep(EVERY_SECONDS / 2)
        cpu_percent = 100 * (stage.process.cpu_seconds() - cpu) / (time.monotonic() - began)
        await asyncio.sleep(3)
    for plural in (STREAM_APPS.plural, STATEFUL_SETS.plural):
        if (plural, stage.bad.namespace, stage.bad.name) in server.objects:
            server.remove(plural, stage.bad.namespace, stage.bad.name)
    await asyncio.sleep(2)
    return Phase(
        name=name,
        raise_ms=tuple(sorted(1000 * one for one in server.latencies)),
        pass_ms=tuple(sorted(1000 * one for one in server.pass_latencies)),
        unanswered=len(server.raised_at) + len(server.edited),
        cpu_percent=cpu_percent,
        memory_mib=stage.process.memory_mib(),
    )


async def measured(source: Path, arguments: argparse.Namespace) -> list[Phase]:
    """Play all phases with the operator of one checkout."""
    server, broker = TimedServer(), FleetBroker()
    keys = [Key(f"team-{number % NAMESPACES}", f"app-{number}") for number in range(arguments.applications)]
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        await stack.enter_async_context(broker.running())
        write_kubeconfig(folder / "kubeconfig", await stack.enter_async_context(server.serving()))
        for key in keys:
            server.put(STREAM_APPS.plural, a_stream_app(key, arguments.pods, f"127.0.0.1:{broker.port}"))
        log = arguments.log or folder / "log"
        process = await stack.enter_async_context(operator(source, folder / "kubeconfig", log))
        await _until_made(server, keys)
        await asyncio.sleep(arguments.settle)
        stage = Stage(server, broker, keys, process)
        found = []
        for name, way in ways().items():
            if arguments.only and arguments.only not in name:
                continue
            for each, how in (("nobody", nobody), (name, way)):
                found.append(await phase(stage, each, how, arguments.seconds))
                Console(stderr=True).print("  ".join(_row(found[-1])))
        found.append(await phase(stage, "nobody", nobody, arguments.seconds))
        return found


def table(source: str, phases: Sequence[Phase]) -> Table:
    """All phases in their order."""
    names = ("raise p50", "p99", "worst", "pass p50", "p99", "worst", "n", "unanswered", "CPU", "memory")
    shown = Table("who misbehaves", *names, box=None, header_style="bold", title=source)
    for one in phases:
        shown.add_row(*_row(one))
    return shown


def _row(one: Phase) -> tuple[str, ...]:
    figures = [f"{_at(values, share):,.0f}" for values in (one.raise_ms, one.pass_ms) for share in (0.5, 0.99, 1)]
    count = f"{len(one.raise_ms)}+{len(one.pass_ms)}"
    return (one.name, *figures, count, str(one.unanswered), f"{one.cpu_percent:.0f} %", f"{one.memory_mib:.0f} MiB")


def _at(values: Sequence[float], share: float) -> float:
    return values[round(share * (len(values) - 1))] if values else 0.0


def main() -> None:
    """Measure, print a table for each checkout, and write all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--applications", type=int, default=50)
    parser.add_argument("--pods", type=int, default=3)
    parser.add_argument("--sources", nargs="+", type=Path, default=[REPOSITORY], help="checkouts, one after the other")
    parser.add_argument("--settle", type=float, default=30.0, help="seconds before the first phase")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each phase")
    parser.add_argument("--only", default="", help="a part of the name of the ways to play")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--log", type=Path, help="where the operator's log goes")
    arguments = parser.parse_args()
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    found = {}
    for source in arguments.sources:
        found[_named(source)] = phases = asyncio.run(measured(source, arguments))
        Console(width=170).print(table(_named(source), phases))
    if arguments.json:
        text = {source: [asdict(one) for one in phases] for source, phases in found.items()}
        arguments.json.write_text(json.dumps(text, indent=1))


if __name__ == "__main__":
    main()
