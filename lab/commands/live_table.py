"""Shows a StreamApp while something happens to it: a live table on a terminal, elsewhere a line for each change."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from lab.scenarios.held_scale_in import Show
from lab.terminal import progress, timed
from streamapp.cli.screens.status import status_screen


@contextmanager
def watching(title: str) -> Iterator[Show]:
    """Give what shows a StreamApp under a title for as long as the step lasts."""
    with timed(title):
        if progress.is_terminal:
            yield from _live(title)
        else:
            yield _Lines().show


def _live(title: str) -> Iterator[Show]:
    spinner = Spinner("dots", Text(title))
    with Live(spinner, console=progress, refresh_per_second=8, transient=True) as live:
        yield lambda app: live.update(Group(spinner, "", status_screen(app, datetime.now(UTC))))


class _Lines:
    """Says in one line what has changed, and nothing where nothing has."""

    def __init__(self) -> None:
        self._said = ""

    def show(self, app: dict[str, Any]) -> None:
        line = change_line(app)
        if line != self._said:
            self._said = line
            progress.print(f"  {line}", style="dim", soft_wrap=True)


def change_line(app: dict[str, Any]) -> str:
    """Give the parts of a status that tell what is going on, without those that change with every look."""
    status = app.get("status", {})
    convergence, hold = status.get("convergence", {}), status.get("scaleDown")
    wished = app["spec"].get("replicas", 1)
    words = [
        f"desired {wished}, current {status.get('statefulSetReplicas', '-')}, ready {status.get('readyReplicas', 0)}"
    ]
    if "tasks" in convergence:
        words.append(f"tasks running {convergence.get('running', 0)} of {convergence['tasks']}")
    if "learners" in convergence:
        words.append(f"copies caught up {convergence.get('caughtUp', 0)} of {convergence['learners']}")
    if hold:
        words.append(f"held: {hold['reason']}, waiting for {hold['waitingFor']} tasks")
        words += [f"next to go: pod {hold['nextOrdinal']}"] if "nextOrdinal" in hold else []
    return "; ".join(words)
