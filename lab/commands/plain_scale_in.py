"""The command that shows today's pain: a plain scale-in with its gaps."""

import json
from pathlib import Path

import click

from lab.commands.measure import require_kept
from lab.commands.node_namespace import in_node_namespace
from lab.meter.table import count_summary, gap_table
from lab.scenarios.demo_application import DemoApplication, fresh_name
from lab.scenarios.plain_scale_in import PlainScaleIn, ScaleIn, ScaleInResult
from lab.terminal import results


@click.command(name="plain-scale-in")
@click.option("--records", default=1_000_000, show_default=True, help="Keys to preload.")
@click.option("--rate", default=500, show_default=True, help="Records a second of the steady load.")
@click.option("--standbys", default=1, show_default=True, help="num.standby.replicas of the application.")
@click.option("--exactly-once", is_flag=True, help="Run the application with exactly-once.")
@click.option("--leave", is_flag=True, help="Let the application leave the group when it closes.")
@click.option("--repeat", default=1, show_default=True, help="How many scale-ins to measure.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures here.")
def plain_scale_in(
    *, records: int, rate: int, standbys: int, exactly_once: bool, leave: bool, repeat: int, json_file: Path | None
) -> None:
    """Scale a plain StatefulSet 3 → 2 under load and show how long each partition was silent."""
    settings = {
        "STREAMS_NUM_STANDBY_REPLICAS": str(standbys),
        "EXACTLY_ONCE": str(exactly_once).lower(),
        "LEAVE_ON_CLOSE": str(leave).lower(),
    }
    application = DemoApplication(fresh_name(), settings, records, rate)
    with in_node_namespace() as session:
        outcome = PlainScaleIn(session, application).run(repeat=repeat)
    for number, scale_in in enumerate(outcome.scale_ins, start=1):
        title = f"scale-in {number} of {repeat}" if repeat > 1 else "plain StatefulSet, 3 → 2 pods"
        _show(title, scale_in, standbys)
    results.print(count_summary(outcome.counts))
    if json_file:
        json_file.write_text(_figures(outcome, application))
    require_kept(outcome.counts, application.output_topic)


def _show(title: str, scale_in: ScaleIn, standbys: int) -> None:
    results.print(f"\n{title}, standbys per task: {standbys}", style="bold")
    results.print(gap_table(scale_in.during, scale_in.moved))
    quiet = scale_in.before.worst()
    if quiet is not None and quiet.seconds is not None:
        results.print(
            f"in quiet time just before, the worst of all partitions was {quiet.seconds:.2f} s\n", style="dim"
        )


def _figures(outcome: ScaleInResult, application: DemoApplication) -> str:
    content = {
        "application": dict(application.settings) | {"records": application.records, "rate": application.rate},
        "scale_ins": [scale_in.to_json() for scale_in in outcome.scale_ins],
        "counts": outcome.counts.to_json(),
    }
    return json.dumps(content, indent=2) + "\n"
