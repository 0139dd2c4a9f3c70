"""Figures of the pipeline: a made-up fleet end to end, and the same questions put to DuckDB and Polars.

Called by the command line. What it prints is Markdown; losses are printed like the rest.
"""

import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamapp.analytics.build import Build
from streamapp.analytics.generate import generate
from streamapp.analytics.generated_world import Fleet
from streamapp.analytics.ingest import Ingest, bronze
from streamapp.analytics.progress import Stages

WARM = replace(Fleet(), apps=3, tasks=4)
"""Goes through before anything is measured, so that the JVM is warm."""
REPEATS = 3


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _through(spark: SparkSession, root: Path, fleet: Fleet, stages: Stages) -> tuple[int, float, float, float]:
    """Lines, and seconds to generate, to ingest and to build."""
    began = time.monotonic()
    lines = sum(count for _, count in generate(fleet, root / "record"))
    generated = time.monotonic()
    now = fleet.start + timedelta(days=fleet.days + 1)
    Ingest(spark, bronze(root / "tables"), stages, now).run([root / "record"])
    ingested = time.monotonic()
    Build(spark, root / "tables", stages).run()
    return lines, generated - began, ingested - generated, time.monotonic() - ingested


def measure(
    spark: SparkSession, root: Path, fleet: Fleet, days: Sequence[int], shown: Callable[[SparkSession], Stages]
) -> str:
    """The figures, in Markdown."""
    cold = time.monotonic()
    _through(spark, root / "warm", WARM, Stages())
    cold = time.monotonic() - cold
    told = [
        f"{fleet.apps} applications, {fleet.tasks} tasks each; {datetime.now(UTC):%Y-%m-%d}; Spark {spark.version}, "
        f"{spark.sparkContext.defaultParallelism} cores",
        f"\nFirst run in a JVM, {WARM.apps} applications: {cold:.1f} s\n",
        "| days | lines | ingest s | build s | lines/s end to end | record B/line | bronze B/line | rest B/line |",
        "|---|---|---|---|---|---|---|---|",
    ]
    spent: dict[str, float] = {}
    lines = 1
    for count in days:
        place, stages = root / f"days-{count}", shown(spark)
        lines, _, ingest, build = _through(spark, place, replace(fleet, days=count), stages)
        sizes = [_size(place / "record"), _size(place / "tables" / "bronze")]
        derived = _size(place / "tables" / "silver") + _size(place / "tables" / "gold")
        figures = " | ".join(f"{size / lines:.1f}" for size in (*sizes, derived))
        told.append(f"| {count} | {lines} | {ingest:.1f} | {build:.1f} | {lines / (ingest + build):.0f} | {figures} |")
        spent = stages.took
    told += ["\n| stage | s | lines/s |", "|---|---|---|"]
    told += [f"| {name} | {took:.1f} | {lines / max(took, 0.001):.0f} |" for name, took in spent.items()]
    told += ["", *_engines(spark, root / f"days-{days[-1]}" / "tables")]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    told.append(f"\nMemory at its peak: {_resident(spark):.0f} MB the JVM, {peak:.0f} MB Python with the other engines")
    return "\n".join(told)


def _resident(spark: SparkSession) -> float:
    """Megabytes that the driver's JVM held at most; Linux alone tells it."""
    gateway = spark.sparkContext._gateway  # noqa: SLF001 - nothing else knows the process
    pid = gateway.proc.pid if gateway is not None else 0
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return float("nan")
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def _best(question: Callable[[], Any]) -> float:
    """Seconds of the fastest of a few runs: all are warm by then."""
    found = []
    for _ in range(REPEATS):
        began = time.monotonic()
        question()
        found.append(time.monotonic() - began)
    return min(found)


def _engines(spark: SparkSession, tables: Path) -> list[str]:
    """Two questions to the samples of bronze, as files; engines that are not installed are left out."""
    files = sorted(map(str, (tables / "bronze" / "b_sample").rglob("*.parquet")))
    frame = spark.read.parquet(*files)
    hour = F.floor(F.unix_seconds("ts") / 3600)
    lag = F.col("end_offset") - F.col("offset")
    by_hour = frame.where("offset is not null").groupBy("app", "task", "role", hour).agg(F.avg(lag), F.max(lag))
    behind = frame.where(lag > 1000).groupBy("app", "task", "process_id").agg(F.min("ts"), F.max("ts"))
    rows = {"Spark": (_best(by_hour.toArrow), _best(behind.toArrow))}
    for name, ask in (("DuckDB", _duckdb), ("Polars", _polars)):
        try:
            rows[name] = ask(files)
        except ModuleNotFoundError:
            continue
    told = ["| engine | lag by hour s | behind by copy s |", "|---|---|---|"]
    return told + [f"| {name} | {hourly:.2f} | {copies:.2f} |" for name, (hourly, copies) in rows.items()]


def _duckdb(files: list[str]) -> tuple[float, float]:
    duck = import_module("duckdb").connect()
    duck.read_parquet(files).create_view("samples")
    hourly = (
        "SELECT app, task, role, floor(epoch(ts) / 3600) AS hour, "
        'avg(end_offset - "offset"), max(end_offset - "offset") '
        'FROM samples WHERE "offset" IS NOT NULL GROUP BY ALL'
    )
    behind = (
        "SELECT app, task, process_id, min(ts), max(ts) FROM samples "
        'WHERE end_offset - "offset" > 1000 GROUP BY app, task, process_id'
    )
    return _best(lambda: duck.sql(hourly).to_arrow_table()), _best(lambda: duck.sql(behind).to_arrow_table())


def _polars(files: list[str]) -> tuple[float, float]:
    pl: Any = import_module("polars")
    frame = pl.scan_parquet(files)
    lag = pl.col("end_offset") - pl.col("offset")
    hour = pl.col("ts").dt.truncate("1h").alias("hour")
    hourly = (
        frame.filter(pl.col("offset").is_not_null())
        .group_by("app", "task", "role", hour)
        .agg(lag.mean().alias("mean"), lag.max().alias("max"))
    )
    behind = (
        frame.filter(lag > 1000)
        .group_by("app", "task", "process_id")
        .agg(pl.col("ts").min().alias("first"), pl.col("ts").max().alias("last"))
    )
    return _best(lambda: hourly.collect(engine="streaming")), _best(lambda: behind.collect(engine="streaming"))
