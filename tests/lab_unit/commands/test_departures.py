"""What the benchmark of departures shows, and what it never leaves out."""

import pytest

from lab.commands.departures import TITLES, row
from lab.meter.counts import CountReport
from lab.scenarios.departures import KINDS, WAYS, Departure, Departures


def departures(gaps: list[float | None]) -> Departures:
    others = (Departure("standby", "rollout", 9.0, 99.0, 99.0),)
    killed = tuple(Departure("standby", "kill", 10.0 + turn, gap, 0.1) for turn, gap in enumerate(gaps))
    return Departures(KINDS["standby"], (*others, *killed), CountReport.__new__(CountReport))


def test_a_row_has_each_run_of_its_way_and_no_other() -> None:
    cells = dict(zip(TITLES, row(departures([0.5, 3.0, 0.75]), "kill"), strict=True))
    assert (cells["way"], cells["application"]) == ("kill", "standby")
    assert (cells["median (s)"], cells["worst (s)"], cells["each (s)"]) == ("0.75", "3.00", "0.50 3.00 0.75")
    assert (cells["quiet, worst (s)"], cells["to settled, median (s)"]) == ("0.10", "11")


def test_an_unknown_gap_leaves_no_median_and_no_worst() -> None:
    cells = dict(zip(TITLES, row(departures([0.5, None]), "kill"), strict=True))
    assert (cells["median (s)"], cells["worst (s)"], cells["each (s)"]) == ("unknown", "unknown", "0.50 unknown")


@pytest.mark.parametrize("way", WAYS)
def test_a_way_that_was_not_played_has_no_figure(way: str) -> None:
    empty = Departures(KINDS["plain"], (), CountReport.__new__(CountReport))
    assert row(empty, way)[2:] == ("unknown", "unknown", "", "unknown", "unknown")


def test_every_kind_is_known_by_its_own_name() -> None:
    assert all(name == kind.name for name, kind in KINDS.items())
