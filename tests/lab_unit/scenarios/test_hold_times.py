"""How long a hold took, and what was waited for, from two watches whose events are dated by one clock."""

import pytest

from lab.commands.holds import REASONS, TITLES, hold_row, reason_rows
from lab.errors import LabError
from lab.meter.counts import CountReport
from lab.scenarios.holds.hold_times import AIMS, KINDS, NOT_HELD, Hold, Holds, hold_of
from lab.scenarios.holds.timed_watch import Seen, TimedWatch

REASONS_SEEN = TimedWatch(
    [
        Seen(1.0, ("4", "False", "Converged")),
        Seen(10.0, ("2", "False", "Converged")),
        Seen(10.5, ("2", "True", "ConfirmingCoverage")),
        Seen(18.0, ("2", "True", "GroupChanged")),
        Seen(20.0, ("2", "True", "ConfirmingCoverage")),
        Seen(31.0, ("2", "False", "Converged")),
    ]
)
REPLICAS_SEEN = TimedWatch([Seen(1.0, ("4",)), Seen(17.5, ("3",)), Seen(17.9, ("3",)), Seen(22.0, ("2",))])


def test_a_hold_lasts_from_the_write_of_the_spec_to_the_last_write_of_replicas() -> None:
    found = hold_of(REASONS_SEEN, REPLICAS_SEEN)
    assert (found.seconds, found.steps) == (12.0, (7.5, 12.0))


def test_every_second_of_a_hold_belongs_to_the_reason_that_was_shown() -> None:
    found = hold_of(REASONS_SEEN, REPLICAS_SEEN)
    assert found.waits == {NOT_HELD: 0.5, "ConfirmingCoverage": 9.5, "GroupChanged": 2.0}
    assert sum(found.waits.values()) == found.seconds


def test_two_pods_that_go_together_are_one_step() -> None:
    together = TimedWatch([Seen(1.0, ("4",)), Seen(14.0, ("2",))])
    assert hold_of(REASONS_SEEN, together).steps == (4.0,)


def test_a_hold_that_was_not_seen_whole_is_no_figure() -> None:
    with pytest.raises(LabError, match="not seen whole"):
        hold_of(REASONS_SEEN, TimedWatch([Seen(1.0, ("4",))]))


def test_tables_have_every_hold_and_every_reason() -> None:
    held = (Hold(12.0, (12.0,), {"A": 12.0}), Hold(14.0, (14.0,), {"A": 10.0, "B": 4.0}))
    found = Holds("standby", held, CountReport.__new__(CountReport))
    cells = dict(zip(TITLES, hold_row(found), strict=True))
    assert (cells["held, median (s)"], cells["worst (s)"], cells["each (s)"]) == ("13.0", "14.0", "12.0 14.0")
    rows = [dict(zip(REASONS, row, strict=True)) for row in reason_rows(found)]
    assert [(row["shown as waited for"], row["mean (s)"], row["holds"]) for row in rows] == [
        ("A", "11.0", "2"),
        ("B", "2.0", "1"),
    ]


def test_every_kind_has_an_aim() -> None:
    assert set(AIMS) == set(KINDS)
