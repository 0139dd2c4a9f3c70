"""Downtime against the objective: in the metrics, by month in the status, and nothing that it could disturb."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest
from prometheus_client.parser import text_string_to_metric_families

from streamapp.api.v1alpha1.status import DowntimeStatus
from streamapp.controller.metrics import Metrics
from streamapp.controller.reconcile.downtime import DowntimeLedger, with_outages
from streamapp.flightrecord.changes import Look
from streamapp.flightrecord.outages import Cause, Outage, OutageLog
from streamapp.kube.client.kinds import Key
from tests.support.watched import Watched

KEY = Key("demo", "counter")
SECOND = timedelta(seconds=1)


def an_outage(at: str, seconds: float, task: str = "0_0", cause: Cause = Cause.CRASH, least: float = 0) -> Outage:
    ended = datetime.fromisoformat(f"2026-{at}").replace(tzinfo=UTC)
    return Outage(task, ended - seconds * SECOND, ended, least * SECOND, seconds * SECOND, cause)


def month(*outages: Outage, before: DowntimeStatus | None = None, tasks: int | None = 6) -> DowntimeStatus:
    found = with_outages(before, outages, tasks, "99.9")
    assert found is not None
    return found


def with_month(look: Look, downtime: DowntimeStatus) -> Look:
    """The pass, of a StreamApp whose status has these sums."""
    status = look.streamapp.status.model_copy(update={"downtime": downtime})
    return replace(look, streamapp=replace(look.streamapp, status=status))


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    families = text_string_to_metric_families(metrics.text().decode())
    found = [
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return found[0] if found else None


def test_a_month_adds_up_and_says_what_of_its_budget_is_used() -> None:
    """The example of docs/gold.md: 40 s of 15,552 s."""
    found = month(
        an_outage("11-03T10:00", 30, "0_1", Cause.SCALE, least=5), an_outage("11-03T11:00", 10, "0_2", least=10)
    )
    assert (found.month, found.count, found.at_least, found.at_most) == ("2026-11", 2, 15 * SECOND, 40 * SECOND)
    assert (found.longest, found.longest_task, found.budget_used) == (30 * SECOND, "0_1", "0.3%")
    assert [(one.cause, one.at_most) for one in found.by_cause] == [("scale", 30 * SECOND), ("crash", 10 * SECOND)]
    again = month(an_outage("11-30T10:00", 25), before=found)
    assert [(one.cause, one.at_most) for one in again.by_cause] == [("crash", 35 * SECOND), ("scale", 30 * SECOND)]
    assert month(an_outage("11-30T10:00", 25), tasks=None).budget_used is None


def test_a_new_month_begins_anew_and_an_older_outage_changes_it_no_more() -> None:
    november = month(an_outage("11-30T23:59", 30))
    december = month(an_outage("12-01T00:10", 2), before=november)
    assert (december.month, december.count, december.at_most) == ("2026-12", 1, 2 * SECOND)
    assert month(an_outage("11-30T23:58", 30), before=december) == december


def test_metrics_begin_at_zero_and_count_against_the_objective() -> None:
    metrics = Metrics()
    ledger, app = DowntimeLedger(metrics), Watched(objective={"availability": "99.95", "longestDowntime": "8s"})
    at = 0.0
    assert ledger.note(KEY, app.look(at)) is None
    for cause in Cause:
        assert value(metrics, "streamapp_downtime_task_seconds_total", cause=cause.value) == 0
    assert value(metrics, "streamapp_downtimes_over_objective_total") == 0
    assert value(metrics, "streamapp_downtime_budget_ratio") == pytest.approx(0.0005)
    app.restart(1)
    shown = None
    for at in range(5, 60, 5):
        shown = ledger.note(KEY, app.look(at))
    assert shown is not None
    assert (shown.count, shown.at_most, shown.longest) == (2, 10 * SECOND, 5 * SECOND)
    assert value(metrics, "streamapp_downtime_task_seconds_total", cause="crash") == 10
    assert value(metrics, "streamapp_task_seconds_total") == 6 * 55
    assert value(metrics, "streamapp_downtimes_over_objective_total") == 0
    app.restart(1)
    for at in range(70, 120, 5):
        ledger.note(KEY, app.look(at))
    assert value(metrics, "streamapp_downtimes_over_objective_total") == 2
    ledger.forget(KEY)
    metrics.forget(KEY.namespace, KEY.name)
    assert value(metrics, "streamapp_task_seconds_total") is None


def test_a_new_leader_goes_on_with_the_month_on_the_resource() -> None:
    known = month(an_outage("11-21T10:00", 30))
    ledger, app = DowntimeLedger(Metrics()), Watched()
    for at in range(0, 60, 5):
        if at == 10:
            app.restart(1)
        shown = ledger.note(KEY, with_month(app.look(at), known))
    assert shown is not None
    assert (shown.month, shown.count, shown.at_most) == ("2026-11", 3, 40 * SECOND)


def test_a_fault_of_the_ledger_ends_no_pass_and_keeps_the_sums() -> None:
    known = month(an_outage("11-21T10:00", 30))
    ledger, look = DowntimeLedger(Metrics()), with_month(Watched().look(0), known)
    with patch.object(OutageLog, "look", side_effect=ZeroDivisionError):
        assert ledger.note(KEY, look) == known
    assert ledger.note(KEY, look) == known
