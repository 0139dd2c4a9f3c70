"""Asks a person before something is written that cannot be taken back, or that is written to many at once."""

import sys

import click

from streamapp.cli.errors import CliError


def require_yes(what: str, question: str, *, yes: bool) -> None:
    """Go on after `--yes`, or after a yes on the terminal. Not to be called within an event loop.

    Args:
        what: The object, for the error.
        question: Without its question mark and choices.
        yes: Whether it was said beforehand.

    Raises:
        CliError: The answer was no, or there is nobody who could answer.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise CliError(what, "it is asked before this is done, and there is no terminal to answer at", "say --yes")
    if not click.confirm(f"{question}?", default=False, err=True):
        raise CliError(what, "the answer was no; nothing was written", "nothing is to be done")
