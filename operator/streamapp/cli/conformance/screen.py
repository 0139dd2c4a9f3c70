"""The report of a run: one line for each question, and below it what to do. Pure."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from streamapp.cli.conformance.rows import Result, Row
from streamapp.cli.text.sanitize import plain

_STYLES = {Result.PASS: "green", Result.FAIL: "bold red", Result.NOT_TRIED: "yellow"}


def report_screen(rows: Sequence[Row], left: Sequence[str]) -> RenderableType:
    """Show the rows, the counts, and what is left on the cluster."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("check", no_wrap=True)
    table.add_column("result", no_wrap=True)
    table.add_column("asked and seen", overflow="fold")
    told: set[str] = set()
    for row in rows:
        words = Text(row.question.asked, style="dim")
        # After a failure the other rows have one reason and one next step: once is enough.
        if row.result is not Result.NOT_TRIED or row.seen not in told:
            told.add(row.seen)
            words = Text.assemble(words, f"\n{plain(row.seen)}")
            if row.result is not Result.PASS:
                words.append("\nnext: ", style="dim").append(plain(row.next_step))
        table.add_row(row.question.value, Text(row.result.value, style=_STYLES[row.result]), words)
    counts = [f"{sum(row.result is result for row in rows)} {result.value}" for result in Result]
    return Group(table, Text(""), Text("; ".join(counts)), *(Text(f"left: {plain(one)}") for one in left))
