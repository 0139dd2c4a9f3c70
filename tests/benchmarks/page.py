"""Figures as tables, at a terminal and in Markdown."""

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
    lines = [f"### {title}", "", about, ""]
    for section in sections:
        lines += [f"#### {section.title}", "", *([section.note, ""] if section.note else [])]
        rule = [*["---"] * section.names, *["---:"] * (len(section.header) - section.names)]
        lines += [*map(_line, (section.header, rule, *section.rows)), ""]
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def show(console: Console, title: str, about: str, sections: Iterable[Section]) -> None:
    """Print the page at a terminal."""
    console.print(title, style="bold")
    console.print(about)
    for section in sections:
        table = Table(*section.header, box=None, header_style="bold")
        for column in table.columns[section.names :]:
            column.justify = "right"
        for row in section.rows:
            table.add_row(*row)
        console.print()
        console.print(section.title, style="bold")
        if section.note:
            console.print(section.note, style="dim")
        console.print(table)


def runs(seconds: Sequence[float], digits: int = 1) -> str:
    """The seconds of all runs, in their order."""
    return ", ".join(f"{value:.{digits}f}" for value in seconds)


def megabytes(size: float) -> str:
    """A size in millions of bytes."""
    return f"{size / 1e6:,.0f}" if size >= 1e7 else f"{size / 1e6:.1f}"
