"""The one console of the lab: where steps, tables and errors are shown.

Progress goes to standard error and results to standard output, so that a table can be piped.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from lab.errors import LabError

progress = Console(stderr=True, highlight=False)
"""Steps, spinners and errors."""
results = Console(highlight=False)
"""What was asked for: tables, logs, figures."""


@contextmanager
def step(title: str) -> Iterator[None]:
    """Show that `title` is under way, then how long it took: a spinner on a terminal, plain lines elsewhere."""
    started = time.monotonic()
    try:
        if progress.is_terminal:
            with progress.status(f"{title} …"):
                yield
        else:
            progress.print(f"… {title}")
            yield
    except BaseException:
        progress.print(f"[red]✗[/] {title}  [dim]{time.monotonic() - started:.1f} s[/]")
        raise
    progress.print(f"[green]✓[/] {title}  [dim]{time.monotonic() - started:.1f} s[/]")


def show_error(error: LabError) -> None:
    """Print an error in its three parts."""
    progress.print(f"[bold red]error:[/] {error.what}", soft_wrap=True)
    progress.print(f"  [bold]cause:[/] {error.why}", soft_wrap=True, markup=False)
    progress.print(f"  [bold]next:[/]  {error.next_step}", soft_wrap=True, markup=False)
    sys.stderr.flush()
