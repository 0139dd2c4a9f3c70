"""The entry scripts: `kubectl-streamapp`, which gives an exit code, and kubectl's completion."""

import os
import sys

import click

from streamapp.cli.app import streamapp
from streamapp.cli.completion import COMPLETE_VARIABLE, answer_kubectl
from streamapp.cli.errors import CliError, Exit
from streamapp.kube.client.deep_objects import allow_deep_objects


def main(arguments: list[str] | None = None) -> int:
    """Run a command; give one of the exit codes in `errors.Exit`."""
    allow_deep_objects()
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
        # The reader closed the pipe. Flushing the buffer at exit must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FINE
    except (click.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED


def complete() -> int:
    """Run `kubectl_complete-streamapp`."""
    return answer_kubectl(streamapp)


if __name__ == "__main__":
    sys.exit(main())
