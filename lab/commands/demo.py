"""The demo: the same scale-in by the operator and by a plain StatefulSet, with both worst gaps side by side."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from lab.commands.inside import inside
from lab.commands.measure import require_kept
from lab.commands.watching import watching
from lab.meter.compared import count_table, gap_bars, step_table, worst_table
from lab.scenarios.demo_application import NAMESPACE, DemoApplication, fresh_name
from lab.scenarios.held_scale_in import GROWN, SHRUNK, START, Comparison, HeldAgainstPlain
from lab.scenarios.plain_scale_in import ScaleIn
from lab.terminal import results


@click.command()
@click.option("--records", default=1_000_000, show_default=True, help="Keys to preload.")
@click.option("--rate", default=500, show_default=True, help="Records a second of the steady load.")
@click.option("--standbys", default=1, show_default=True, help="num.standby.replicas of the application; 1 at least.")
@click.option("--exactly-once", is_flag=True, help="Run the application with exactly-once.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures here.")
def demo(*, records: int, rate: int, standbys: int, exactly_once: bool, json_file: Path | None) -> None:
    """Scale a StreamApp up and down under load, then a plain StatefulSet, and show both gaps."""
    settings = {"STREAMS_NUM_STANDBY_REPLICAS": str(standbys), "EXACTLY_ONCE": str(exactly_once).lower()}
    application = DemoApplication(fresh_name(), settings, records, rate)
    with inside() as session:
        found = HeldAgainstPlain(session, application, watching).run()
    _show(found, standbys)
    if json_file:
        json_file.write_text(_figures(found, application))
    for counts, name in ((found.held_counts, "held"), (found.plain_counts, "plain")):
        require_kept(counts, f"the {name} application")


def _show(found: Comparison, standbys: int) -> None:
    grown, held = found.growth, found.held
    results.print(f"\nscale up, {START} → {GROWN} pods", style="bold")
    results.print(
        f"granted {grown.granted:.2f} s after the write of the scale subresource; "
        f"the new pod owned tasks after {grown.owning:.1f} s",
        soft_wrap=True,
    )
    worst = "unknown" if grown.worst is None else f"{grown.worst:.2f} s"
    results.print(f"the longest silence of any partition until then: {worst}")
    results.print(f"\nscale down, {GROWN} → {SHRUNK} pods, held by the operator: {held.seconds:.0f} s", style="bold")
    results.print(f"while it was held, up to {held.most_waited_for} tasks had no caught-up copy on a pod that stays")
    results.print(step_table(held.steps))
    results.print(f"\nlongest silence of each partition, standbys per task: {standbys}", style="bold")
    both = (("operator", held.scale_in), ("plain StatefulSet", found.plain))
    results.print(gap_bars([(title, one.during, one.moved) for title, one in both]))
    results.print()
    results.print(worst_table([(title, _worst(one)) for title, one in both]))
    results.print("\nevery record counted", style="bold")
    results.print(count_table((("operator", found.held_counts), ("plain StatefulSet", found.plain_counts))))
    results.print("\nlook further", style="bold")
    for command, meaning in _NEXT:
        results.print(f"  [dim]# {meaning}[/]\n  {command}", soft_wrap=True)


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


def _figures(found: Comparison, application: DemoApplication) -> str:
    content = {
        "application": dict(application.settings) | {"records": application.records, "rate": application.rate},
        "growth": asdict(found.growth),
        "held": {
            "scale_in": found.held.scale_in.to_json(),
            "seconds": found.held.seconds,
            "steps": found.held.steps,
            "most_waited_for": found.held.most_waited_for,
            "counts": found.held_counts.to_json(),
        },
        "plain": {"scale_in": found.plain.to_json(), "counts": found.plain_counts.to_json()},
    }
    return json.dumps(content, indent=2) + "\n"
