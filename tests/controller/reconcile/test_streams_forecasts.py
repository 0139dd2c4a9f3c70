"""The operator predicts a streams group by its brokers' assignor, and predicts nothing where that is not known."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from streamapp.controller.reconcile.forecasts import _made, _Settled
from streamapp.core.doctor.subject import Subject
from streamapp.core.facts.group import StandbySetting
from streamapp.flightrecord.forecasts import line
from streamapp.flightrecord.schema import ForecastClosedLine, ForecastLine
from streamapp.simulator.forecast.basis import Known
from streamapp.simulator.forecast.comparison import Forecast, compared
from tests.builders import NOW
from tests.core.doctor.subjects import a_patient, of_streams_protocol
from tests.support import example

HEAD = {"cluster": "lab", "namespace": "shop", "app": "orders", "uid": "u", "recorder": "pod_1"}


def forecast(subject: Subject, to: int) -> Forecast | None:
    settled = _Settled(subject.snapshot, subject.policy, Known(is_on_demand=False))
    return _made(settled, NOW, to, lambda: datetime.now(UTC))


def an_app(*, standbys: bool = True, **streams: Any) -> Subject:
    subject = a_patient(example.members(3, standbys=standbys))
    return of_streams_protocol(subject, **{"standbys": StandbySetting(int(standbys), is_set=True), **streams})


def closed(found: Forecast, owners: dict[Any, int]) -> ForecastClosedLine:
    made = line(HEAD, compared(found, NOW, NOW + timedelta(seconds=20), owners), NOW)
    assert isinstance(made, ForecastClosedLine)
    return made


def test_a_streams_group_is_predicted_by_its_brokers_assignor() -> None:
    found = forecast(an_app(), 2)
    assert found is not None
    made = line(HEAD, found, NOW)
    assert isinstance(made, ForecastLine)
    assert (made.assignor, made.moves, made.rebalances) == ("sticky", 2, 1)
    assert (made.fewest_moves, made.most_moves, made.uncertain_tasks) == (2, 2, 0)
    assert closed(found, found.outcome.owners).wrong_moves == 0
    wrong = {**found.outcome.owners, example.task(0): 1}
    assert closed(found, wrong).wrong_moves == 1


def test_a_task_that_can_end_on_several_pods_is_wrong_on_none_of_them() -> None:
    found = forecast(an_app(standbys=False), 5)
    assert found is not None
    assert found.outcome.ways is not None
    uncertain = found.outcome.ways.uncertain
    assert uncertain
    for task, pods in uncertain.items():
        for pod in pods:
            assert closed(found, {**found.outcome.owners, task: pod}).wrong_moves == 0
    task, pods = next(iter(uncertain.items()))
    (other, *_) = set(range(5)) - pods
    assert closed(found, {**found.outcome.owners, task: other}).wrong_moves == 1
    assert closed(found, found.outcome.owners).uncertain_tasks == len(uncertain)


@pytest.mark.parametrize("streams", [{"broker_release": None}, {"broker_release": "4.4", "assignor": "balanced"}])
def test_an_assignor_that_is_not_modelled_has_no_forecast(streams: dict[str, Any]) -> None:
    assert forecast(an_app(**streams), 2) is None


def test_a_classic_group_has_one_way() -> None:
    found = forecast(replace(a_patient()), 2)
    assert found is not None
    made = line(HEAD, found, NOW)
    assert isinstance(made, ForecastLine)
    assert (made.assignor, made.fewest_moves, made.uncertain_tasks) == ("stock", None, None)
