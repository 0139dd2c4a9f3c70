"""The same questions to one engine, in a process of its own: `python -m tests.benchmarks.engines ENGINE ROOT`.

What it prints is JSON: seconds of each run, what was answered, and the memory at its peak. The questions are those of
gold and silver that read all samples; docs/benchmarks.md says what they leave out. Two threads each.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

THREADS: Final = 2
RUNS: Final = 3
"""The first one of each question is cold."""
KEY: Final = "cluster, namespace, app, uid"
TABLES: Final = ("b_sample", "b_config")

LAGGED: Final = """
    SELECT s.*, {micros} AS t, CASE WHEN role = 'ACTIVE' AND state = 'RUNNING' THEN 0
        WHEN position IS NOT NULL AND end_offset IS NOT NULL THEN greatest(end_offset - position, 0) END AS lag
    FROM sample s
"""
"""`sample` is `b_sample` with `offset` as `position`: the engines quote differently."""
LIMITED: Final = f"""
    SELECT l.*, a FROM ({LAGGED}) l
    JOIN (SELECT {KEY}, max(acceptable_recovery_lag) AS a FROM b_config GROUP BY {KEY}) c USING ({KEY})
"""
QUESTIONS: Final = {
    "lag by hour": f"""
        SELECT count(*) AS found, sum(n) AS n, sum(copies) AS copies, sum(mean) AS mean, sum(most) AS most FROM (
            SELECT {KEY}, task, role, cast(floor(t / 3600000000) AS bigint) AS hour, count(*) AS n,
                count(DISTINCT process_id) AS copies, avg(lag) AS mean, max(lag) AS most
            FROM ({LAGGED}) l WHERE lag IS NOT NULL AND NOT (role = 'ACTIVE' AND coalesce(state, '') = 'RUNNING')
            GROUP BY {KEY}, task, role, cast(floor(t / 3600000000) AS bigint)) hours
    """,
    "far behind": f"""
        SELECT count(*) AS found, sum(lag) AS lag, count(DISTINCT process_id) AS copies
        FROM ({LIMITED}) l WHERE lag > 0.1 * a
    """,
    "times behind": f"""
        WITH lined AS (
            SELECT *, lag > a AS behind, lag(lag > a) OVER w AS was, t - lag(t) OVER w AS since,
                lag(interval_seconds) OVER w AS usual
            FROM ({LIMITED}) l WHERE lag IS NOT NULL
            WINDOW w AS (PARTITION BY {KEY}, task, ordinal, process_id ORDER BY t, seq)),
        cut AS (
            SELECT *, coalesce(was, false) AS was_behind,
                coalesce(since > 1000000 * greatest(300, 5 * usual), true) AS broken
            FROM lined),
        numbered AS (
            SELECT *, sum(CASE WHEN behind AND (broken OR NOT was_behind) THEN 1 ELSE 0 END) OVER (
                PARTITION BY {KEY}, task, ordinal, process_id ORDER BY t, seq ROWS UNBOUNDED PRECEDING) AS run
            FROM cut)
        SELECT count(*) AS found, sum(n) AS n, sum(restored) AS restored FROM (
            SELECT {KEY}, task, ordinal, process_id, run, count(CASE WHEN behind THEN 1 END) AS n,
                max(CASE WHEN behind THEN position END) - min(position) AS restored
            FROM numbered WHERE behind OR (was_behind AND NOT broken)
            GROUP BY {KEY}, task, ordinal, process_id, run) runs
    """,
}
"""What SQL engines are asked; `polars` puts the same into its own words."""


@dataclass
class Answered:
    """What one engine did in one process."""

    engine: str
    version: str
    opened_s: float
    """From the start of the process until it could be asked."""
    seconds: dict[str, list[float]]
    answers: dict[str, dict[str, float]]
    peak_mb: float
    """Of the process, and of the JVM that it started."""


Ask = Callable[[], Mapping[str, Any]]
Opened = tuple[str, dict[str, Ask], tuple[str, ...]]
"""Version, questions ready to be asked, and the processes that were started."""


def duckdb(files: Mapping[str, list[str]], _: ExitStack) -> Opened:
    """DuckDB."""
    import duckdb as duck  # noqa: PLC0415 - each process needs one engine

    engine = duck.connect(config={"threads": THREADS})
    for table, of in files.items():
        engine.read_parquet(of, hive_partitioning=False).create_view(table)
    engine.execute('CREATE VIEW sample AS SELECT * RENAME ("offset" AS position) FROM b_sample')

    def asked(text: str) -> Ask:
        return lambda: dict(engine.sql(text.format(micros="epoch_us(ts)")).to_arrow_table().to_pylist()[0])

    return str(duck.__version__), {name: asked(text) for name, text in QUESTIONS.items()}, ()


def spark(files: Mapping[str, list[str]], stack: ExitStack) -> Opened:
    """Spark, as the pipeline starts it."""
    from streamapp.analytics.spark.session import Engine, open_session  # noqa: PLC0415

    engine = open_session(Engine(master=f"local[{THREADS}]", cores=THREADS, memory="4g"))
    stack.callback(engine.stop)
    for table, of in files.items():
        engine.read.parquet(*of).createOrReplaceTempView(table)
    engine.table("b_sample").withColumnRenamed("offset", "position").createOrReplaceTempView("sample")

    def asked(text: str) -> Ask:
        return lambda: dict(engine.sql(text.format(micros="unix_micros(ts)")).toArrow().to_pylist()[0])

    return engine.version, {name: asked(text) for name, text in QUESTIONS.items()}, (jvm_pid(engine),)


def polars(files: Mapping[str, list[str]], _: ExitStack) -> Opened:
    """Polars, its streaming engine."""
    os.environ["POLARS_MAX_THREADS"] = str(THREADS)
    import polars as pl  # noqa: PLC0415

    from tests.benchmarks.polars_questions import questions  # noqa: PLC0415

    return pl.__version__, dict(questions(files)), ()


def jvm_pid(spark: Any) -> str:
    """The process of the JVM that a Spark session started."""
    gateway = spark.sparkContext._gateway
    return str(gateway.proc.pid) if gateway is not None else "0"


def peak_mb(pid: str) -> float:
    """Megabytes that a process held at most; Linux alone tells it."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM")), float("nan"))


def cpu_seconds(*pids: str) -> float:
    """Seconds of processor time that processes have taken; Linux alone tells it."""
    ticks = 0
    for pid in pids:
        stat = Path(f"/proc/{pid}/stat")
        if not stat.exists():
            return float("nan")
        # The name of the program can have blanks, and ends with the last bracket.
        fields = stat.read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def live_files(root: Path, table: str) -> list[str]:
    """The files of a table of bronze that count; without the pipeline, which would bring Spark into every process."""
    manifest = max((root / "bronze" / "manifest").glob("[0-9]*.json"), key=lambda path: int(path.stem))
    days = json.loads(manifest.read_text())["tables"][table]
    places = [root / "bronze" / table / f"run={run}" / f"dt={day}" for day, of in days.items() for run in of]
    return [str(file) for place in places for file in sorted(place.glob("*.parquet"))]


def main() -> None:
    """Ask all questions, several times each."""
    began = time.monotonic()
    name, root = sys.argv[1], Path(sys.argv[2])
    files = {table: live_files(root, table) for table in TABLES}
    seconds: dict[str, list[float]] = {}
    answers: dict[str, dict[str, float]] = {}
    with ExitStack() as stack:
        version, questions, pids = {"duckdb": duckdb, "spark": spark, "polars": polars}[name](files, stack)
        opened = time.monotonic() - began
        for question, ask in questions.items():
            for _ in range(RUNS):
                start = time.perf_counter()
                told = ask()
                seconds.setdefault(question, []).append(time.perf_counter() - start)
                answers[question] = {column: float(value) for column, value in told.items()}
        peak = sum(map(peak_mb, ("self", *pids)))
    print(json.dumps(asdict(Answered(name, version, opened, seconds, answers, peak))))  # noqa: T201


if __name__ == "__main__":
    main()
