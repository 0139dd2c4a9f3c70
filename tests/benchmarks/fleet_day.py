"""The pipeline by itself: a day of a synthetic fleet end to end, and a day on top of many others.

`python -m tests.benchmarks.fleet_day --root FOLDER`; `tests.benchmarks.pipeline` runs it as its first part. Another
process generates the record, so that the memory at its peak is the pipeline's alone.
"""

import json
import platform
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import click
from pyspark.sql import SparkSession
from rich.console import Console

from streamapp.analytics.bronze.ingest import SUFFIX, Ingest, bronze
from streamapp.analytics.build import Build
from streamapp.analytics.cli import require_tables_folder, running_spark, stage_display
from streamapp.analytics.spark.options import OUTPUT, engine_options
from streamapp.analytics.synthetic.fleet import Fleet
from tests.benchmarks import page
from tests.benchmarks.engines import cpu_seconds, jvm_pid, peak_mb
from tests.benchmarks.page import Section, megabytes, runs
from tests.benchmarks.steps import Steps

WARM: Final = (3, 8)
"""Applications and tasks of the day that runs before the measured ones, so that the JVM is warm."""
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
    """Days in the tables when another day comes."""
    small_apps: int = 6
    small_tasks: int = 16
    """Of the fleet of these days."""


def _line_count(apps: int, tasks: int, days: int = 1) -> float:
    """About how many samples such a fleet's record has: two copies of each task, every five minutes, and some more."""
    return apps * tasks * days * 2 * 288 * 1.08


def _generate_s(lines: float) -> float:
    """Expected seconds to generate so many lines on two free cores."""
    return 2 + lines / 75_000


def _pipeline_s(lines: float) -> float:
    """Expected seconds to ingest and build so many lines on two free cores."""
    return 12 + lines / 60_000


def expected_seconds(plan: Plan) -> float:
    """Seconds that all steps together should take."""
    day, small = _line_count(plan.apps, plan.tasks), _line_count(plan.small_apps, plan.small_tasks)
    days = max(plan.on_top, default=0) + 2
    growth = sum(2 * _pipeline_s(small) + _pipeline_s(count * small) for count in plan.on_top)
    return COLD_SECONDS + _generate_s(day) + plan.repeats * _pipeline_s(day) + _generate_s(days * small) + growth


@dataclass(frozen=True, slots=True)
class PipelineRun:
    """Seconds of one run from the record to gold."""

    ingest_s: float
    build_s: float
    stages: dict[str, float]
    cpu_s: float
    """Of processor time, of both together: on a machine that others load it says more than the clock."""

    @property
    def whole_s(self) -> float:
        """Seconds of ingest and build together."""
        return self.ingest_s + self.build_s


@dataclass(frozen=True, slots=True)
class AddedDay:
    """A day on top of others: one run with so many days in the tables, and one with a day more."""

    days: int
    lines: int
    """Of the day."""
    ingest_s: tuple[float, ...]
    build_s: tuple[float, ...]


@dataclass(slots=True)
class Figures:
    """All figures, in seconds, bytes and megabytes."""

    plan: Plan
    at: str
    spark: str
    java: str
    python: str
    cores: int
    heap: str
    first: PipelineRun | None = None
    """The small day before the measured ones, in a cold JVM."""
    lines: int = 0
    """Samples, of which a line of the record has many, and other lines."""
    files: int = 0
    passages: list[PipelineRun] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    """Of the record and of each layer."""
    jvm_mb: float = 0.0
    python_mb: float = 0.0
    on_top: list[AddedDay] = field(default_factory=list)


@dataclass(slots=True)
class Benchmark:
    """One run of the benchmark, in a session that has just been opened."""

    spark: SparkSession
    root: Path
    plan: Plan
    heap: str
    steps: Steps

    def measure(self) -> Figures:
        jvm = self.spark.sparkContext._jvm
        java = str(jvm.java.lang.System.getProperty("java.version")) if jvm is not None else ""
        measured = Figures(
            self.plan,
            f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
            self.spark.version,
            java,
            platform.python_version(),
            self.spark.sparkContext.defaultParallelism,
            self.heap,
        )
        with self.steps.step("a small day in a cold JVM", COLD_SECONDS):
            measured.first = self._run_pipeline(self._record("warm", *WARM, 1), self.root / "warm" / "tables")
        self._day(measured)
        self._growth(measured)
        return measured

    def _day(self, measured: Figures) -> None:
        plan = self.plan
        lines = _line_count(plan.apps, plan.tasks)
        with self.steps.step(f"generate a day of {plan.apps} applications", _generate_s(lines)):
            record = self._record("day", plan.apps, plan.tasks, 1)
        for run in range(plan.repeats):
            place = self.root / "day" / f"tables-{run + 1}"
            with self.steps.step(f"that day, run {run + 1} of {plan.repeats}", _pipeline_s(lines)):
                measured.passages.append(self._run_pipeline(record, place))
        measured.lines, measured.files = _rows(place), len(record)
        measured.sizes = {"record": sum(path.stat().st_size for path in record)}
        measured.sizes |= {
            name: sum(path.stat().st_size for path in (place / name).rglob("*.parquet")) for name in LAYERS
        }
        measured.jvm_mb, measured.python_mb = peak_mb(jvm_pid(self.spark)), peak_mb("self")

    def _growth(self, measured: Figures) -> None:
        plan, root = self.plan, self.root / "growth" / "tables"
        day = _line_count(plan.small_apps, plan.small_tasks)
        days = max(plan.on_top, default=0) + 2
        with self.steps.step(f"generate {days} days of {plan.small_apps} applications", _generate_s(days * day)):
            record = self._record("growth", plan.small_apps, plan.small_tasks, days)
        of_day = [[path for path in record if f"_{nth:04d}-" in path.name] for nth in range(days)]
        there = 0
        for count in plan.on_top:
            with self.steps.step(f"up to {count} days", _pipeline_s((count - there) * day)):
                self._run_pipeline([path for files in of_day[there:count] for path in files], root)
            before, taken = _rows(root), []
            for run in range(2):
                with self.steps.step(f"a day on top of {count + run}", _pipeline_s(day)):
                    taken.append(self._run_pipeline(of_day[count + run], root))
            there, lines = count + 2, (_rows(root) - before) // 2
            builds = tuple(one.build_s for one in taken)
            measured.on_top.append(AddedDay(count, lines, tuple(one.ingest_s for one in taken), builds))

    def _record(self, name: str, apps: int, tasks: int, days: int) -> list[Path]:
        """The files of a synthetic record."""
        folder = self.root / name / "record"
        sizes = ["--apps", str(apps), "--tasks", str(tasks), "--days", str(days)]
        command = [sys.executable, "-m", "streamapp.analytics", "generate", str(folder), *sizes]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise click.ClickException(f"{' '.join(command)} failed: {done.stderr.strip()[-300:]}")
        return sorted(folder.glob(f"*{SUFFIX}"))

    def _run_pipeline(self, record: list[Path], root: Path) -> PipelineRun:
        stages = stage_display(self.spark)
        now = Fleet().start + timedelta(days=400)
        processes = jvm_pid(self.spark), "self"
        began, spent = time.monotonic(), cpu_seconds(*processes)
        Ingest(self.spark, bronze(root), stages, now).run(record)
        ingested = time.monotonic()
        Build(self.spark, root, stages).run()
        spent = cpu_seconds(*processes) - spent
        return PipelineRun(ingested - began, time.monotonic() - ingested, stages.took, spent)


def _rows(root: Path) -> int:
    """Rows of bronze."""
    version = bronze(root).current()
    return sum(map(version.count, version.tables))


def figures(values: dict[str, Any]) -> Figures:
    """Figures from the values that `dataclasses.asdict` gave."""
    first = PipelineRun(**values["first"]) if values["first"] else None
    plan = Plan(**{**values["plan"], "on_top": tuple(values["plan"]["on_top"])})
    passages = [PipelineRun(**one) for one in values["passages"]]
    on_top = [AddedDay(**{**one, **{n: tuple(one[n]) for n in ("ingest_s", "build_s")}}) for one in values["on_top"]]
    return Figures(**{**values, "first": first, "plan": plan, "passages": passages, "on_top": on_top})


def about(measured: Figures) -> str:
    """Versions and machine of the run."""
    return (
        f"Spark {measured.spark}, Java {measured.java}, Python {measured.python}, {measured.cores} cores, "
        f"heap {measured.heap}; {measured.at} UTC."
    )


def sections(measured: Figures) -> list[Section]:
    """The tables of the page."""
    return [
        _whole(measured),
        _by_stage(measured),
        _by_size(measured),
        *([_by_age(measured)] if measured.on_top else []),
    ]


def _whole(measured: Figures) -> Section:
    plan, passages = measured.plan, measured.passages
    met = sum(run.whole_s <= AIM_SECONDS for run in passages)
    rows = [
        (
            f"run {n + 1}",
            *(f"{s:.1f}" for s in (one.ingest_s, one.build_s, one.whole_s, one.cpu_s)),
            f"{measured.lines / one.whole_s:,.0f}",
        )
        for n, one in enumerate(passages)
    ]
    if measured.first is not None:
        first = (measured.first.ingest_s, measured.first.build_s, measured.first.whole_s, measured.first.cpu_s)
        rows.append((f"first of all, {WARM[0]} applications", *(f"{s:.1f}" for s in first), "-"))
    return Section(
        "A day of the fleet, from the record to gold",
        ("", "ingest s", "build s", "together s", "CPU s", "lines/s"),
        tuple(rows),
        f"{plan.apps} applications of {plan.tasks} tasks, {measured.lines:,} samples and other lines in "
        f"{measured.files} files; the JVM is warm, the report aside. "
        f"{met} of {len(passages)} runs met the aim of {AIM_SECONDS:.0f} s. "
        f"Memory at its peak: {measured.jvm_mb:,.0f} MB the JVM, {measured.python_mb:,.0f} MB Python.",
    )


def _by_stage(measured: Figures) -> Section:
    rows = []
    for name in measured.passages[0].stages:
        took = [one.stages[name] for one in measured.passages]
        middle = statistics.median(took)
        rows.append((name, runs(took), f"{measured.lines / middle:,.0f}" if middle > 0.05 else "-"))
    note = "Lines of the record for each second of the stage, whatever the stage itself reads; the median of the runs."
    return Section("Stage by stage", ("stage", "s, each run", "lines/s"), tuple(rows), note)


def _by_size(measured: Figures) -> Section:
    rows = tuple((name, megabytes(size), f"{size / measured.lines:.2f}") for name, size in measured.sizes.items())
    return Section("Bytes for each line of the record", ("", "MB", "B a line"), rows)


def _by_age(measured: Figures) -> Section:
    plan = measured.plan
    rows = tuple((str(one.days), f"{one.lines:,}", runs(one.ingest_s), runs(one.build_s)) for one in measured.on_top)
    note = (
        f"{plan.small_apps} applications of {plan.small_tasks} tasks, so that all of it ends soon: a small fleet. "
        "The second run is on one day more."
    )
    return Section("A day on top of others", ("days there", "lines of the day", "ingest s", "build s"), rows, note)


PLAN: Final = Plan()


def _day_counts(_: click.Context, __: click.Parameter, text: str) -> tuple[int, ...]:
    """Days as in 1,7,30: each is measured on two days more."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise click.BadParameter("name days as in 1,7,30")
    days = tuple(map(int, parts))
    if any(later - earlier < 2 for earlier, later in pairwise(days)):
        raise click.BadParameter("name them in order, at least two days apart")
    return days


@click.command()
@click.option("--root", type=click.Path(path_type=Path), required=True, help="Empty folder for all that is made.")
@click.option("--apps", default=PLAN.apps, show_default=True, type=click.IntRange(3, 1000), help="Applications.")
@click.option("--tasks", default=PLAN.tasks, show_default=True, type=click.IntRange(2), help="Tasks of each.")
@click.option("--repeats", default=PLAN.repeats, show_default=True, type=click.IntRange(1), help="Runs of that day.")
@click.option("--on-top", default="1,7,30", show_default=True, callback=_day_counts, help="Add a day to so many days.")
@click.option("--small-apps", default=PLAN.small_apps, show_default=True, type=click.IntRange(3), help="Of these days.")
@click.option("--json", "as_json", type=OUTPUT, help="Write the figures there too, unrounded.")
@click.option("--markdown", "as_markdown", type=OUTPUT, help="Write the tables there too.")
@engine_options
def main(root: Path, as_json: Path | None, as_markdown: Path | None, **options: Any) -> None:
    """Measure the pipeline on a synthetic fleet: a day end to end, and a day on top of many."""
    require_tables_folder(root)
    if any(root.iterdir()):
        raise click.ClickException(f"{root} is not empty: remove it, or name another --root")
    sizes = ("apps", "tasks", "repeats", "on_top", "small_apps")
    plan = Plan(**{name: options.pop(name) for name in sizes})
    with running_spark(root, **options) as spark:
        steps = Steps(expected_seconds(plan), sys.stderr)
        measured = Benchmark(spark, root, plan, options["memory"], steps).measure()
    if as_json is not None:
        as_json.write_text(json.dumps(asdict(measured), indent=1) + "\n")
    title, tables = f"{measured.at} UTC", sections(measured)
    if as_markdown is not None:
        as_markdown.write_text(page.markdown(title, about(measured), tables))
    page.show(Console(), title, about(measured), tables)


if __name__ == "__main__":
    main()
