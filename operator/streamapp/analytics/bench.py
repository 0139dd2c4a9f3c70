"""Figures of the pipeline itself: a day of a made-up fleet end to end, and a day on top of many.

Called by the command line. The record is made up by a process of its own, so that what memory the pipeline needs can
be seen.
"""

import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from streamapp.analytics.bench_page import Section, megabytes, runs
from streamapp.analytics.bronze.ingest import SUFFIX, Ingest, bronze
from streamapp.analytics.build import Build
from streamapp.analytics.errors import AnalyticsError
from streamapp.analytics.progress import Stages, Steps
from streamapp.analytics.synthetic.fleet import Fleet

WARM: Final = (3, 8)
"""Applications and tasks of the day that goes through before anything is measured, so that the JVM is warm."""
COLD_SECONDS: Final = 45.0
AIM_SECONDS: Final = 60.0
LAYERS: Final = ("bronze", "silver", "gold")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured."""

    apps: int = 100
    tasks: int = 72
    repeats: int = 2
    on_top: tuple[int, ...] = (1, 7, 30)
    """Days that lie there already when another one comes."""
    small_apps: int = 6
    small_tasks: int = 16
    """Of the fleet of these days."""


def _lines(apps: int, tasks: int, days: int = 1) -> float:
    """About how many lines such a fleet's record has: two copies of each task, every five minutes, and some more."""
    return apps * tasks * days * 2 * 288 * 1.08


def _made_up(lines: float) -> float:
    """Seconds that it should take to make up so many lines; so with the next one, on two free cores."""
    return 2 + lines / 75_000


def _gone_through(lines: float) -> float:
    return 12 + lines / 60_000


def expected_seconds(plan: Plan) -> float:
    """Seconds that all steps together should take."""
    day, small = _lines(plan.apps, plan.tasks), _lines(plan.small_apps, plan.small_tasks)
    days = max(plan.on_top, default=0) + 2
    growth = sum(2 * _gone_through(small) + _gone_through(count * small) for count in plan.on_top)
    return COLD_SECONDS + _made_up(day) + plan.repeats * _gone_through(day) + _made_up(days * small) + growth


@dataclass(frozen=True, slots=True)
class Passage:
    """Seconds of one way from the record to gold."""

    ingest_s: float
    build_s: float
    stages: dict[str, float]

    @property
    def whole_s(self) -> float:
        """Both together."""
        return self.ingest_s + self.build_s


@dataclass(frozen=True, slots=True)
class OnTop:
    """A day that came on top of others: runs on as many days, and one more."""

    days: int
    lines: int
    """Of the day."""
    ingest_s: tuple[float, ...]
    build_s: tuple[float, ...]


@dataclass(slots=True)
class Figures:
    """All of it, in seconds, bytes and megabytes."""

    plan: Plan
    at: str
    spark: str
    java: str
    python: str
    cores: int
    heap: str
    first: Passage | None = None
    """The small day before, in a JVM that has done nothing yet."""
    lines: int = 0
    files: int = 0
    passages: list[Passage] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    """Of the record and of each layer."""
    jvm_mb: float = 0.0
    python_mb: float = 0.0
    on_top: list[OnTop] = field(default_factory=list)


@dataclass(slots=True)
class Bench:
    """One run of the bench, in a session that has just been opened."""

    spark: SparkSession
    root: Path
    plan: Plan
    heap: str
    steps: Steps
    stages: Callable[[], Stages]

    def measure(self) -> Figures:
        """All figures.

        Raises:
            AnalyticsError: the record could not be made up.
        """
        jvm = self.spark.sparkContext._jvm  # noqa: SLF001 - nothing else tells the version of Java
        java = str(jvm.java.lang.System.getProperty("java.version")) if jvm is not None else ""
        found = Figures(
            self.plan,
            f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
            self.spark.version,
            java,
            platform.python_version(),
            self.spark.sparkContext.defaultParallelism,
            self.heap,
        )
        with self.steps.step("a small day in a JVM that has done nothing yet", COLD_SECONDS):
            found.first = self._through(self._record("warm", *WARM, 1), self.root / "warm" / "tables")
        self._day(found)
        self._growth(found)
        return found

    def _day(self, found: Figures) -> None:
        plan = self.plan
        lines = _lines(plan.apps, plan.tasks)
        with self.steps.step(f"make up a day of {plan.apps} applications", _made_up(lines)):
            record = self._record("day", plan.apps, plan.tasks, 1)
        for run in range(plan.repeats):
            place = self.root / "day" / f"tables-{run + 1}"
            with self.steps.step(f"that day, run {run + 1} of {plan.repeats}", _gone_through(lines)):
                found.passages.append(self._through(record, place))
        found.lines, found.files = bronze(place).current().lines, len(record)
        found.sizes = {"record": sum(path.stat().st_size for path in record)}
        found.sizes |= {name: sum(path.stat().st_size for path in (place / name).rglob("*.parquet")) for name in LAYERS}
        found.jvm_mb, found.python_mb = peak_mb(jvm_pid(self.spark)), peak_mb("self")

    def _growth(self, found: Figures) -> None:
        plan, root = self.plan, self.root / "growth" / "tables"
        day = _lines(plan.small_apps, plan.small_tasks)
        days = max(plan.on_top, default=0) + 2
        with self.steps.step(f"make up {days} days of {plan.small_apps} applications", _made_up(days * day)):
            record = self._record("growth", plan.small_apps, plan.small_tasks, days)
        of_day = [[path for path in record if f"_{nth:04d}-" in path.name] for nth in range(days)]
        there = 0
        for count in plan.on_top:
            with self.steps.step(f"up to {count} days", _gone_through((count - there) * day)):
                self._through([path for files in of_day[there:count] for path in files], root)
            before, taken = bronze(root).current().lines, []
            for run in range(2):
                with self.steps.step(f"a day on top of {count + run}", _gone_through(day)):
                    taken.append(self._through(of_day[count + run], root))
            there, lines = count + 2, (bronze(root).current().lines - before) // 2
            builds = tuple(one.build_s for one in taken)
            found.on_top.append(OnTop(count, lines, tuple(one.ingest_s for one in taken), builds))

    def _record(self, name: str, apps: int, tasks: int, days: int) -> list[Path]:
        """The files of a made-up record."""
        folder = self.root / name / "record"
        sizes = ["--apps", str(apps), "--tasks", str(tasks), "--days", str(days)]
        command = [sys.executable, "-m", "streamapp.analytics", "generate", str(folder), *sizes]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise AnalyticsError(
                str(folder), done.stderr.strip()[-300:], f"look at what this says: {' '.join(command)}"
            )
        return sorted(folder.glob(f"*{SUFFIX}"))

    def _through(self, record: list[Path], root: Path) -> Passage:
        stages = self.stages()
        now = Fleet().start + timedelta(days=400)
        began = time.monotonic()
        Ingest(self.spark, bronze(root), stages, now).run(record)
        ingested = time.monotonic()
        Build(self.spark, root, stages).run()
        return Passage(ingested - began, time.monotonic() - ingested, stages.took)


def jvm_pid(spark: SparkSession) -> str:
    """The process of the driver's JVM."""
    gateway = spark.sparkContext._gateway  # noqa: SLF001 - nothing else knows it
    return str(gateway.proc.pid) if gateway is not None else "0"


def peak_mb(pid: str) -> float:
    """Megabytes that a process held at most; Linux alone tells it."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return float("nan")
    return next(int(line.split()[1]) * 1024 / 1e6 for line in status.splitlines() if line.startswith("VmHWM"))


def figures(told: dict[str, Any]) -> Figures:
    """What `dataclasses.asdict` gave, as figures again."""
    first = Passage(**told["first"]) if told["first"] else None
    plan = Plan(**{**told["plan"], "on_top": tuple(told["plan"]["on_top"])})
    passages = [Passage(**one) for one in told["passages"]]
    on_top = [OnTop(**{**one, **{n: tuple(one[n]) for n in ("ingest_s", "build_s")}}) for one in told["on_top"]]
    return Figures(**{**told, "first": first, "plan": plan, "passages": passages, "on_top": on_top})


def about(found: Figures) -> str:
    """With what it was measured."""
    return (
        f"Spark {found.spark}, Java {found.java}, Python {found.python}, {found.cores} cores, "
        f"heap {found.heap}; {found.at} UTC."
    )


def sections(found: Figures) -> list[Section]:
    """The tables of the page."""
    return [_whole(found), _by_stage(found), _by_size(found), *([_by_age(found)] if found.on_top else [])]


def _whole(found: Figures) -> Section:
    plan, passages = found.plan, found.passages
    met = sum(one.whole_s <= AIM_SECONDS for one in passages)
    rows = [
        (
            f"run {n + 1}",
            *(f"{s:.1f}" for s in (one.ingest_s, one.build_s, one.whole_s)),
            f"{found.lines / one.whole_s:,.0f}",
        )
        for n, one in enumerate(passages)
    ]
    if found.first is not None:
        told = (found.first.ingest_s, found.first.build_s, found.first.whole_s)
        rows.append((f"first of all, {WARM[0]} applications", *(f"{s:.1f}" for s in told), "-"))
    return Section(
        "A day of the fleet, from the record to gold",
        ("", "ingest s", "build s", "together s", "lines/s"),
        tuple(rows),
        f"{plan.apps} applications of {plan.tasks} tasks, {found.lines:,} lines in {found.files} files; the JVM is "
        f"warm, the report aside. {met} of {len(passages)} runs met the aim of {AIM_SECONDS:.0f} s. "
        f"Memory at its peak: {found.jvm_mb:,.0f} MB the JVM, {found.python_mb:,.0f} MB Python.",
    )


def _by_stage(found: Figures) -> Section:
    rows = []
    for name in found.passages[0].stages:
        took = [one.stages[name] for one in found.passages]
        middle = statistics.median(took)
        rows.append((name, runs(took), f"{found.lines / middle:,.0f}" if middle > 0.05 else "-"))
    note = "Lines of the record for each second of the stage, whatever the stage itself reads; the median of the runs."
    return Section("Stage by stage", ("stage", "s, each run", "lines/s"), tuple(rows), note)


def _by_size(found: Figures) -> Section:
    rows = tuple((name, megabytes(size), f"{size / found.lines:.2f}") for name, size in found.sizes.items())
    return Section("Bytes for each line of the record", ("", "MB", "B a line"), rows)


def _by_age(found: Figures) -> Section:
    plan = found.plan
    rows = tuple((str(one.days), f"{one.lines:,}", runs(one.ingest_s), runs(one.build_s)) for one in found.on_top)
    note = (
        f"{plan.small_apps} applications of {plan.small_tasks} tasks, so that all of it ends soon: a small fleet. "
        "The second run is on one day more."
    )
    return Section("A day on top of others", ("days there", "lines of the day", "ingest s", "build s"), rows, note)
