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


def seen(*reports: AgentReport, ends: object = None) -> AgentsSeen:
    known = example.ends(SEEN_AT) if ends is None else ends
    return AgentsSeen({Ordinal(0): reports}, (EndsAfter(SEEN_AT, known),))  # type: ignore[arg-type]


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


def test_nothing_is_learned_without_two_reports_and_ends() -> None:
    one, other = a_report(500_000, 1, 2), a_report(300_000, 3, 1)
    assert restore_rates(seen(one), example.task_set()) == {}
    assert restore_rates(seen(one, other, ends=EndsUnreadable("no answer")), example.task_set()) == {}
