"""Asks a person before something is written that cannot be taken back, or that is written to many at once."""

import sys

import click

from streamapp.cli.failures import CliError


def require_yes(what: str, question: str, *, yes: bool) -> bool:
    """Whether to go on: `--yes`, or what is answered on the terminal.

    Args:
        what: The object, for the error.
        question: Without its question mark and choices.
        yes: Whether it was said beforehand.

    Raises:
        CliError: There is nobody who could answer.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        raise CliError(what, "it is asked before this is done, and there is no terminal to answer at", "say --yes")
    return click.confirm(f"{question}?", default=False, err=True)
