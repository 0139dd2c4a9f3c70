"""Standard output: a rich console for people, JSON and YAML for programs."""

import json
import os
import sys
from enum import Enum
from typing import Any

import yaml
from rich.console import Console, RenderableType
from rich.segment import Segments

PIPED_WIDTH = 240
"""The width of a pipe: lines stay whole for grep."""


class Output(Enum):
    """The output format."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


def console() -> Console:
    """Standard output: colours on a terminal, unless NO_COLOR is set; wide in a pipe, unless COLUMNS is set."""
    piped = not sys.stdout.isatty() and not os.environ.get("COLUMNS")
    return Console(highlight=False, emoji=False, markup=False, width=PIPED_WIDTH if piped else None)


def show(renderable: RenderableType, to: Console | None = None) -> None:
    """Write a renderable; in a pipe without trailing spaces. An unbreakable line can exceed the width."""
    to = to or console()
    if to.is_terminal:
        to.print(renderable, crop=False)
        return
    with to.capture() as captured:
        to.print(renderable, crop=False)
    to.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
    to.file.flush()


def show_paged(renderable: RenderableType) -> None:
    """Write a renderable; through the pager if it does not fit into the terminal."""
    to = console()
    if not (to.is_terminal and sys.stdin.isatty()):
        show(renderable, to)
        return
    # One layout only: thousands of lines take seconds.
    laid_out = list(to.render(renderable))
    if sum(segment.text.count("\n") for segment in laid_out) < to.height:
        to.print(Segments(laid_out), crop=False, end="")
        return
    # Quits if it fits, keeps colours, leaves the text on the screen.
    os.environ.setdefault("LESS", "FRX")
    with to.pager(styles=True):
        to.print(Segments(laid_out), crop=False, end="")


def write(document: Any, output: Output, *, in_one_line: bool = False) -> None:
    """Write plain values; `in_one_line` for one of many documents."""
    if output is Output.JSON:
        text = json.dumps(document, indent=None if in_one_line else 2, ensure_ascii=False) + "\n"
    else:
        text = "---\n" * in_one_line + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
    sys.stdout.write(text)
    sys.stdout.flush()
