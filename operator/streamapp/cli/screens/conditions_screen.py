"""The part of the screen about conditions: those that ask for something, each reason once."""

from itertools import groupby

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from streamapp.cli.model.app_view import View
from streamapp.cli.text import durations
from streamapp.core.actions.decision import Answer

_STYLES = {Answer.TRUE: "green", Answer.FALSE: "red", Answer.UNKNOWN: "magenta"}


def conditions(view: View) -> RenderableType | None:
    """Show them, without the one that the heading has said; None where all is well."""
    if not view.to_look_at:
        return None
    said = view.told_by
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("condition", "is", "since"):
        table.add_column(title, no_wrap=True)
    table.add_column("because", overflow="fold")
    ordered = sorted(view.to_look_at, key=lambda one: (one.reason, one.status.value))
    for (reason, status), group in groupby(ordered, key=lambda one: (one.reason, one.status)):
        alike = list(group)
        message = max((one.message for one in alike), key=len)
        table.add_row(
            "\n".join(one.type for one in alike),
            Text(status.value, style=_STYLES[status]),
            "\n".join(durations.short(view.now - one.last_transition_time) for one in alike),
            Text(reason if said is not None and said.reason == reason else f"{reason}: {message}"),
        )
    return table
