"""`streamapp-analytics`: runs the command line and turns whatever happens into an exit code."""

import os
import sys

import click
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from streamapp.analytics.commands import analytics
from streamapp.analytics.failures import AnalyticsError
from streamapp.analytics.session import first_line

FAILED, INTERRUPTED = 1, 130
NO_JAVA = AnalyticsError(
    "Spark",
    "its Java process ended in the middle of the run, as one does that is killed for the memory it takes",
    "nothing counts of what was not finished: start it again; --memory is its heap, beside which it needs 1 GiB more",
)
HEAP = "java.lang.OutOfMemoryError"


def show(error: AnalyticsError) -> None:
    """Write it to standard error in its three parts."""
    colour = False if os.environ.get("NO_COLOR") else None
    for label, style, words in (
        ("error: ", "red", error.what),
        ("cause: ", None, error.why),
        ("next:  ", None, error.next_step),
    ):
        click.echo(click.style(label, fg=style, bold=True) + words, err=True, color=colour)


def of_spark(error: Exception) -> AnalyticsError:
    """What went wrong in Spark, or with the process that it runs in."""
    if isinstance(error, ConnectionError) or (isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError)):
        return NO_JAVA
    step = "nothing counts of what was not finished; with --debug all of Spark's words show"
    if HEAP in str(error):
        step = "nothing counts of what was not finished; give it more by --memory, in the chart by analytics.memory"
    return AnalyticsError("Spark", first_line(error), step)


def main(arguments: list[str] | None = None) -> int:
    """Run; give the exit code: 0 fine, 1 failed, 2 wrong command line, 130 interrupted."""
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
