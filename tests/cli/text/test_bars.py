import io

import pytest
from rich.console import Console

from streamapp.cli.text.bars import Bar


def drawn(share: float, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    Console(file=file, width=40).print(Bar(share, 8, "cyan"))
    file.flush()
    return raw.getvalue().decode(encoding).rstrip("\n")


@pytest.mark.parametrize(
    ("share", "bar"),
    [
        (0, "────────"),
        (0.001, "╸───────"),
        (0.25, "━━──────"),
        (0.3, "━━╸─────"),
        (0.999, "━━━━━━━╸"),
        (1, "━━━━━━━━"),
        (7, "━━━━━━━━"),
        (-1, "────────"),
    ],
)
def test_a_bar_is_neither_empty_nor_full_before_it_is(share: float, bar: str) -> None:
    assert drawn(share) == bar


def test_where_there_is_only_ascii_it_is_drawn_in_ascii() -> None:
    assert drawn(0.5, "ascii") == "####----"
