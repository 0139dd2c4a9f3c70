"""`streamapp-analytics`: runs the command line and turns whatever happens into an exit code."""

import logging
import os
import signal
import sys

import click
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from streamapp.analytics.cli import analytics
from streamapp.analytics.errors import AnalyticsError
from streamapp.analytics.spark.session import of_spark

FAILED, INTERRUPTED = 1, 130


def show(error: AnalyticsError) -> None:
    """Write it to standard error in its three parts."""
    colour = False if os.environ.get("NO_COLOR") else None
    for label, style, words in (
        ("error: ", "red", error.what),
        ("cause: ", None, error.why),
        ("next:  ", None, error.next_step),
    ):
        click.echo(click.style(label, fg=style, bold=True) + words, err=True, color=colour)


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether it is not what Py4J says, with a stack trace, when Java or this program ends in the middle of a call."""
    return not record.getMessage().endswith("while sending command.")


def main(arguments: list[str] | None = None) -> int:
    """Run; give the exit code: 0 fine, 1 failed, 2 wrong command line, 130 interrupted."""
    logging.getLogger().addFilter(_is_ours)
    # As the first process of a container it would not even end, but be killed with what it had begun half a minute on.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return int(analytics(arguments, prog_name="streamapp-analytics", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except AnalyticsError as error:
        show(error)
    except (PySparkException, Py4JError, ConnectionRefusedError, ConnectionResetError) as error:
        show(of_spark(error))
        if "--debug" in (sys.argv if arguments is None else arguments):
            raise
    except OSError as error:
        where = str(error.filename or "the output")
        show(AnalyticsError(where, error.strerror or str(error), "choose a folder that this user can write to"))
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
