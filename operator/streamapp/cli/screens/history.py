"""The history of a StreamApp as a table, the newest at the end. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from streamapp.cli.model.history.entries import HistoryEntry
from streamapp.cli.text import durations

_WIDE = 110


class _History:
    """The layout for one width."""

    def __init__(self, entries: Sequence[HistoryEntry], now: datetime) -> None:
        self._entries, self._now = entries, now

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give the table; in a narrow terminal the author stands before the message."""
        wide = options.max_width >= _WIDE
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("when" if wide else "when (UTC)", no_wrap=True)
        table.add_column("what", no_wrap=True)
        if wide:
            table.add_column("by", overflow="fold", max_width=36)
        table.add_column("", overflow="fold", ratio=1)
        for entry in self._entries:
            when = f"{durations.clock(entry.at)}, {durations.ago(entry.at, self._now)}" if wide else _short(entry.at)
            author = "" if wide or not entry.by or entry.by == "operator" else f"{entry.by}: "
            table.add_row(
                when,
                Text(entry.what, style="yellow" if entry.is_warning else ""),
                *([Text(entry.by)] if wide else []),
                Text(f"{author}{entry.message}"),
            )
        yield table


def _short(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%m-%d %H:%M:%S")


def history_screen(entries: Sequence[HistoryEntry], now: datetime) -> RenderableType:
    """Show at least one entry."""
    return _History(entries, now)
