"""The files of a support bundle as a table: `bundle_screen(files)`. Pure."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from streamapp.cli.cluster.support_files import SupportFile
from streamapp.cli.model.phrases import counted
from streamapp.cli.text.redaction import REMOVED
from streamapp.cli.text.sanitize import plain

_KIB = 1024


def bundle_screen(files: Sequence[SupportFile]) -> RenderableType:
    """Every file with its size, the number of values that were removed, or why it could not be read."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("file", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("removed", justify="right", no_wrap=True)
    table.add_column("")
    for file in files:
        size = "" if file.unread else _size(len(file.text.encode()))
        removed = str(file.removed) if file.removed else ""
        table.add_row(plain(file.path), size, removed, Text(plain(file.unread), style="magenta"))
    return Group(table, Text(""), Text(_summary(files)))


def _summary(files: Sequence[SupportFile]) -> str:
    removed, unread = sum(file.removed for file in files), sum(1 for file in files if file.unread)
    parts = [f"{counted(removed, 'value')} replaced by {REMOVED}"]
    if unread:
        parts.append(f"{counted(unread, 'file')} not readable")
    return "; ".join(parts)


def _size(length: int) -> str:
    return f"{length} B" if length < _KIB else f"{length / _KIB:.0f} KiB"
