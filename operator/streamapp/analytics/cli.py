"""The commands of `streamapp-analytics`: what they take, what they print.

Each makes one run of the pipeline; an ingest or a build that fails changes no table.
"""

import functools
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import click
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from streamapp.analytics.bronze.ingest import MOST_BAD, Ingest, Ingested, bronze, record_files
from streamapp.analytics.bronze.kafka import JARS_VARIABLE, Topic, connector_jars, ingest_topic, properties_in
from streamapp.analytics.build import Build, Built, gold, require_bronze, silver
from streamapp.analytics.cli_what_if import what_if_command
from streamapp.analytics.errors import AnalyticsError
from streamapp.analytics.expire import Keep, Removed, remove_old
from streamapp.analytics.insight.destination import Destination
from streamapp.analytics.insight.learned import WrittenInsight, write_insight
from streamapp.analytics.progress import Bars, Lines, Stages
from streamapp.analytics.report import page
from streamapp.analytics.report.tables import read_tables
from streamapp.analytics.spark.cluster import check_workers
from streamapp.analytics.spark.options import FOLDER, OUTPUT, ROOT, Command, engine_options, pairs
from streamapp.analytics.spark.session import Engine, close_session, cores_of, of_spark, open_session
from streamapp.analytics.synthetic.fleet import Fleet
from streamapp.analytics.synthetic.generate import write_record
from streamapp.analytics.tables.bronze_schemas import QUARANTINE
from streamapp.analytics.tables.readers import FORMATS
from streamapp.api.report_link import fragment, moment


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="streamapp-operator", prog_name="streamapp-analytics")
def analytics() -> None:
    """From the operator's flight record to tables: what scaling cost, what held it, how fast state is restored."""


@contextmanager
def running_spark(root: Path, wait: float, small: bool, debug: bool, **given: Any) -> Iterator[SparkSession]:
    """Spark as the options say, and at work: see `Engine` for those that are not named here."""
    given["conf"] = pairs(given["conf"], "--conf")
    engine = Engine(cores=cores_of(given["master"]), quick_start=small, **given)
    spark = open_session(engine)
    try:
        check_workers(spark, root, wait)
        yield spark
    except Py4JJavaError as error:
        # Not all that Java throws comes as PySpark's own; what it says can be asked only while Java still runs.
        if debug:
            click.echo(str(error), err=True)
        raise of_spark(error) from error
    finally:
        close_session(spark, engine)


def stage_display(spark: SparkSession) -> Stages:
    """Bars at a terminal, a line for each finished stage elsewhere."""
    console = Console(stderr=True)
    return Bars(spark=spark, console=console) if console.is_terminal else Lines(out=sys.stderr)


def _require_writable(root: Path, given: str = "--root") -> None:
    """See now, and not after minutes, that the output can be written; `given` is where it was named."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        probe = root / f".probe-{datetime.now(UTC).timestamp()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise AnalyticsError(
            str(root), f"it cannot be written to: {error.strerror}", f"choose another {given}"
        ) from error


def require_tables_folder(root: Path) -> None:
    """The same of tables, which Spark reads again."""
    if set(str(root.absolute())) & set("[]{}*?\\"):
        raise AnalyticsError(str(root), "Spark takes [ ] { } * ? and \\ for patterns", "choose another --root")
    _require_writable(root)


def _print_ingest(done: Ingested) -> None:
    for one in done.damaged:
        click.echo(f"warning: damaged file {one}; look at the disk it came from", err=True)
    if not done.files:
        click.echo(f"nothing new: all {done.known_files} files were read before")
        return
    click.echo(
        f"{done.files} files, {done.rows} lines: {done.kept} taken in, {done.doubled} doubled, {done.bad} in quarantine"
        + _left_out(done)
        + (f"; {done.known_files} files were read before" if done.known_files else "")
    )


def _left_out(done: Ingested) -> str:
    return f"; {done.too_old} are from before {done.version.kept_from} and left out" if done.too_old else ""


def _print_topic(done: Ingested, topic: str) -> None:
    if not done.rows:
        click.echo(f"nothing new in topic {topic}")
        return
    counts = f"{done.kept} taken in, {done.doubled} doubled, {done.bad} in quarantine"
    click.echo(f"topic {topic}, {done.rows} lines: {counts}{_left_out(done)}")


def _print_build(done: Built) -> None:
    if not done.days:
        click.echo("nothing to build: silver and gold are up to date")
        return
    click.echo(f"built {len(done.days)} days, {done.days[0]} to {done.days[-1]}")
    table = Table("table", "rows")
    for version in (done.silver, done.gold):
        for name in sorted(version.tables):
            table.add_row(name, str(version.count(name)))
    Console().print(table)


def _print_removed(removed: Removed) -> None:
    if removed.waits_for is not None:
        click.echo(f"old days stay for now: another run works in {removed.waits_for}, or was killed there today")
    for layer, first, days in zip(("bronze", "silver", "gold"), removed.first_days, removed.days, strict=True):
        if days:
            click.echo(f"{layer}: {days} days from before {first} are removed, their files a day from now")


def _print_insight(root: Path) -> WrittenInsight | None:
    """Write what the operator can show; rows that its contract refuses cost nothing else, since the tables stand.

    None: nothing was written, and why was said.
    """
    try:
        found = write_insight(root, datetime.now(UTC))
    except (AnalyticsError, ValueError, OSError) as error:
        click.echo(f"{root}: no insight is written, the tables are whole: {error}", err=True)
        return None
    for path in found:
        click.echo(f"{path}: {_size(path)}, what the operator can show")
    return found


def _print_publication(found: WrittenInsight | None, destination: Destination | None) -> None:
    """Bring the operator what it can show; what was done before stands if that fails.

    Raises:
        AnalyticsError: there is nothing to bring. A job that ends well would hide it until the old insight has expired.
    """
    if destination is None:
        return
    if found is None:
        why, step = "no insight could be written", "see the line above that begins with the folder of the tables"
        raise AnalyticsError(destination.title, why, step)
    if found:
        # The client of the API server takes as long to load as all that others need.
        from streamapp.analytics.insight.publication import publish  # noqa: PLC0415

        click.echo(f"{destination.title}: {publish(found.values(), destination).value}")


def _publication(command: Command) -> Command:
    """The options that say where insight goes; the command is given one `Destination`, or None."""

    @functools.wraps(command)
    def taken(insight_config_map: str, insight_cluster: str, **others: Any) -> Any:
        try:
            place = Destination.of(insight_config_map, insight_cluster) if insight_config_map else None
        except ValueError as error:
            raise click.UsageError(f"--insight-config-map: {error}.") from error
        return command(destination=place, **others)

    place = click.option(
        "--insight-config-map",
        default="",
        metavar="NAMESPACE/NAME",
        help="ConfigMap that the operator mounts, to write the insight into.",
    )
    cluster = click.option(
        "--insight-cluster",
        default="",
        metavar="NAME",
        help="Cluster of that insight, as the operator is told its name.",
    )
    return place(cluster(cast("Command", taken)))


def _keep(command: Command) -> Command:
    """The options that say how long rows are kept; the command is given one `Keep` for all of them."""

    @functools.wraps(command)
    def taken(keep_bronze: int, keep_silver: int, keep_gold: int, **others: Any) -> Any:
        try:
            keep = Keep(keep_bronze, keep_silver, keep_gold)
        except ValueError as error:
            raise click.UsageError(f"{error}.") from error
        return command(keep=keep, **others)

    keep, kept = Keep(), cast("Command", taken)
    for layer, days in (("gold", keep.gold), ("silver", keep.silver), ("bronze", keep.bronze)):
        text = f"Days that {layer} keeps, back from the newest one; 0: for ever."
        option = click.option(f"--keep-{layer}", default=days, show_default=True, type=click.IntRange(0), help=text)
        kept = option(kept)
    return kept


@dataclass(frozen=True, slots=True)
class _Input:
    """Where the record comes from, seen to be there before Spark takes its seconds to start."""

    record: tuple[Path, ...]
    topic: Topic | None
    jars: str
    max_bad: float

    @property
    def name(self) -> str:
        """For people."""
        return f"topic {self.topic.name} at {self.topic.bootstrap}" if self.topic else ", ".join(map(str, self.record))

    def conf(self, given: tuple[str, ...]) -> tuple[str, ...]:
        """What Spark is configured with, the connector's jars included where they are not its own."""
        return (f"spark.jars={self.jars}", *given) if self.jars else given

    def ingest(self, spark: SparkSession, root: Path) -> None:
        """Take in what is new, and tell."""
        run = Ingest(spark, bronze(root), stage_display(spark), datetime.now(UTC), self.max_bad)
        again = run.again()
        if again is not None and again.kept:
            click.echo(f"{again.kept} lines from the quarantine are good for this version and taken in")
        if self.topic:
            _print_topic(ingest_topic(run, self.topic), self.topic.name)
        else:
            _print_ingest(run.run(self.record))


def _record(command: Command) -> Command:
    """The options that say where the record comes from; the command is given one `_Input` for all of them."""

    @functools.wraps(command)
    def taken(
        record: tuple[Path, ...],
        max_bad: float,
        kafka: str,
        topic: str,
        kafka_properties: Path | None,
        jars: Path | None,
        **others: Any,
    ) -> Any:
        if bool(record) == bool(kafka):
            raise click.UsageError("Name files of the record, or --kafka BOOTSTRAP; one of them.")
        if kafka:
            source = _Input((), Topic(kafka, topic, properties_in(kafka_properties)), connector_jars(jars), max_bad)
        else:
            record_files(record)
            source = _Input(record, None, "", max_bad)
        return command(source=source, **others)

    bad = "Share of bad lines above which the run fails."
    properties = "Folder with the consumer's properties (TLS, SASL), a file each."
    options: Iterable[Callable[[Any], Any]] = (
        click.option("--jars", type=FOLDER, help=f"Folder of Spark's Kafka connector; else {JARS_VARIABLE}."),
        click.option("--kafka-properties", type=FOLDER, help=properties),
        click.option("--topic", default="streamapp-flight-records", show_default=True, help="The record's topic."),
        click.option("--kafka", default="", metavar="BOOTSTRAP", help="Read the record from Kafka and not from files."),
        click.option("--max-bad", default=MOST_BAD, show_default=True, help=bad),
        click.argument("record", nargs=-1, type=FOLDER),
    )
    return cast("Command", functools.reduce(lambda done, option: option(done), options, taken))


@analytics.command(short_help="Take the flight record into bronze.")
@_record
@ROOT
@engine_options
def ingest(source: _Input, root: Path, **engine: Any) -> None:
    """Take the flight record (RECORD: files or folders, or a Kafka topic) into bronze, each file and line once."""
    require_tables_folder(root)
    with running_spark(root, **{**engine, "conf": source.conf(engine["conf"])}) as spark:
        source.ingest(spark, root)


@analytics.command(short_help="Build silver and gold from bronze.")
@ROOT
@click.option("--full", is_flag=True, help="Build all again, not only what has changed.")
@_keep
@_publication
@engine_options
def build(root: Path, full: bool, keep: Keep, destination: Destination | None, **engine: Any) -> None:
    """Bring silver and gold up to what bronze holds, then remove what is older than is to be kept."""
    require_bronze(root)
    require_tables_folder(root)
    with running_spark(root, **engine) as spark:
        _print_build(Build(spark, root, stage_display(spark), full).run())
    _print_removed(remove_old(root, keep))
    _print_publication(_print_insight(root), destination)


MOST = "Most with a page."


def _limits(command: Command) -> Command:
    """The options that say how much is on the page."""
    apps = click.option("--apps", default=page.MOST_APPS, show_default=True, type=click.IntRange(1), help=MOST)
    days = click.option("--days", default=30, show_default=True, type=click.IntRange(1), help="Last days with figures.")
    return days(apps(command))


@dataclass(frozen=True, slots=True)
class _Incident:
    """What a link to the page shows; empty for nothing in particular."""

    app: str
    since: str
    until: str

    def link(self, made: page.Report) -> str:
        """What follows the address of the page.

        Raises:
            AnalyticsError: the page has no part about the application.
        """
        found = next((app for app in made.paged if app.title == self.app), None)
        if found is None:
            raise AnalyticsError(
                self.app, "no such application has a page", "see the table of the page for their names"
            )
        times = (moment(words, found.last) if words else None for words in (self.since, self.until))
        return fragment(self.app, *times)


def _incident(command: Command) -> Command:
    """The options that say what a link shows; the command is given one `_Incident`."""

    @functools.wraps(command)
    def taken(app: str, since: str, until: str, **others: Any) -> Any:
        if (since or until) and not app:
            raise click.UsageError("--since and --until need --app.")
        for words in (since, until):
            try:
                moment(words or "00:00", datetime.now(UTC))
            except ValueError as error:
                raise click.UsageError(f"{words!r} is no time: write 02:00 or 2026-11-21T02:00, in UTC.") from error
        return command(incident=_Incident(app, since, until), **others)

    options: Iterable[Callable[[Any], Any]] = (
        click.option("--until", default="", metavar="TIME", help="End of that link's time (UTC)."),
        click.option("--since", default="", metavar="TIME", help="Begin of that link's time (UTC): 02:00, or a date."),
        click.option("--app", default="", metavar="NAMESPACE/NAME", help="Print the link to this application, too."),
    )
    return cast("Command", functools.reduce(lambda done, option: option(done), options, taken))


@analytics.command(short_help="Write the page from gold and silver.")
@ROOT
@click.option("--out", type=OUTPUT, default=Path("report.html"), show_default=True, help="The page to write.")
@click.option("--json", "as_json", type=OUTPUT, help="Write the figures there too, unrounded.")
@click.option("--markdown", "as_markdown", type=OUTPUT, help="Write a summary there too, for a pull request or a chat.")
@_limits
@_incident
def report(
    root: Path, out: Path, as_json: Path | None, as_markdown: Path | None, days: int, apps: int, incident: _Incident
) -> None:
    """Write what the tables say as one page that needs no network and no Spark.

    With --app it also prints the link to that application's part, and to a time of it with --since and --until.
    """
    made = _written(root, days, apps, out, as_json, as_markdown)
    if incident.app:
        click.echo(f"{out.absolute().as_uri()}{incident.link(made)}")


def _written(
    root: Path, days: int, apps: int, out: Path, as_json: Path | None = None, as_markdown: Path | None = None
) -> page.Report:
    tables = read_tables(root, days)
    made = page.make_report(tables, datetime.now(UTC), apps)
    written = {out: page.html(made)}
    if as_json is not None:
        written[as_json] = json.dumps(page.figures(made), indent=1, allow_nan=False) + "\n"
    if as_markdown is not None:
        written[as_markdown] = page.markdown(made)
    for path, text in written.items():
        page.write(path, text)
        click.echo(f"{path}: {_size(path)}, {len(made.apps)} applications, {len(tables.days)} days")
    return made


def _size(path: Path) -> str:
    size = path.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.1f} kB"


@analytics.command(short_help="Print what to change, and why.")
@ROOT
@click.option("--days", default=28, show_default=True, type=click.IntRange(1), help="Last days to look at.")
@click.option("--app", default="", metavar="NAMESPACE/NAME", help="Of this application alone.")
@click.option("--json", "is_json", is_flag=True, help="For programs.")
def advise(root: Path, days: int, app: str, is_json: bool) -> None:
    """Print what to change of each application, the figures it rests on, and what to look at first."""
    found = page.all_advice(read_tables(root, days))
    chosen = {title: pieces for title, pieces in found.items() if app in {"", title}}
    if not chosen:
        raise AnalyticsError(app or str(root), "no such application is in the tables", "see `report` for their names")
    if is_json:
        told = {title: [asdict(one) for one in pieces] for title, pieces in chosen.items()}
        click.echo(json.dumps(told, indent=1, allow_nan=False))
        return
    for title, pieces in chosen.items():
        for one in pieces:
            click.echo(f"{title}: {one.text}")


analytics.add_command(what_if_command)


@analytics.command(short_help="Print how other programs read the tables.")
@ROOT
@click.option("--layer", type=click.Choice(["bronze", "silver", "gold"]), default="gold", show_default=True)
@click.option("--for", "program", type=click.Choice([*FORMATS]), default="json", show_default=True)
def tables(root: Path, layer: str, program: str) -> None:
    """Print the files of the newest version of a layer, or the statements that name them to another program.

    Trino reads the folder gold/current, and so only gold.
    """
    if program == "trino" and layer != "gold":
        raise click.UsageError("Trino reads a folder, and only gold has one: leave out --layer.")
    click.echo(FORMATS[program]({"bronze": bronze, "silver": silver, "gold": gold}[layer](root)))


@analytics.command(short_help="All three at one start: ingest, build, report.")
@_record
@ROOT
@click.option("--out", type=OUTPUT, help="The page to write; report.html in the folder of the tables unless given.")
@_limits
@_keep
@_publication
@engine_options
def run(
    source: _Input,
    root: Path,
    out: Path | None,
    days: int,
    apps: int,
    keep: Keep,
    destination: Destination | None,
    **engine: Any,
) -> None:
    """Do it all at one start of Spark: ingest RECORD or a topic, build, remove old days, write the report."""
    require_tables_folder(root)
    if out is not None:
        _require_writable(out.parent, "--out")
    with running_spark(root, **{**engine, "conf": source.conf(engine["conf"])}) as spark:
        source.ingest(spark, root)
        if not bronze(root).current().days(QUARANTINE):
            raise AnalyticsError(
                source.name, "no line of the record is in it yet", "wait until the operator wrote some"
            )
        _print_build(Build(spark, root, stage_display(spark)).run())
    _print_removed(remove_old(root, keep))
    found = _print_insight(root)
    click.echo("\n" + page.markdown(_written(root, days, apps, out or root / "report.html")))
    _print_publication(found, destination)


@analytics.command(short_help="Make up a record to try it with.")
@click.argument("folder", type=FOLDER)
@click.option("--apps", default=4, show_default=True, type=click.IntRange(1, 1000), help="Applications.")
@click.option("--days", default=1, show_default=True, type=click.IntRange(1, 366), help="Days from 2026-11-01 on.")
@click.option("--tasks", default=12, show_default=True, type=click.IntRange(2), help="Tasks of each application.")
@click.option("--pods", default=4, show_default=True, type=click.IntRange(2, 100), help="Pods of each application.")
@click.option("--seed", default=1, show_default=True, help="The same seed makes the same record.")
@click.option("--bug", is_flag=True, help="Plant a recorder's bug that an ingest must refuse.")
def generate(folder: Path, apps: int, days: int, tasks: int, pods: int, seed: int, bug: bool) -> None:
    """Write a made-up flight record into FOLDER, with what is true of it in truth.json."""
    _require_writable(folder, "FOLDER")
    files = lines = size = 0
    for path, count in write_record(Fleet(apps=apps, days=days, tasks=tasks, pods=pods, seed=seed, bug=bug), folder):
        files, lines, size = files + 1, lines + count, size + path.stat().st_size
    click.echo(f"{lines} lines in {files} files, {size / 1e6:.1f} MB, in {folder}")
