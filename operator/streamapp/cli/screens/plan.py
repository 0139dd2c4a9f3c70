"""What new desired replicas would cause: `plan_screen(prediction)`. Pure."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from streamapp.cli.model.phrases import counted
from streamapp.cli.model.prediction import Outcome, Prediction, time_left
from streamapp.cli.text import durations

_TITLES = ("assignor", "moves", "needless", "learners", "rebalances", "time", "worst share", "cold")


def plan_screen(found: Prediction) -> RenderableType:
    """The outcomes, one line each, and what was assumed."""
    head = Text.assemble((found.name, "bold"), "  from ", (str(found.current), "bold"), " to ", (str(found.to), "bold"))
    head.append(f" {'replica' if found.to == 1 else 'replicas'}, {counted(found.stateful, 'stateful task')}")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in _TITLES:
        table.add_column(title, justify="left" if title == "assignor" else "right", no_wrap=True)
    for one in found.outcomes:
        table.add_row(*_cells(one, found.stateful))
    lines = [Text(line) for line in _sentences(found)]
    assumed = (Text(f"  {line}", style="dim") for line in found.assumed)
    return Group(head, Text(""), table, Text(""), *lines, Text("Assumed:", style="dim"), *assumed)


def _cells(one: Outcome, stateful: int) -> tuple[str, ...]:
    name = f"{one.assignor} (in use)" if one.is_chosen else one.assignor
    more = "" if one.is_over else "+"
    numbers = (one.moves, one.needless, one.learners, one.rebalances)
    return (name, *(f"{it:,}{more}" for it in numbers), _time(one), f"{one.worst:,} of {stateful:,}", f"{one.cold:,}")


def _time(one: Outcome) -> str:
    left = time_left(one)
    if left is None:
        return "unknown"
    least, most = (durations.short(it) for it in left)
    if not one.is_over:
        return f"over {least}"
    return least if least == most else f"{least} to {most}"


def _sentences(found: Prediction) -> list[str]:
    below, above = found.even
    lines = []
    if below != found.to:
        near = " and ".join(str(size) for size in (below, above) if size is not None)
        lines.append(
            f"{counted(found.to, 'replica')} do not divide all tasks evenly; the nearest that do: {near}."
            if near
            else "No number of replicas divides all tasks evenly."
        )
    if not all(one.is_over for one in found.outcomes):
        lines.append("A number with + is of the first rebalances only: there are more than this command plays.")
    if any(one.cold and one.is_chosen for one in found.outcomes):
        lines.append(
            "Cold tasks have no caught-up copy: the operator holds such a scale-down, and on a scale-up users wait."
        )
    return lines
