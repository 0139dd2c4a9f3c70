"""The demo: the same scale-in with learners on demand, with a standby and plain, with the worst gaps side by side.

It ends with the report of what just happened: the operator's flight record through the pipeline.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl
from lab.commands.live_table import watching
from lab.commands.measure import require_kept
from lab.commands.node_namespace import in_node_namespace
from lab.meter.comparison import count_table, gap_bars, step_table, worst_table
from lab.meter.costs import Cost, compared, cost_table, steps_of
from lab.meter.counts import CountReport
from lab.meter.measure import measure_gaps
from lab.scenarios.demo_application import NAMESPACE, DemoApplication, fresh_name
from lab.scenarios.held_scale_in import GROWN, SHRUNK, START, Comparison, Contender, HeldAgainstPlain, Shown
from lab.scenarios.plain_scale_in import ScaleIn
from lab.scenarios.record import flight_record
from lab.scenarios.record import report as reports
from lab.scenarios.record.report import Report
from lab.scenarios.stream_app import NAME, ON_DEMAND, StreamAppScenario
from lab.terminal import results, step

PLAIN = "plain StatefulSet"
STANDBYS = "STREAMS_NUM_STANDBY_REPLICAS"


@click.command()
@click.option("--records", default=1_000_000, show_default=True, help="Keys to preload.")
@click.option("--rate", default=500, show_default=True, help="Records a second of the steady load.")
@click.option("--exactly-once", is_flag=True, help="Run the applications with exactly-once.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures here.")
@click.option(
    "--report",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo-report"),
    show_default=True,
    help="Folder of the report; that of an earlier run goes.",
)
def demo(*, records: int, rate: int, exactly_once: bool, json_file: Path | None, folder: Path) -> None:
    """Scale StreamApps up and down under load, then a plain StatefulSet; show the gaps, and the operator's record."""
    name = fresh_name()

    def application(word: str, standbys: int, namespace: str) -> DemoApplication:
        settings = {"STREAMS_NUM_STANDBY_REPLICAS": str(standbys), "EXACTLY_ONCE": str(exactly_once).lower()}
        # Not the same id with something behind a dash: its changelogs would look like those of the first.
        return DemoApplication(f"{name}{word}", settings, records, rate, namespace)

    contenders = (
        Contender("on demand", application("", 0, NAMESPACE), ON_DEMAND),
        Contender("standby", application("standby", 1, "demo-standby"), {}),
    )
    plain = application("plain", 1, "demo-plain")
    with in_node_namespace() as session:
        comparison = HeldAgainstPlain(session, contenders, plain, watching).run()
        _show(comparison)
        if json_file:
            json_file.write_text(_figures(comparison, plain))
        _report(session, contenders, folder)
    _show_more()
    for counts, title in _counted(comparison):
        require_kept(counts, f"the application {title}")


def _counted(comparison: Comparison) -> list[tuple[CountReport, str]]:
    return [*((one.counts, one.contender.title) for one in comparison.held), (comparison.plain_counts, PLAIN)]


def _show(comparison: Comparison) -> None:
    for one in comparison.held:
        _show_held(one)
    results.print(f"\nlongest silence of each partition, {GROWN} → {SHRUNK} pods", style="bold")
    standbys = {one.contender.title: one.contender.application.settings[STANDBYS] for one in comparison.held}
    standby_counts = ", ".join(f"{title} {count}" for title, count in {**standbys, PLAIN: "1"}.items())
    results.print(f"standbys per task: {standby_counts}", style="dim", soft_wrap=True)
    scale_ins = [*((one.contender.title, one.held.scale_in) for one in comparison.held), (PLAIN, comparison.plain)]
    results.print(gap_bars([(title, one.during, one.moved) for title, one in scale_ins]))
    results.print()
    results.print(worst_table([(title, _worst(one)) for title, one in scale_ins]))
    results.print("\nevery record counted", style="bold")
    results.print(count_table([(title, counts) for counts, title in _counted(comparison)]))


def _report(session: Session, contenders: Sequence[Contender], folder: Path) -> None:
    """Take the operator's record, make the report of it, and show what each step cost beside what the meter measured.

    Raises:
        LabError: the record cannot be taken, or the pipeline failed. A machine that cannot run it is told so.
    """
    results.print("\nwhat each step cost, from the operator's own flight record", style="bold")
    kubectl, place = Kubectl(session), reports.clear(folder)
    with step("take the flight record out of the operator's pods"):
        flight_record.take(kubectl, place)
    if lacking := reports.missing():
        results.print(f"no report: {lacking}; then", soft_wrap=True)
        for command in ("ingest", "build", "report"):
            given = f" {place}" if command == "ingest" else ""
            out = f" --out {folder / 'report.html'}" if command == "report" else ""
            results.print(f"  streamapp-analytics {command}{given} --root {folder / 'tables'}{out}", soft_wrap=True)
        return
    made = reports.make(folder)
    results.print(f"the record: {made.ingested}", style="dim", soft_wrap=True)
    costs = [cost for one in contenders for cost in costs_of(session, one.application, one.title, made)]
    results.print(cost_table(costs))
    results.print(
        "gap on record: the longest time that a task did not run; metered: that its users waited. Both are ranges, and "
        "agree where these meet."
        + ("\n* until the next wish" if any(cost.step.outcome != "converged" for cost in costs) else ""),
        style="dim",
        soft_wrap=True,
    )
    results.print(f"the report: [bold]{made.page.absolute()}[/]", soft_wrap=True)


def costs_of(session: Session, application: DemoApplication, title: str, made: Report) -> list[Cost]:
    """What each step of an application cost, by the report and by the meter."""
    uid = StreamAppScenario(Kubectl(session), application).read()["metadata"]["uid"]
    costs = []
    for one in steps_of(made.application(application.namespace, NAME, uid)):
        topics = application.input_topic, application.output_topic
        with step(f"meter the step {title} {one.before} → {one.after}"):
            gaps = measure_gaps(session.environment["KAFKA_BOOTSTRAP"], *topics, one.window)
        costs.append(compared(title, one, gaps))
    return costs


def _show_more() -> None:
    results.print("\nlook further", style="bold")
    for command, meaning in _NEXT:
        results.print(f"  [dim]# {meaning}[/]\n  {command}", soft_wrap=True)


def _show_held(one: Shown) -> None:
    grown, held, title = one.growth, one.held, one.contender.title
    results.print(f"\n{title}: scale up, {START} → {GROWN} pods", style="bold")
    results.print(
        f"granted {grown.granted:.2f} s after the write of the scale subresource; "
        f"the new pod owned tasks after {grown.owning:.1f} s",
        soft_wrap=True,
    )
    worst = "unknown" if grown.worst is None else f"{grown.worst:.2f} s"
    results.print(f"the longest silence of any partition until then: {worst}")
    results.print(f"\n{title}: scale down, {GROWN} → {SHRUNK} pods, held: {held.seconds:.0f} s", style="bold")
    results.print(f"while it was held, up to {held.most_waited_for} tasks had no caught-up copy on a pod that stays")
    results.print(step_table(held.steps))


def _worst(scale_in: ScaleIn) -> dict[str, float | None]:
    quiet = scale_in.before.worst()
    return {
        "of partitions that moved": scale_in.worst_moved,
        "of partitions that stayed": scale_in.worst_untouched,
        "in quiet time before": None if quiet is None else quiet.seconds,
    }


_INSIDE = "uv run python -m lab exec --"
_NEXT = (
    (
        f"{_INSIDE} kubectl streamapp status counter -n {NAMESPACE} --watch",
        "the live table of the application, which is still there",
    ),
    (f"{_INSIDE} kubectl streamapp explain counter -n {NAMESPACE}", "why, in sentences"),
    (f"{_INSIDE} kubectl scale streamapp/counter -n {NAMESPACE} --replicas=3", "scale it yourself"),
    (f"{_INSIDE} kubectl get events -n {NAMESPACE}", "what the operator did"),
    ("make lab-down", "stop and remove everything"),
)


def _figures(comparison: Comparison, plain: DemoApplication) -> str:
    held_figures = {
        one.contender.title: {
            "settings": dict(one.contender.application.settings),
            "growth": asdict(one.growth),
            "scale_in": one.held.scale_in.to_json(),
            "seconds": one.held.seconds,
            "steps": one.held.steps,
            "most_waited_for": one.held.most_waited_for,
            "counts": one.counts.to_json(),
        }
        for one in comparison.held
    }
    content = {
        "load": {"records": plain.records, "rate": plain.rate},
        "held": held_figures,
        "plain": {
            "settings": dict(plain.settings),
            "scale_in": comparison.plain.to_json(),
            "counts": comparison.plain_counts.to_json(),
        },
    }
    return json.dumps(content, indent=2) + "\n"
