"""The meter by itself: gaps of a window and the count check, for any pair of topics in the form of the demo."""

import json
from datetime import UTC, datetime, timedelta

import click

from lab.commands.node_namespace import in_node_namespace
from lab.errors import LabError
from lab.meter.counts import CountReport, CountVerdict
from lab.meter.gaps import Window
from lab.meter.measure import check_counts, measure_gaps
from lab.meter.table import count_summary, gap_table
from lab.terminal import results


@click.command()
@click.option("--input", "input_topic", required=True, help="Topic that the application reads.")
@click.option("--output", "output_topic", required=True, help="Topic that it writes, one output an input.")
@click.option("--last", default=60.0, show_default=True, help="Seconds of the window, which ends now.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def gaps(*, input_topic: str, output_topic: str, last: float, as_json: bool) -> None:
    """Show the longest silence of every input partition in the last seconds."""
    end = datetime.now(UTC)
    with in_node_namespace() as session:
        report = measure_gaps(
            session.environment["KAFKA_BOOTSTRAP"],
            input_topic,
            output_topic,
            Window.between(end - timedelta(seconds=last), end),
        )
    results.print_json(json.dumps(report.to_json())) if as_json else results.print(gap_table(report, {}))


@click.command()
@click.option("--input", "input_topic", required=True, help="Topic that the application reads.")
@click.option("--output", "output_topic", required=True, help="Topic that it writes, one output an input.")
@click.option("--exactly-once", is_flag=True, help="Judge doubled outputs as a broken promise.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def counts(*, input_topic: str, output_topic: str, exactly_once: bool, as_json: bool) -> None:
    """Compare every count with the input: nothing lost, under exactly-once nothing doubled."""
    with in_node_namespace() as session:
        report = check_counts(
            session.environment["KAFKA_BOOTSTRAP"], input_topic, output_topic, exactly_once=exactly_once
        )
    results.print_json(json.dumps(report.to_json())) if as_json else results.print(count_summary(report))
    require_kept(report, output_topic)


def require_kept(report: CountReport, output_topic: str) -> None:
    """End the command with a LabError if the promise was not kept; called last, when all figures are shown."""
    if report.verdict is not CountVerdict.KEPT:
        raise LabError(
            f"counts of {output_topic}: {report.verdict.value}",
            "the outputs do not fit the inputs, see above",
            "look at the application's logs around the offsets named",
        )
