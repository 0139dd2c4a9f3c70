"""Progress off a terminal is lines, not a bar that nobody sees moving."""

import pytest

from lab.terminal import counted


def test_off_a_terminal_counting_prints_lines_with_the_time_left_at_most(capsys: pytest.CaptureFixture[str]) -> None:
    with counted("Build it", 4, "packages", every=0) as advance:
        advance()
        advance()
    first, one, two, last = capsys.readouterr().err.splitlines()
    assert (first, one, two) == (
        "… Build it",
        "  1 of 4 packages, at most 0.0 min left",
        "  2 of 4 packages, at most 0.0 min left",
    )
    assert last.startswith("✓ Build it")


def test_lines_come_only_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    with counted("Build it", 1000, "packages", every=3600) as advance:
        for _ in range(1000):
            advance()
    assert len(capsys.readouterr().err.splitlines()) == 2
