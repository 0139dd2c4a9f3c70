"""`kubectl-streamapp`: runs the command line and turns whatever happens into an exit code."""

import os
import sys

import click

from streamapp.cli.app import streamapp
from streamapp.cli.completion import COMPLETE_VARIABLE
from streamapp.cli.errors import CliError, Exit


def main(arguments: list[str] | None = None) -> int:
    """Run; give the exit code, as `failures.Exit` lists them."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal of another encoding gets a replacement, not a stack trace.
        getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
    try:
        # Without its own error handling click gives the code of an `Exit` back and raises everything else.
        return int(
            streamapp(arguments, prog_name="kubectl streamapp", complete_var=COMPLETE_VARIABLE, standalone_mode=False)
            or 0
        )
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except CliError as error:
        error.show()
        return Exit.FAILED
    except BrokenPipeError:
        # Whoever read has seen enough; what is still buffered must not fail at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FINE
    except (click.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
