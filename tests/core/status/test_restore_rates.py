"""Only a process that is far behind shows how fast it restores."""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from streamapp.core.facts.agent_reports import AgentReport, AgentsSeen, EndsAfter, LocalTask
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.lag import EndsUnreadable
from streamapp.core.status.restore_rates import restore_rates
from tests.support import example

SEEN_AT = example.NOW
TASK = example.task(0)
STORE = "counts"


def a_report(position: int, seconds_ago: float, sequence: int, incarnation: str = "i-1") -> AgentReport:
    one = example.report(example.members(1, standbys=False)[0])
    local = LocalTask(id=TASK, is_active=False, state=None, positions={STORE: position})
    changes = {"tasks": (local,), "sequence": sequence, "incarnation": incarnation}
    return _changed(one, {**changes, "as_of": SEEN_AT - timedelta(seconds=seconds_ago)})


def _changed(report: AgentReport, changes: Mapping[str, object]) -> AgentReport:
    fields = {name: getattr(report, name) for name in AgentReport.__dataclass_fields__}
    return AgentReport(**{**fields, **changes})


LOOKS_APART = timedelta(seconds=4)


def seen(*reports: AgentReport, input_rate: int = 0) -> AgentsSeen:
    """What was heard, with two looks at ends; so many records a second come into the changelog."""
    earlier = example.ends(SEEN_AT - LOOKS_APART, example.END - int(input_rate * LOOKS_APART.total_seconds()))
    ends = (example.ends(SEEN_AT), earlier)
    return AgentsSeen({Ordinal(0): reports}, tuple(EndsAfter(one.read_at, one) for one in ends))


def test_the_rate_is_what_was_applied_between_two_reports() -> None:
    found = restore_rates(seen(a_report(500_000, 1, 2), a_report(300_000, 3, 1)), example.task_set())
    assert found == {Ordinal(0): 100_000}


@pytest.mark.parametrize(
    ("now", "before", "why"),
    [
        (a_report(example.END, 1, 2), a_report(300_000, 3, 1), "it has caught up"),
        (a_report(300_000, 1, 2), a_report(300_000, 3, 1), "it stands"),
        (a_report(500_000, 1, 2), a_report(300_000, 1.2, 1), "too short a time"),
        (a_report(500_000, 1, 2, "i-2"), a_report(300_000, 3, 1), "another JVM"),
    ],
)
def test_nothing_is_learned_where(now: AgentReport, before: AgentReport, why: str) -> None:
    assert restore_rates(seen(now, before), example.task_set()) == {}, why


def test_a_copy_that_follows_its_input_some_seconds_behind_says_nothing() -> None:
    """Each look finds it behind, since the ends are read later than its position."""
    behind = example.END - 80
    reports = a_report(behind, 1, 2), a_report(behind - 16, 3, 1)
    assert restore_rates(seen(*reports, input_rate=8), example.task_set()) == {}


def test_a_restore_beside_an_input_is_as_fast_as_it_is() -> None:
    reports = a_report(500_000, 1, 2), a_report(300_000, 3, 1)
    assert restore_rates(seen(*reports, input_rate=1_000), example.task_set()) == {Ordinal(0): 100_000}


def test_nothing_is_learned_without_two_reports_and_two_looks_at_ends() -> None:
    one, other = a_report(500_000, 1, 2), a_report(300_000, 3, 1)
    assert restore_rates(seen(one), example.task_set()) == {}
    words = {Ordinal(0): (one, other)}
    looks = EndsAfter(SEEN_AT, example.ends(SEEN_AT)), EndsAfter(SEEN_AT - LOOKS_APART, EndsUnreadable("no answer"))
    assert restore_rates(AgentsSeen(words, looks[:1]), example.task_set()) == {}
    assert restore_rates(AgentsSeen(words, looks), example.task_set()) == {}
    assert restore_rates(AgentsSeen(words, looks[1:]), example.task_set()) == {}
