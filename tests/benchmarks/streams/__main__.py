"""Let each thing happen to all groups at once, cycle by cycle, and print how long the users of a task waited."""

import json
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import click

from lab.build.cache import Cache
from lab.build.maven import AGENT_JAR, agent_jar, broker_jars, package
from lab.build.plan import COUNTER
from lab.build.toolchains import java_home
from lab.matrix import broker, word_load
from lab.meter.gaps import Window
from lab.meter.measure import measure_gaps
from lab.settings import Settings
from lab.terminal import step
from tests.benchmarks.streams.group import KINDS, PROCESSES, BenchGroup

_PAUSE_SECONDS = (1.0, 6.0)
"""Between two events, so that they fall anywhere between two heartbeats."""
_MEMORY = ("-Xmx160m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")


@dataclass(frozen=True)
class Event:
    """Something that happens."""

    name: str
    happens: Callable[[BenchGroup], None]
    processes: int = PROCESSES
    """That are left."""
    is_measured: bool = True
    is_of_groups_setting: bool = False
    has_standbys: bool = True
    """When it is over."""


def _capped_stop(group: BenchGroup) -> None:
    group.cap()
    group.stop()
    if not group.kind.has_group_setting:
        group.evict()  # a classic member that nobody announced as leaving does not leave


def _restart(group: BenchGroup) -> None:
    _capped_stop(group)
    group.start()


def _death(group: BenchGroup) -> None:
    group.kill()
    group.evict()


EVENTS = (
    Event("departure", _capped_stop, PROCESSES - 1),
    Event("return on its volume", BenchGroup.start),
    Event("restart in place", _restart),
    Event("death, members evicted", _death, PROCESSES - 1),
    Event("growth, empty volume", lambda group: group.start(anew=True)),
    Event("death, no eviction", BenchGroup.kill, PROCESSES - 1),
    Event("return after it", BenchGroup.start, is_measured=False),
    Event(
        "no standbys",
        lambda group: group.set_standbys(0),
        is_measured=False,
        is_of_groups_setting=True,
        has_standbys=False,
    ),
    Event("raise of standbys", lambda group: group.set_standbys(1), is_of_groups_setting=True),
)


@dataclass(frozen=True)
class Happened:
    """One event of one group."""

    event: str
    kind: str
    window: Window
    settled_seconds: float


@dataclass(frozen=True)
class Gap:
    """How long users of the worst partition waited."""

    event: str
    kind: str
    seconds: float | None
    settled_seconds: float


@click.command()
@click.option("--cycles", default=12, show_default=True, help="How often each thing happens.")
@click.option("--minutes", default=60.0, show_default=True, help="No cycle begins later.")
@click.option("--keys", default=20_000, show_default=True, help="Keys of each application.")
@click.option("--rate", default=150, show_default=True, help="Records a second for each application.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write every gap here.")
@click.option("--markdown", type=click.Path(dir_okay=False, path_type=Path), help="Write the table here.")
def main(*, cycles: int, minutes: float, keys: int, rate: int, json_file: Path | None, markdown: Path | None) -> None:
    """Measure what happens to groups of both protocols."""
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="streamapp-streams-")))
        groups, bootstrap = _begun(stack, place, keys)
        happened = _played(groups, cycles, time.monotonic() + minutes * 60, rate)
        found = [_measured(bootstrap, one) for one in happened]
    text = table(found)
    click.echo(text)
    if json_file:
        json_file.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")
    if markdown:
        markdown.write_text(text)


def _begun(stack: ExitStack, place: Path, keys: int) -> tuple[list[BenchGroup], str]:
    lab = Settings.from_environment()
    cache, java = Cache(lab.cache), java_home(lab.versions)
    jars, agent = package(COUNTER, lab.versions, cache), agent_jar(lab.versions, cache) / AGENT_JAR
    (place / "broker").mkdir()
    server = stack.enter_context(broker.running(broker_jars(lab.versions, cache), java, place / "broker"))
    main_class = ("-cp", f"{jars}/counter.jar:{jars}/lib/*", "dev.streamapp.examples.counter.Counter")
    command = (str(java / "bin" / "java"), *_MEMORY, f"-javaagent:{agent}", *main_class)
    groups = [BenchGroup(kind, server, place / kind.name, command, stack) for kind in KINDS]
    for group in groups:
        with step(f"{group.kind.name}: {PROCESSES} processes"):
            group.begin(keys)
    return groups, server.bootstrap


def _played(groups: Sequence[BenchGroup], cycles: int, last_begin: float, rate: int) -> list[Happened]:
    happened: list[Happened] = []
    with ExitStack() as loads, ThreadPoolExecutor(len(groups)) as threads:
        for group in groups:
            loads.enter_context(word_load.steady(group.broker.bootstrap, group.topics[0], group.words, rate))
        for cycle in range(cycles):
            if time.monotonic() > last_begin:
                click.echo(f"{cycle} of {cycles} cycles: the time is over", err=True)
                break
            with step(f"cycle {cycle + 1} of {cycles}"):
                for event in EVENTS:
                    concerned = [one for one in groups if one.kind.has_group_setting or not event.is_of_groups_setting]
                    time.sleep(random.uniform(*_PAUSE_SECONDS))  # noqa: S311 - a moment between two heartbeats
                    found = list(threads.map(lambda one, event=event: _one(one, event), concerned))
                    happened += found if event.is_measured else []
    return happened


def _one(group: BenchGroup, event: Event) -> Happened:
    began, start = round(time.time() * 1000), time.monotonic()
    event.happens(group)
    group.settle(event.processes, standbys=event.has_standbys)
    return Happened(event.name, group.kind.name, Window(began, round(time.time() * 1000)), time.monotonic() - start)


def _measured(bootstrap: str, one: Happened) -> Gap:
    topics = f"{one.kind}-input", f"{one.kind}-output"
    worst = measure_gaps(bootstrap, *topics, one.window).worst(None)
    return Gap(one.event, one.kind, None if worst is None else worst.seconds, one.settled_seconds)


def table(found: Sequence[Gap]) -> str:
    """One row for each event and kind."""
    rows = ["| Event | Group | Runs | Median (s) | Longest (s) | Settled after, median (s) | All (s) |"]
    rows.append("| --- | --- | --- | --- | --- | --- | --- |")
    for event, kind in dict.fromkeys((one.event, one.kind) for one in found):
        of_both = [one for one in found if (one.event, one.kind) == (event, kind)]
        gaps = [one.seconds for one in of_both if one.seconds is not None]
        settled = median(one.settled_seconds for one in of_both)
        shown = ("–", "–") if not gaps else (f"{median(gaps):.2f}", f"{max(gaps):.2f}")
        every = ", ".join(f"{gap:.2f}" for gap in gaps)
        rows.append(f"| {event} | {kind} | {len(gaps)} | {shown[0]} | {shown[1]} | {settled:.1f} | {every} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    main()
