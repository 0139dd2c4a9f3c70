"""The month's budget is that of the StreamApp's own objective, in the report as in the status."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from streamapp.analytics.report.ledger import months
from streamapp.analytics.report.page import figures, html, make_report
from streamapp.analytics.report.tables import read_tables
from streamapp.controller.reconcile.downtime import with_outages
from streamapp.flightrecord.outages import Cause, Outage
from tests.analytics.support.handmade import DOWNTIME, demo


def lost(day: str, **more: object) -> dict[str, Any]:
    row = {"dt": day, "tasks": 6, "availability": 99.9, "task_s": 6.0, "n": 1, "at_least_s": 1.0, "at_most_s": 40.0}
    return {**row, "by_cause": {"crash": 40.0}, "worst_s": 40.0, "worst_task": "0_0", "open": 0, **more}


def test_the_budget_is_what_the_objective_leaves_of_the_calendar_month() -> None:
    """The example of docs/gold.md: however little of the month was watched."""
    (month,) = months([lost("2026-11-03")])
    assert month.budget_s == pytest.approx(15_552)
    assert month.burn == pytest.approx(40 / 15_552)
    assert f"{month.burn:.1%}" == "0.3%"


@pytest.mark.parametrize("availability", ["99.9", "95", "99.995"])
def test_the_status_and_the_report_use_the_same_part_of_the_same_budget(availability: str) -> None:
    ended = datetime(2026, 2, 3, tzinfo=UTC)
    stood = timedelta(minutes=40)
    found = with_outages(None, [Outage("0_0", ended - stood, ended, stood, stood, Cause.CRASH)], 7, availability)
    (month,) = months([lost("2026-02-03", tasks=7, availability=float(availability), at_most_s=2400.0)])
    assert found is not None
    assert month.burn is not None
    assert found.budget_used == f"{100 * month.burn:.1f}%"


def test_the_newest_objective_and_number_of_tasks_of_a_month_count() -> None:
    days = [lost("2026-11-01"), lost("2026-11-02", availability=99.0, tasks=12), lost("2026-11-03", tasks=None)]
    (month,) = months([{**days[0]}, days[1], {**days[2], "availability": None}])
    assert month.availability == 99.0
    assert month.budget_s == pytest.approx(0.01 * 12 * 30 * 86_400)


def test_without_an_objective_there_is_no_budget() -> None:
    (month,) = months([lost("2026-11-01", availability=None)])
    assert (month.availability, month.budget_s, month.burn) == (None, None, None)


@pytest.mark.parametrize("availability", [99.0, None])
def test_the_page_names_the_objective_or_says_that_there_is_none(
    availability: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DOWNTIME, "availability", availability)
    demo(tmp_path)
    report = make_report(read_tables(tmp_path, 30), datetime(2026, 11, 21, 11, tzinfo=UTC))
    text, first = html(report), figures(report)["applications"][0]
    says_so = any("the objective is not in the record" in note for note in first["not_known"])
    assert ("budget at 99 %" in text, "no objective" in text, says_so) == (
        (True, False, False) if availability else (False, True, True)
    )
    assert (first["months"][0]["budget_s"] is None) is (availability is None)
