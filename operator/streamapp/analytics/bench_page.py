"""Figures as tables, at a terminal and in Markdown.

What `streamapp-analytics bench` and `make bench-analytics` show goes through here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Section:
    """One table, with what must be known to read it."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    names: int = 1
    """Columns that hold names, and no figures."""


def markdown(title: str, about: str, sections: Iterable[Section]) -> str:
    """A page that can be put under a heading of the second level."""
    told = [f"### {title}", "", about, ""]
    for one in sections:
        told += [f"#### {one.title}", "", *([one.note, ""] if one.note else [])]
        told += [_line(one.header), _line([*["---"] * one.names, *["---:"] * (len(one.header) - one.names)])]
        told += [*map(_line, one.rows), ""]
    return "\n".join(told)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def show(console: Console, title: str, about: str, sections: Iterable[Section]) -> None:
    """The same at a terminal."""
    console.print(title, style="bold")
    console.print(about)
    for one in sections:
        table = Table(*one.header, box=None, header_style="bold")
        for column in table.columns[one.names :]:
            column.justify = "right"
        for row in one.rows:
            table.add_row(*row)
        console.print()
        console.print(one.title, style="bold")
        if one.note:
            console.print(one.note, style="dim")
        console.print(table)


def runs(seconds: Sequence[float], digits: int = 1) -> str:
    """All runs, in their order."""
    return ", ".join(f"{one:.{digits}f}" for one in seconds)


def megabytes(size: float) -> str:
    """A size in millions of bytes."""
    return f"{size / 1e6:,.0f}" if size >= 1e7 else f"{size / 1e6:.1f}"
