"""Every figure of the pipeline in one run: `python -m tests.benchmarks.pipeline`, or `make bench-analytics`.

`tests.benchmarks.fleet_day` measures the fleet's day and days on top of others. The rest is measured from the first
command to the last, as a user types them, and by questions to Spark, DuckDB and Polars on the files of that day. Each
part runs in a process of its own. The page shows all runs, also those that look bad.
"""

import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from tests.benchmarks import fleet_day, page
from tests.benchmarks.engines import Answered
from tests.benchmarks.page import Section, runs
from tests.benchmarks.steps import Steps

PLAN = fleet_day.PLAN
PROGRAM = [sys.executable, "-m", "streamapp.analytics"]
ENGINES = ("duckdb", "polars", "spark")
SPARK_OPTIONS = ["--master", "local[2]"]
COLD_EXPECTED, ENGINE_EXPECTED = 40.0, {"duckdb": 15.0, "polars": 15.0, "spark": 75.0}
ORACLE_EXPECTED = 60.0


@dataclass
class Cold:
    """Seconds from the first command to the end of the last one, each in a JVM of its own."""

    ingest_s: list[float] = field(default_factory=list)
    build_s: list[float] = field(default_factory=list)


@dataclass
class Whole:
    """Everything that was measured."""

    machine: str
    pipeline: dict[str, Any] = field(default_factory=dict)
    cold_lines: int = 0
    plain: Cold = field(default_factory=Cold)
    archived: Cold = field(default_factory=Cold)
    writing_s: float = 0.0
    """Of the build that wrote the archive at its end."""
    archive_bytes: int = 0
    engines: list[Answered] = field(default_factory=list)
    oracle_s: list[float] = field(default_factory=list)
    """All of gold from bronze by DuckDB, by the statements of the tests."""


def machine() -> str:
    """Processor and memory, as far as the system shows them."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return f"{os.cpu_count()} x {model}, {memory:.0f} GB"


def ran(*command: str) -> float:
    """Seconds that a command took; it must end well."""
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException(f"{' '.join(command)} failed: {done.stderr[-2000:]}")
    return time.monotonic() - began


def measure_cold(root: Path, measured: Whole, rounds: int, steps: Steps) -> None:
    """A small record from the first command to its tables: each command starts a JVM that has done nothing yet."""
    record, archive = root / "record", root / "spark.jsa"
    ran(*PROGRAM, "generate", str(record), "--apps", str(fleet_day.WARM[0]), "--tasks", str(fleet_day.WARM[1]))

    def both(name: str, *options: str) -> tuple[float, float]:
        tables = ["--root", str(root / name), *SPARK_OPTIONS]
        ingest = ran(*PROGRAM, "ingest", str(record), *tables, *options)
        return ingest, ran(*PROGRAM, "build", *tables, *options)

    with steps.step("first command to finished, and an archive is written", 2 * COLD_EXPECTED):
        ran(*PROGRAM, "ingest", str(record), "--root", str(root / "writing"), *SPARK_OPTIONS)
        measured.writing_s = ran(
            *PROGRAM, "build", "--root", str(root / "writing"), *SPARK_OPTIONS, "--archive", str(archive)
        )
        measured.archive_bytes = archive.stat().st_size
    manifests = sorted((root / "writing" / "bronze" / "manifest").glob("*.json"))
    measured.cold_lines = json.loads(manifests[-1].read_text())["lines"]
    for run in range(rounds):
        ways = ((measured.plain, ()), (measured.archived, ("--archive", str(archive))))
        for way, options in ways[:: 1 if run % 2 == 0 else -1]:
            named = "with the archive" if options else "as installed"
            with steps.step(f"first command to finished, {named}, run {run + 1} of {rounds}", COLD_EXPECTED):
                ingest, build = both(f"{run}-{len(options)}", *options)
                way.ingest_s.append(ingest)
                way.build_s.append(build)


def measure_engines(tables: Path, measured: Whole, rounds: int, steps: Steps) -> None:
    """The same questions to all engines, in turn; then all of gold by the tests' own DuckDB."""
    for run in range(rounds):
        for name in (*ENGINES[run % len(ENGINES) :], *ENGINES[: run % len(ENGINES)]):
            with steps.step(f"{name}, run {run + 1} of {rounds}", ENGINE_EXPECTED[name]):
                command = [sys.executable, "-m", "tests.benchmarks.engines", name, str(tables)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    raise click.ClickException(f"{' '.join(command)} failed: {done.stderr[-2000:]}")
                measured.engines.append(Answered(**json.loads(done.stdout.splitlines()[-1])))
    oracle = (
        "import sys, pathlib; from tests.analytics.support.oracle import recompute; "
        "recompute(pathlib.Path(sys.argv[1]))"
    )
    with steps.step("all of gold by DuckDB", ORACLE_EXPECTED):
        measured.oracle_s.append(ran(sys.executable, "-c", oracle, str(tables)))


def disagreements(answers: Sequence[Answered]) -> list[str]:
    """Questions to which one engine gave another answer than the first one."""
    differences = []
    for other in answers[1:]:
        for question, answer in answers[0].answers.items():
            same = all(
                math.isclose(value, other.answers[question][name], rel_tol=1e-9) for name, value in answer.items()
            )
            if not same:
                differences.append(
                    f"{question}: {answers[0].engine} {answer}, {other.engine} {other.answers[question]}"
                )
    return differences


def sections(measured: Whole) -> list[Section]:
    """The tables beside those of the pipeline itself."""
    return [_cold(measured), _engines(measured), _starting(measured)]


def _cold(measured: Whole) -> Section:
    rows = []
    for name, way in (("as installed", measured.plain), ("with an AppCDS archive", measured.archived)):
        together = [one + other for one, other in zip(way.ingest_s, way.build_s, strict=True)]
        middle = f"{statistics.median(together):.1f}"
        rows.append((name, runs(way.ingest_s), runs(way.build_s), runs(together), middle))
    return Section(
        "First command to finished",
        ("", "ingest s", "build s", "together s", "median s"),
        tuple(rows),
        f"{measured.cold_lines:,} lines, each command in a new JVM, the two ways in turn. The build that wrote the "
        f"archive ({measured.archive_bytes / 1e6:.0f} MB) at its end took {measured.writing_s:.1f} s.",
    )


def _engines(measured: Whole) -> Section:
    rows = []
    names = {one.engine: one for one in measured.engines}
    for question in measured.engines[0].seconds:
        warm = {
            name: [s for one in measured.engines if one.engine == name for s in one.seconds[question][1:]]
            for name in names
        }
        best = min(statistics.median(one) for one in warm.values())
        for name in names:
            cold = [one.seconds[question][0] for one in measured.engines if one.engine == name]
            ratio = f"{statistics.median(warm[name]) / best:.1f}"
            rows.append((question, name, runs(cold, 2), runs(warm[name], 2), ratio))
    build = [one["build_s"] for one in measured.pipeline["passages"]]
    rows.append(("all of gold", "duckdb, the tests' words", "-", runs(measured.oracle_s), "-"))
    rows.append(("silver and all of gold", "the pipeline's build", "-", runs(build), "-"))
    agreed = "their answers differ" if disagreements(measured.engines) else "all gave the same answers"
    return Section(
        "Three engines on the same files",
        ("question", "engine", "cold s", "warm s", "to the fastest"),
        tuple(rows),
        "The samples of that day as bronze has them, two threads each, the engines in turn and each time in a new "
        f"process; {agreed}. {', '.join(f'{one.engine} {one.version}' for one in names.values())}. "
        "DuckDB's gold is what the tests check the pipeline with: written to be other words, not to be fast, and "
        "without files, sketches or days that are kept. All runs are shown; the last column compares medians, warm.",
        names=2,
    )


def _starting(measured: Whole) -> Section:
    rows = []
    for name in dict.fromkeys(one.engine for one in measured.engines):
        mine = [one for one in measured.engines if one.engine == name]
        rows.append((name, runs([one.opened_s for one in mine], 2), ", ".join(f"{one.peak_mb:,.0f}" for one in mine)))
    return Section("Start and memory of the engines", ("", "start s", "memory at its peak MB"), tuple(rows))


@click.command()
@click.option("--root", type=click.Path(path_type=Path), required=True, help="Empty folder for all that is made.")
@click.option("--apps", default=PLAN.apps, show_default=True, type=click.IntRange(3))
@click.option("--tasks", default=PLAN.tasks, show_default=True, type=click.IntRange(2))
@click.option("--on-top", default="1,7,30", show_default=True)
@click.option(
    "--repeats", default=PLAN.repeats, show_default=True, type=click.IntRange(1), help="Runs of the fleet's day."
)
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1), help="Runs of all else.")
@click.option("--memory", default="4g", show_default=True, help="Heap of the pipeline.")
@click.option("--json", "as_json", type=click.Path(path_type=Path))
@click.option("--markdown", "as_markdown", type=click.Path(path_type=Path))
def main(root: Path, as_json: Path | None, as_markdown: Path | None, rounds: int, memory: str, **plan: Any) -> None:
    """Measure all of it, and print one page."""
    root.mkdir(parents=True, exist_ok=True)
    if any(root.iterdir()):
        raise click.ClickException(f"{root} is not empty: remove it, or name another --root")
    measured = Whole(machine())
    own = fleet_day.expected_seconds(
        fleet_day.Plan(plan["apps"], plan["tasks"], plan["repeats"], _days(plan["on_top"]))
    )
    expected = own + (2 + 2 * rounds) * COLD_EXPECTED + rounds * sum(ENGINE_EXPECTED.values()) + ORACLE_EXPECTED
    steps = Steps(expected, sys.stderr)
    with steps.step("the pipeline itself", own):
        results = root / "pipeline.json"
        options = [part for name, value in plan.items() for part in (f"--{name.replace('_', '-')}", str(value))]
        command = [
            sys.executable,
            "-m",
            "tests.benchmarks.fleet_day",
            "--root",
            str(root / "pipeline"),
            *SPARK_OPTIONS,
            "--memory",
            memory,
        ]
        # What it says while it works goes on to the terminal; its page comes again with the others.
        done = subprocess.run([*command, "--json", str(results), *options], check=False, stdout=subprocess.DEVNULL)
        if done.returncode:
            raise click.ClickException("the benchmark of the pipeline failed; its message stands above")
        measured.pipeline = json.loads(results.read_text())
    measure_cold(root / "cold", measured, rounds, steps)
    measure_engines(root / "pipeline" / "day" / "tables-1", measured, rounds, steps)
    _publish(measured, as_json, as_markdown)
    if odd := disagreements(measured.engines):
        raise click.ClickException("the engines disagree: " + "; ".join(odd))


def _days(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def _publish(measured: Whole, as_json: Path | None, as_markdown: Path | None) -> None:
    figures = fleet_day.figures(measured.pipeline)
    title, about = f"Run of {figures.at} UTC", f"{fleet_day.about(figures)} {measured.machine}."
    tables = [*fleet_day.sections(figures), *sections(measured)]
    if as_json is not None:
        as_json.write_text(json.dumps(asdict(measured), indent=1) + "\n")
    if as_markdown is not None:
        as_markdown.write_text(page.markdown(title, about, tables))
    page.show(Console(), title, about, tables)


if __name__ == "__main__":
    main()
