"""Long answers on a terminal go through the pager, short ones and those in a pipe do not."""

import io
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from streamapp.cli.text import console


class Terminal:
    """A terminal of 24 lines, or a pipe, and what was paged."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> None:
        self.paged: list[str] = []
        self.file = io.StringIO()
        made = Console(file=self.file, width=80, height=24, force_terminal=terminal, color_system=None)
        monkeypatch.setattr(console, "console", lambda: made)
        monkeypatch.setattr("rich.pager.SystemPager.show", lambda _, content: self.paged.append(content))
        monkeypatch.setattr("sys.stdin", _Stdin(terminal=terminal))


class _Stdin(io.StringIO):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def lines(number: int) -> Any:
    return Text("\n".join(f"line {one}" for one in range(number)))


def test_what_is_longer_than_the_terminal_is_paged(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch, terminal=True)
    console.show_paged(lines(30))
    (paged,) = terminal.paged
    assert "line 29" in paged


def test_what_fits_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch, terminal=True)
    console.show_paged(lines(10))
    assert terminal.paged == []
    assert "line 9" in terminal.file.getvalue()


def test_a_pipe_gets_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(monkeypatch, terminal=False)
    console.show_paged(lines(5_000))
    assert terminal.paged == []
    assert terminal.file.getvalue().count("\n") == 5_000
