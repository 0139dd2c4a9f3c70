"""The one console of the lab: where steps, tables and errors are shown.

Progress goes to standard error and results to standard output, so that a table can be piped.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from lab.errors import LabError

progress = Console(stderr=True, highlight=False)
"""Steps, spinners and errors."""
results = Console(highlight=False)
"""What was asked for: tables, logs, figures."""


def show_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Show a table among the results."""
    table = Table(*titles, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*row)
    results.print(table)


@contextmanager
def step(title: str) -> Iterator[None]:
    """Show that `title` is under way, then how long it took: a spinner on a terminal, plain lines elsewhere."""
    with timed(title):
        if progress.is_terminal:
            with progress.status(f"{title} …"):
                yield
        else:
            yield


@contextmanager
def counted(title: str, total: int, unit: str, every: float = 20.0) -> Iterator[Callable[[], None]]:
    """Show how much of something long is done; the caller calls what it is given once per `unit` done.

    A bar with the time left on a terminal, elsewhere a line every `every` seconds. `total` may be an upper bound:
    what a tool has in its own cache it never reports as done.
    """
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=progress, transient=True, disable=not progress.is_terminal)
    started = said = time.monotonic()
    done = 0
    with timed(title), bar:
        task = bar.add_task(title, total=total)

        def advance() -> None:
            nonlocal done, said
            done += 1
            bar.advance(task)
            now = time.monotonic()
            if not progress.is_terminal and now - said >= every:
                said = now
                minutes = (now - started) * max(total - done, 0) / done / 60
                progress.print(f"  {done} of {total} {unit}, at most {minutes:.1f} min left")

        yield advance


@contextmanager
def timed(title: str) -> Iterator[None]:
    """Say how long a step took and how it ended; off a terminal, where nothing moves, also that it has begun."""
    started = time.monotonic()
    if not progress.is_terminal:
        progress.print(f"… {title}")
    try:
        yield
    except BaseException:
        progress.print(f"[red]✗[/] {title}  [dim]{time.monotonic() - started:.1f} s[/]")
        raise
    progress.print(f"[green]✓[/] {title}  [dim]{time.monotonic() - started:.1f} s[/]")


def show_error(error: LabError) -> None:
    """Print an error in its three parts. They are shown as they are: a tool's words may look like markup."""
    for label, style, words in (
        ("error: ", "bold red", error.what),
        ("  cause: ", "bold", error.why),
        ("  next:  ", "bold", error.next_step),
    ):
        progress.print(Text.assemble((label, style), words), soft_wrap=True)
    sys.stderr.flush()
