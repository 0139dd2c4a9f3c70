"""Asks the user before a write that cannot be undone, or a write to many StreamApps."""

import sys

import click

from streamapp.cli.errors import CliError


def require_yes(what: str, question: str, *, yes: bool) -> None:
    """Return after `--yes`, or after a yes on the terminal. Call this outside an event loop, which swallows Ctrl-C.

    Args:
        what: The object, for the error.
        question: Without its question mark and choices.
        yes: Whether the command line has `--yes`.

    Raises:
        CliError: The answer was no, or there is no terminal.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise CliError(what, "this needs a confirmation, and there is no terminal to ask on", "add --yes")
    if not click.confirm(f"{question}?", default=False, err=True):
        raise CliError(what, "the answer was no; nothing was written", "no action needed")
