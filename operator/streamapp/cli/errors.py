"""The error of a command (object, cause and next step), and the exit codes. Imports nothing heavy."""

import os
from dataclasses import dataclass
from enum import IntEnum

import click

from streamapp.cli.text.sanitize import plain


class Exit(IntEnum):
    """The exit codes; they are API, and docs/command-line.md lists them."""

    FINE = 0
    FAILED = 1
    """Not found, not reachable, not allowed."""
    USAGE = 2
    """The command line itself is wrong; click sets this code."""
    IN_PROGRESS = 3
    """Only with --exit-code: held, converging, changing, paused, being deleted, or not answered yet."""
    NEEDS_ACTION = 4
    """Only with --exit-code: stalled, not ready, unknown, or the operator does not answer."""
    INTERRUPTED = 130
    """Ctrl-C. A watch ends with success instead."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that could not be read, where the command goes on without it."""

    why: str


@dataclass
class CliError(Exception):
    """A command failed."""

    what: str
    """The object."""
    why: str
    """The cause."""
    next_step: str
    """What the user can do."""

    def __str__(self) -> str:
        return f"{self.what}: {self.why} ({self.next_step})"

    def show(self) -> None:
        """Write the three parts to standard error."""
        colour = False if os.environ.get("NO_COLOR") else None
        for label, style, words in (
            ("error: ", "red", self.what),
            ("cause: ", None, self.why),
            ("next:  ", None, self.next_step),
        ):
            click.echo(click.style(label, fg=style, bold=True) + plain(words), err=True, color=colour)
