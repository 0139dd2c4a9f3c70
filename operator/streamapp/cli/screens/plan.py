"""What new desired replicas would cause: `plan_screen(prediction)`. Pure."""

from datetime import timedelta

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from streamapp.cli.model.phrases import counted
from streamapp.cli.model.predictions.prediction import Prediction, shares
from streamapp.cli.text import durations
from streamapp.cli.text.bars import Bar
from streamapp.simulator.forecast.change import BROKERS
from streamapp.simulator.forecast.outcome import Outcome, Range, Step, Ways
from streamapp.simulator.forecast.times import Spread

_TITLES = ("to", "assignor", "moves", "rebalances", "time", "gap", "worst share", "cold")
_MOST_PODS, _MOST_STEPS, _BAR = 8, 12, 8
"""What fits a screen; more is drawn as a list of the fullest pods."""
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def plan_screen(found: Prediction) -> RenderableType:
    """The outcomes, one line each, the rounds as a picture, and what the prediction rests on."""
    head = Text.assemble((found.name, "bold"), "  from ", (str(found.current), "bold"), " to ", (str(found.to), "bold"))
    head.append(f" {'replica' if found.to == 1 else 'replicas'}, {counted(found.stateful, 'stateful task')}")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in _TITLES:
        table.add_column(title, justify="left" if title == "assignor" else "right", no_wrap=True)
    for one in (found.chosen, *found.others):
        table.add_row(*_cells(one, found))
    lines = [Text(line) for line in _sentences(found)]
    parts: list[RenderableType] = [head, Text(""), table, Text(""), _picture(found), Text(""), *lines]
    for title, phrases in (("Learned:", found.basis.learned), ("Assumed:", found.basis.assumed)):
        if phrases:
            parts += [Text(title, style="dim"), *(Text(f"  {phrase}", style="dim") for phrase in phrases)]
    return Group(*parts)


def _cells(one: Outcome, found: Prediction) -> tuple[str, ...]:
    more, ways = "" if one.is_over else "+", one.ways
    moves = f"{len(one.moves):,}" if ways is None else _numbers(ways.moves)
    worst = f"{one.worst:,}" if ways is None else _numbers(ways.worst)
    return (
        str(one.to),
        _assignor(one, found),
        f"{moves}{more}",
        f"{one.rebalances:,}{more}",
        _range(one.seconds, is_over=one.is_over),
        _range(one.gap, is_over=True),
        f"{worst} of {found.stateful:,}",
        f"{one.cold:,}" if ways is None else _numbers(ways.cold),
    )


def _assignor(one: Outcome, found: Prediction) -> str:
    """Its name, with a star if it is in use; of brokers, other standbys than those of the group."""
    settings = found.basis.settings
    if one.assignor == BROKERS and one.standbys != settings.standbys:
        return f"{one.assignor}, {counted(one.standbys, 'standby')}"
    return f"{one.assignor} *" if one.assignor == settings.assignor else one.assignor


def _numbers(numbers: Range) -> str:
    """One number, or two with `to` between them."""
    few, many = f"{numbers.fewest:,}", f"{numbers.most:,}"
    return few if few == many else f"{few} to {many}"


def _copies(one: Outcome) -> str:
    """What is made on the way, and what that reads; of several ways, in the first one."""
    made = f"{counted(one.learners, 'learner')} and {counted(one.cold, 'cold task')}"
    if one.seconds is None:
        return f"{made} read an unknown number of records."
    size = "" if one.copied_bytes is None else f" ({_bytes(one.copied_bytes)})"
    return f"{made} read {one.copied:,.0f} records{size}."


def _bytes(size: float) -> str:
    for unit in _UNITS:
        if size < 1024 or unit == _UNITS[-1]:
            return f"{size:.0f} {unit}"
        size /= 1024
    raise AssertionError


def _range(spread: Spread | None, *, is_over: bool) -> str:
    if spread is None:
        return "unknown"
    least, most = (durations.fine(timedelta(seconds=it)) for it in (spread.p10, spread.p90))
    if not is_over:
        return f"over {least}"
    return least if least == most else f"{least} to {most}"


def _picture(found: Prediction) -> RenderableType:
    """One line for each rebalance: when, and how many tasks each pod runs after it."""
    steps = found.chosen.steps
    most = max((count for step in steps for count in shares(step).values()), default=1) or 1
    pods = sorted({ordinal for step in steps for ordinal in step.active})
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("after", justify="right", no_wrap=True)
    shown = pods[:_MOST_PODS]
    for ordinal in shown:
        zone = found.zones.get(ordinal)
        table.add_column(f"pod {ordinal}" if zone is None else f"pod {ordinal} ({zone})", no_wrap=True)
    if len(pods) > len(shown):
        table.add_column("more pods", no_wrap=True)
    table.add_column("waiting", justify="right", no_wrap=True)
    for step in steps[:_MOST_STEPS]:
        table.add_row(*_drawn(step, shown, pods, most))
    rest = len(steps) - _MOST_STEPS
    return table if rest <= 0 else Group(table, Text(f"and {counted(rest, 'more rebalance')}", style="dim"))


def _drawn(step: Step, shown: list[int], pods: list[int], most: int) -> list[RenderableType]:
    counts = shares(step)
    cells: list[RenderableType] = [durations.fine(timedelta(seconds=step.seconds))]
    for ordinal in shown:
        if ordinal not in counts:
            cells.append("")
            continue
        cell = Table.grid(padding=(0, 1, 0, 0))
        cell.add_row(Bar(counts[ordinal] / most, _BAR, "green"), str(counts[ordinal]))
        cells.append(cell)
    if len(pods) > len(shown):
        others = [counts[ordinal] for ordinal in pods[len(shown) :] if ordinal in counts]
        cells.append(f"{min(others)} to {max(others)}" if others else "")
    return [*cells, str(step.waiting)]


def _sentences(found: Prediction) -> list[str]:
    below, above = found.even
    chosen = found.chosen
    needless = f", {chosen.needless:,} of them needlessly" if chosen.needless else ""
    lines = [
        "* is the assignor in use.",
        f"{_moves(chosen)} will move{needless}. {_copies(chosen)}",
        *([] if chosen.ways is None else _about_ways(chosen.ways)),
        *found.doubts,
    ]
    if below != found.to:
        near = " and ".join(str(size) for size in (below, above) if size is not None)
        lines.append(
            f"{counted(found.to, 'replica')} do not divide all tasks evenly; the nearest that do: {near}."
            if near
            else "No number of replicas divides all tasks evenly."
        )
    if not all(one.is_over for one in (found.chosen, *found.others)):
        lines.append("A number with + is of the first rebalances only: there are more than this command plays.")
    if found.chosen.most_cold and found.to >= found.current:
        lines.append("Cold tasks have no caught-up copy: their users wait while the state is restored.")
    return lines


def _moves(one: Outcome) -> str:
    if one.ways is None or one.ways.moves.fewest == one.ways.moves.most:
        return counted(len(one.moves), "task")
    return f"{_numbers(one.ways.moves)} tasks"


def _about_ways(ways: Ways) -> list[str]:
    """What is unknown before."""
    tasks = len(ways.uncertain)
    if not tasks:
        return []
    return [
        f"{counted(tasks, 'task')} can end on one of several pods: IDs and the order of members decide, and both are "
        f"unknown before. The picture is one of {ways.played} ways that were played."
    ]
