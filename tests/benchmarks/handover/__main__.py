"""Play the ways turn by turn on one broker, and print where the time of their moves went."""

import json
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click

from lab.build.cache import Cache
from lab.build.maven import broker_jars
from lab.build.toolchains import java_home
from lab.matrix import broker
from lab.meter.measure import measure_gaps
from lab.settings import Settings
from lab.terminal import step
from tests.benchmarks.handover.group import Move, MovingGroup, Way
from tests.benchmarks.handover.page import every_move, gaps_table, parts_table
from tests.benchmarks.handover.parts import CutGap, cut, summarised
from tests.benchmarks.handover.stamps import Hop, read_log, stamps
from tests.benchmarks.handover.ways import APPLICATIONS, ways

Measured = tuple[list[CutGap], dict[tuple[str, str], float]]
"""Every gap, and by way and kind the longest one of a partition that stayed."""


@click.command()
@click.option("--turns", default=4, show_default=True, help="Turns of each way; every second one starts without state.")
@click.option("--records", default=100_000, show_default=True, help="Keys, each written once before the first turn.")
@click.option("--rate", default=300, show_default=True, help="Records a second of the steady load.")
@click.option("--application", "names", multiple=True, type=click.Choice(list(APPLICATIONS)), help="Default: all.")
@click.option("--agent", "agents", multiple=True, help="NAME=JAR of an agent to try; default: the one built here.")
@click.option("--set", "settings", multiple=True, help="NAME:VARIABLE=VALUE, a way with one more variable.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where logs and state stay; default: nowhere.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write every move here.")
@click.option("--markdown", type=click.Path(dir_okay=False, path_type=Path), help="Write the tables here.")
def main(
    *,
    turns: int,
    records: int,
    rate: int,
    names: tuple[str, ...],
    agents: tuple[str, ...],
    settings: tuple[str, ...],
    folder: Path | None,
    json_file: Path | None,
    markdown: Path | None,
) -> None:
    """Move tasks to fresh and to warm processes, and cut every gap at the moments of the move."""
    lab = Settings.from_environment()
    chosen = ways(lab, names, agents, settings)
    with ExitStack() as stack:
        place = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="streamapp-handover-")))
        found, quiet = _played(lab, stack, chosen, place.absolute(), Plan(turns, records, rate))
    summaries = summarised(found, quiet)
    text = f"{gaps_table(summaries)}\n{parts_table(summaries)}\n{every_move(found)}"
    click.echo(text)
    if json_file:
        json_file.write_text(json.dumps([one.to_json() for one in found], indent=1) + "\n")
    if markdown:
        markdown.write_text(text)


@dataclass(frozen=True)
class Plan:
    """How much is played."""

    turns: int
    records: int
    rate: int


def _played(lab: Settings, stack: ExitStack, chosen: Sequence[Way], place: Path, plan: Plan) -> Measured:
    """Play every turn of every way, and measure when all is over."""
    jars, java = broker_jars(lab.versions, Cache(lab.cache)), java_home(lab.versions)
    (place / "broker").mkdir(parents=True)
    server = stack.enter_context(broker.running(jars, java, place / "broker"))
    groups = [MovingGroup(way, server, place / way.name, plan.rate) for way in chosen]
    for group in groups:
        with step(f"{group.way.name}: {plan.records:,} keys"):
            group.start(stack, plan.records)
    try:
        for turn in range(plan.turns):
            for group in groups:
                with step(f"{group.way.name}: turn {turn + 1} of {plan.turns}"):
                    group.play(turn)
    except KeyboardInterrupt:
        click.echo("interrupted: what has been played is measured", err=True)
    return _measured(server.bootstrap, groups)


def _measured(bootstrap: str, groups: Sequence[MovingGroup]) -> Measured:
    found: list[CutGap] = []
    quiet: dict[tuple[str, str], float] = {}
    for group in groups:
        for move in group.moves:
            report = measure_gaps(bootstrap, *group.topics, move.window)
            key = (move.way, move.kind)
            others = [row.seconds or 0.0 for row in report.partitions if row.partition not in move.partitions]
            quiet[key] = max(quiet.get(key, 0.0), *others)
            logs = {ordinal: read_log(log.read_text(errors="replace")) for ordinal, log in move.logs.items()}
            for row in report.partitions:
                if row.partition in move.partitions and row.gap is not None:
                    at = stamps(logs, _hop(move, row.partition))
                    parts = cut(row.gap.start_ms, row.gap.end_ms, at)
                    found.append(CutGap(*key, move.turn, row.partition, row.gap.seconds, parts))
    return found, quiet


def _hop(move: Move, partition: int) -> Hop:
    before, after = (owners[partition] for owners in move.owners)
    return Hop(f"0_{partition}", before, after, move.window.start_ms, move.window.end_ms)


if __name__ == "__main__":
    main()
