"""The commands of `streamapp-analytics`: what they take, what they print.

Each makes one run of the pipeline; a run that fails changes no table.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from streamapp.analytics import bench as benches
from streamapp.analytics.build import Build, Built, require_bronze
from streamapp.analytics.failures import AnalyticsError
from streamapp.analytics.from_kafka import JARS_VARIABLE, Topic, connector_jars, ingest_topic, properties_in
from streamapp.analytics.generate import generate as generated
from streamapp.analytics.generated_world import Fleet
from streamapp.analytics.ingest import MOST_BAD, Ingest, Ingested, bronze, record_files
from streamapp.analytics.progress import Bars, Lines, Stages
from streamapp.analytics.report import page as pages
from streamapp.analytics.report.tables import read_tables
from streamapp.analytics.retention import Keep, Removed, remove_old
from streamapp.analytics.session import Engine, open_session

Command = TypeVar("Command", bound=Callable[..., Any])
FOLDER = click.Path(path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def analytics() -> None:
    """From the operator's flight record to tables: what scaling cost, what held it, how fast state is restored."""


def _engine(command: Command) -> Command:
    """The options that say how Spark runs."""
    options: Iterable[Callable[[Command], Command]] = (
        click.option("--master", default="", help="Where Spark runs; all cores of this machine unless given."),
        click.option("--memory", default="2g", show_default=True, help="Heap of Spark's driver."),
        click.option("--archive", type=FOLDER, help="AppCDS archive: used if it exists, else written at the end."),
        click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark's; may be repeated."),
        click.option("--small", is_flag=True, help="Start sooner, compute slower: for a record of minutes or hours."),
        click.option("--debug", is_flag=True, help="Show all of Spark's words when it fails."),
    )
    for option in options:
        command = option(command)
    return command


def _pairs(given: tuple[str, ...], option: str) -> dict[str, str]:
    odd = [one for one in given if "=" not in one]
    if odd:
        raise click.BadParameter(f"{odd[0]} has no =", param_hint=option)
    return dict(one.split("=", 1) for one in given)


@contextmanager
def _spark(
    master: str, memory: str, archive: Path | None, conf: tuple[str, ...], small: bool, debug: bool
) -> Iterator[SparkSession]:
    del debug  # `__main__` looks for it.
    settings = _pairs(conf, "--conf")
    spark = open_session(Engine(master=master, memory=memory, archive=archive, quick_start=small, conf=settings))
    try:
        yield spark
    finally:
        spark.stop()


def _stages(spark: SparkSession) -> Stages:
    console = Console(stderr=True)
    return Bars(spark=spark, console=console) if console.is_terminal else Lines(out=sys.stderr)


def _writable(root: Path) -> None:
    """See now, and not after minutes, that the output can be written."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        probe = root / f".probe-{datetime.now(UTC).timestamp()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise AnalyticsError(
            str(root), f"it cannot be written to: {error.strerror}", "choose another --root"
        ) from error


def _tables_at(root: Path) -> None:
    """The same of tables, which Spark reads again."""
    if set(str(root.absolute())) & set("[]{}*?\\"):
        raise AnalyticsError(str(root), "Spark takes [ ] { } * ? and \\ for patterns", "choose another --root")
    _writable(root)


def _told_ingest(done: Ingested) -> None:
    if not done.files:
        click.echo(f"nothing new: all {done.known_files} files were read before")
        return
    click.echo(
        f"{done.files} files, {done.rows} lines: {done.kept} taken in, {done.doubled} doubled, {done.bad} in quarantine"
        + _told_old(done)
        + (f"; {done.known_files} files were read before" if done.known_files else "")
    )


def _told_old(done: Ingested) -> str:
    return f"; {done.too_old} are from before {done.version.kept_from} and left out" if done.too_old else ""


def _told_topic(done: Ingested, topic: str) -> None:
    if not done.rows:
        click.echo(f"nothing new in topic {topic}")
        return
    told = f"{done.kept} taken in, {done.doubled} doubled, {done.bad} in quarantine"
    click.echo(f"topic {topic}, {done.rows} lines: {told}{_told_old(done)}")


def _told_build(done: Built) -> None:
    if not done.days:
        click.echo("nothing to build: silver and gold are up to date")
        return
    click.echo(f"built {len(done.days)} days, {done.days[0]} to {done.days[-1]}")
    table = Table("table", "rows")
    for version in (done.silver, done.gold):
        for name in sorted(version.tables):
            table.add_row(name, str(version.count(name)))
    Console().print(table)


def _told_removed(removed: Removed) -> None:
    if removed.waits_for is not None:
        click.echo(f"old days stay for now: another run works in {removed.waits_for}, or was killed there today")
    for layer, first, days in zip(("bronze", "silver", "gold"), removed.first_days, removed.days, strict=True):
        if days:
            click.echo(f"{layer}: {days} days from before {first} are removed, their files a day from now")


def _keep(command: Command) -> Command:
    """The options that say how long rows are kept."""
    keep = Keep()
    for layer, days in (("gold", keep.gold), ("silver", keep.silver), ("bronze", keep.bronze)):
        told = f"Days that {layer} keeps, back from the newest one; 0: for ever."
        option = click.option(f"--keep-{layer}", default=days, show_default=True, type=click.IntRange(0), help=told)
        command = option(command)
    return command


ROOT = click.option("--root", type=FOLDER, required=True, help="Folder of the tables.")


@analytics.command()
@click.argument("record", nargs=-1, type=FOLDER)
@ROOT
@click.option("--max-bad", default=MOST_BAD, show_default=True, help="Share of bad lines above which the run fails.")
@click.option("--kafka", default="", metavar="BOOTSTRAP", help="Read the record from Kafka and not from files.")
@click.option("--topic", default="streamapp-flight-records", show_default=True, help="The record's topic.")
@click.option("--kafka-properties", type=FOLDER, help="Folder with the consumer's properties (TLS, SASL), a file each.")
@click.option("--jars", type=FOLDER, help=f"Folder of Spark's Kafka connector; else {JARS_VARIABLE}.")
@_engine
def ingest(
    record: tuple[Path, ...],
    root: Path,
    max_bad: float,
    kafka: str,
    topic: str,
    kafka_properties: Path | None,
    jars: Path | None,
    **engine: Any,
) -> None:
    """Take the flight record (RECORD: files or folders, or a Kafka topic) into bronze, each file and line once."""
    if bool(record) == bool(kafka):
        raise click.UsageError("Name files of the record, or --kafka BOOTSTRAP; one of them.")
    if kafka:
        engine["conf"] = (f"spark.jars={connector_jars(jars)}", *engine["conf"])
    else:
        record_files(record)  # Says what is missing before Spark takes its seconds to start.
    properties = properties_in(kafka_properties)
    _tables_at(root)
    with _spark(**engine) as spark:
        run = Ingest(spark, bronze(root), _stages(spark), datetime.now(UTC), max_bad)
        if kafka:
            _told_topic(ingest_topic(run, Topic(kafka, topic, properties)), topic)
        else:
            _told_ingest(run.run(record))


@analytics.command()
@ROOT
@click.option("--full", is_flag=True, help="Build all again, not only what has changed.")
@_keep
@_engine
def build(
    root: Path,
    full: bool,
    keep_bronze: int,
    keep_silver: int,
    keep_gold: int,
    **engine: Any,
) -> None:
    """Bring silver and gold up to what bronze holds, then remove what is older than is to be kept."""
    try:
        keep = Keep(keep_bronze, keep_silver, keep_gold)
    except ValueError as error:
        raise click.UsageError(f"{error}.") from error
    require_bronze(root)
    _tables_at(root)
    with _spark(**engine) as spark:
        _told_build(Build(spark, root, _stages(spark), full).run())
    _told_removed(remove_old(root, keep))


@analytics.command()
@ROOT
@click.option("--out", type=FOLDER, default=Path("report.html"), show_default=True, help="The page to write.")
@click.option("--json", "as_json", type=FOLDER, help="Write the figures there too, unrounded.")
@click.option("--markdown", "as_markdown", type=FOLDER, help="Write a summary there too, for a pull request or a chat.")
@click.option("--days", default=30, show_default=True, type=click.IntRange(1), help="The last days with figures.")
@click.option("--apps", default=pages.MOST_APPS, show_default=True, type=click.IntRange(1), help="Most with a page.")
def report(root: Path, out: Path, as_json: Path | None, as_markdown: Path | None, days: int, apps: int) -> None:
    """Write what the tables say as one page that needs no network and no Spark."""
    tables = read_tables(root, days)
    told = pages.report(tables, datetime.now(UTC), apps)
    written = {out: pages.html(told)}
    if as_json is not None:
        written[as_json] = json.dumps(pages.figures(told), indent=1, allow_nan=False) + "\n"
    if as_markdown is not None:
        written[as_markdown] = pages.markdown(told)
    for path, text in written.items():
        pages.write(path, text)
        click.echo(
            f"{path}: {path.stat().st_size / 1e6:.1f} MB, {len(told.apps)} applications, {len(tables.days)} days"
        )


@analytics.command()
@click.argument("folder", type=FOLDER)
@click.option("--apps", default=4, show_default=True, type=click.IntRange(1, 1000), help="Applications.")
@click.option("--days", default=1, show_default=True, type=click.IntRange(1, 366), help="Days from 2026-11-01 on.")
@click.option("--tasks", default=12, show_default=True, type=click.IntRange(2), help="Tasks of each application.")
@click.option("--pods", default=4, show_default=True, type=click.IntRange(2, 100), help="Pods of each application.")
@click.option("--seed", default=1, show_default=True, help="The same seed makes the same record.")
@click.option("--bug", is_flag=True, help="Plant a recorder's bug that an ingest must refuse.")
def generate(folder: Path, apps: int, days: int, tasks: int, pods: int, seed: int, bug: bool) -> None:
    """Write a made-up flight record into FOLDER, with what is true of it in truth.json."""
    _writable(folder)
    files = lines = size = 0
    for path, count in generated(Fleet(apps=apps, days=days, tasks=tasks, pods=pods, seed=seed, bug=bug), folder):
        files, lines, size = files + 1, lines + count, size + path.stat().st_size
    click.echo(f"{lines} lines in {files} files, {size / 1e6:.1f} MB, in {folder}")


@analytics.command()
@ROOT
@click.option("--apps", default=100, show_default=True, type=click.IntRange(3, 1000), help="Applications.")
@click.option("--tasks", default=64, show_default=True, type=click.IntRange(2), help="Tasks of each application.")
@click.option("--days", default="1", show_default=True, help="How many days to measure with, as in 1,7,30.")
@_engine
def bench(
    root: Path,
    apps: int,
    tasks: int,
    days: str,
    **engine: Any,
) -> None:
    """Measure the pipeline on a made-up fleet, beside DuckDB and Polars; ROOT must be empty."""
    _writable(root)
    if any(root.iterdir()):
        raise AnalyticsError(str(root), "it is not empty", "name a folder that the bench may fill")
    with _spark(**engine) as spark:
        counts = [int(one) for one in days.split(",")]
        click.echo(benches.measure(spark, root, Fleet(apps=apps, tasks=tasks), counts, _stages))
