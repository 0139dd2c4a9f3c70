"""Commands that bring the cluster up and down, look at it and run things in it."""

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from lab.build.earlier_release import build_earlier_release
from lab.build.keda import build_keda
from lab.build.launcher_images import build_launcher_images
from lab.build.plan import build_analytics
from lab.clusters.choice import chosen, embedded
from lab.errors import LabError
from lab.node.layout import SECOND, Layout
from lab.node.parts import part_names
from lab.node.usage import memory_of
from lab.settings import Settings
from lab.terminal import progress, results


@click.command()
@click.option("--reuse", is_flag=True, help="Use the lab that is up, if one is, and bring its images up to date.")
def up(*, reuse: bool) -> None:
    """Build what is missing, start the cluster, deploy the broker."""
    cluster = chosen(Settings.from_environment())
    if reuse:
        cluster.ensure_up()
    else:
        cluster.up()
    for sentence in cluster.skipped():
        progress.print(f"[dim]not exercised here: {sentence}[/]")
    progress.print("The lab is up.")
    progress.print("  look:  [bold]python -m lab status[/]")
    progress.print("  use:   [bold]python -m lab exec -- kubectl get pods -A[/]")


@click.command()
@click.option("--analytics", is_flag=True, help="Build the pipeline's image too, which only its own tests need.")
@click.option("--keda", is_flag=True, help="Build KEDA too, for the test of an autoscaler by lag: 15 minutes once.")
@click.option(
    "--launchers", is_flag=True, help="Build Spring Boot and Quarkus images too, which only their tests need."
)
@click.option("--earlier", is_flag=True, help="Build an earlier release too, for the test of upgrade and downgrade.")
def build(*, analytics: bool, keda: bool, launchers: bool, earlier: bool) -> None:
    """Build what the chosen cluster needs; what is in the cache stays as it is."""
    settings = Settings.from_environment()
    chosen(settings).build()
    if analytics:
        build_analytics(settings)
    if keda:
        build_keda(settings)
    if launchers:
        build_launcher_images(settings)
    if earlier:
        build_earlier_release(settings)


@click.command()
def down() -> None:
    """Stop the cluster and remove what it wrote."""
    chosen(Settings.from_environment()).down()
    progress.print("The lab is down.")


@click.command()
def status() -> None:
    """Show the parts of the embedded lab and the pods in it."""
    lab = embedded(Settings.from_environment())
    nodes = lab.nodes()
    table = Table("part", "state", "restarts", "up for", "memory", box=None, header_style="bold", pad_edge=False)
    for column in (2, 3, 4):
        table.columns[column].justify = "right"
    for each in nodes:
        total = sum(_add_row(table, each.proc, part) for part in each.status["parts"])
        results.print(f"{each.node.name}: {each.status['phase']}, node parts use {_mebibytes(total)}", style="bold")
    results.print()
    results.print(table)
    if nodes[0].status["phase"] == "running":
        with lab.session() as session:
            subprocess.run((*session.prefix, "kubectl", "get", "pods", "-A"), env=session.environment, check=False)


def _add_row(table: Table, proc: Path, part: Mapping[str, Any]) -> int:
    """Show a part, and give the bytes that it uses."""
    memory = memory_of(proc, part["pid"]) if part["pid"] else 0
    state = "running" if part["pid"] else f"ended with {part['last_exit']}"
    up_for = _duration(time.time() - part["started_at"])
    table.add_row(part["name"], state, str(part["restarts"]), up_for, _mebibytes(memory))
    return memory


@click.command()
@click.argument("part")
@click.option("-f", "--follow", is_flag=True, help="Go on as the part writes.")
@click.option("-n", "--lines", default=100, show_default=True, help="How many lines from the end; 0 for all.")
def logs(part: str, *, follow: bool, lines: int) -> None:
    """Show the log of PART: a part of `status`, `supervisor`, or `audit`.

    Logs outlive the lab until the next `up`.
    """
    layout = Layout(Settings.from_environment().state)
    known = [*part_names(layout), "supervisor", f"supervisor{SECOND.suffix}", "audit", "node-manifest"]
    if part not in known:
        raise LabError(f"log {part}: unknown part", f"parts are {', '.join(sorted(known))}", "choose one of these")
    path = layout.logs / f"{part}.log"
    if layout.logs.exists():
        next(layout.logs.iterdir(), None)  # an OSError names the folder if it is not ours to read
    if not path.exists():
        raise LabError(f"log {part}: none there", f"{path} does not exist", "start the lab: `python -m lab up`")
    count = f"--lines={lines}" if lines else "--lines=+1"
    sys.exit(subprocess.run(("tail", count, *(["-F"] if follow else []), str(path)), check=False).returncode)


@click.command(name="exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def execute(command: tuple[str, ...]) -> None:
    """Run COMMAND where kubectl and the broker's clients reach the cluster.

    In the embedded lab that is inside its namespaces, in the current folder.
    KUBECONFIG and KAFKA_BOOTSTRAP are set.
    """
    with chosen(Settings.from_environment()).session() as session:
        ran = subprocess.run((*session.prefix, *command), env=session.environment, check=False)
    sys.exit(ran.returncode if ran.returncode >= 0 else 128 - ran.returncode)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _mebibytes(count: int) -> str:
    return f"{count / 2**20:.0f} MiB"
