"""A change of the desired replicas: the numbers, the effect, and the pods that leave. Pure."""

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.constrain import Constrain
from rich.table import Table
from rich.text import Text

from streamapp.cli.model.phrases import counted
from streamapp.cli.model.scale_plan import LeavingPod, ScalePlan, sentences, warnings

_LONGEST_LINE = 100
_MOST_PODS = 30


def scale_screen(plan: ScalePlan) -> RenderableType:
    """Show a plan before it is written."""
    head = Text.assemble(
        (plan.view.name, "bold"), "  from ", (str(plan.desired), "bold"), " to ", (str(plan.to), "bold")
    )
    head.append(f" {'replica' if plan.to == 1 else 'replicas'}")
    if plan.view.status.stateful_set_replicas not in {None, plan.desired}:
        head.append(f", current {plan.current}", style="dim")
    doubts = (Text(sentence, style="yellow") for sentence in warnings(plan))
    effect = Constrain(Group(*map(Text, sentences(plan)), *doubts), _LONGEST_LINE)
    parts: list[RenderableType] = [head, effect]
    if plan.leaving:
        parts += [Text(""), _Pods(plan.leaving)]
    return Group(*parts)


class _Pods:
    """The pods that leave, with their tasks."""

    def __init__(self, leaving: Sequence[LeavingPod]) -> None:
        self._leaving = leaving

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give the table, and one line for the other pods."""
        shown = self._leaving[:_MOST_PODS]
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for title in ("pod", "active", "copies"):
            table.add_column(title, justify="right", no_wrap=True)
        has_tasks = any(pod.tasks for pod in shown)
        if has_tasks:
            table.add_column("tasks", overflow="fold")
        for pod in shown:
            tasks = [", ".join(pod.tasks)] if has_tasks else []
            table.add_row(str(pod.ordinal), _count(pod.active), _count(pod.copies), *tasks)
        yield table
        yield from _sum(self._leaving, len(shown))


def _sum(leaving: Sequence[LeavingPod], shown: int) -> Iterator[Text]:
    if shown < len(leaving):
        yield Text(f"and {counted(len(leaving) - shown, 'more pod')}", style="dim")
    known = [pod.active for pod in leaving if pod.active is not None]
    if len(known) == len(leaving) and len(leaving) > 1:
        copies = sum(pod.copies or 0 for pod in leaving)
        moves = f"total: {counted(sum(known), 'active task')}, which move, and {_copies(copies)}"
        yield Text(moves, style="dim")


def _copies(number: int) -> str:
    return f"{number:,} {'copy' if number == 1 else 'copies'}"


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"
