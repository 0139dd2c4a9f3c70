"""The options of `streamapp-analytics` that say where tables lie and how Spark runs, checked before it starts.

Called by the commands; starts nothing.
"""

import functools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from streamapp.analytics.spark.cluster import WORKER_SECONDS

Command = TypeVar("Command", bound=Callable[..., Any])
FOLDER = click.Path(path_type=Path)
OUTPUT = click.Path(path_type=Path, dir_okay=False)
ROOT = click.option("--root", type=FOLDER, required=True, help="Folder of the tables.")
LEAST_HEAP = 512
"""MiB: Spark refuses less than 450 of what Java counts, which leaves out one survivor space."""


def _heap(_: click.Context, __: click.Parameter, told: str) -> str:
    """A size that Java takes, and that Spark begins with: either would end in a stack trace."""
    size = re.fullmatch(r"(\d+)([mg])", told.strip().lower())
    if not size:
        raise click.BadParameter(f"{told!r} is no size; name one as in 2g or 1500m")
    if int(size[1]) * {"m": 1, "g": 1024}[size[2]] < LEAST_HEAP:
        raise click.BadParameter(f"Spark does not start with {told}; {LEAST_HEAP}m is the least")
    return size[0]


def engine_options(command: Command) -> Command:
    """The options that say how Spark runs."""
    options: Sequence[Callable[[Command], Command]] = (
        click.option("--master", default="", help="Where Spark runs; all cores of this machine unless given."),
        click.option(
            "--memory",
            default="2g",
            show_default=True,
            callback=_heap,
            metavar="SIZE",
            help="Heap of Spark's driver, as in 2g or 1500m; at least 512m.",
        ),
        click.option(
            "--archive",
            type=FOLDER,
            envvar="STREAMAPP_CLASS_ARCHIVE",
            help="AppCDS archive: used if it exists, else written at the end.",
        ),
        click.option(
            "--wait",
            default=WORKER_SECONDS,
            show_default=True,
            help="Seconds until a cluster's workers must be at work.",
        ),
        click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark's; may be repeated."),
        click.option("--small", is_flag=True, help="Start sooner, compute slower: for a record of minutes or hours."),
        click.option("--debug", is_flag=True, help="Show all of Spark's words when it fails."),
    )
    return functools.reduce(lambda done, option: option(done), reversed(options), command)


def pairs(given: tuple[str, ...], option: str) -> dict[str, str]:
    """Settings given as NAME=VALUE; `option` is what they were given by."""
    odd = [one for one in given if "=" not in one]
    if odd:
        raise click.BadParameter(f"{odd[0]} has no =", param_hint=option)
    return dict(one.split("=", 1) for one in given)
