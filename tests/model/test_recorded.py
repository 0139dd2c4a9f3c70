"""The model gives the recorded answers of the Java classes, and a wrong model does not."""

import pytest

from streamapp.core.assignors import java_order, sticky
from streamapp.core.facts.ids import ProcessId
from streamapp.simulator import stock
from tests.model import recorded
from tests.model.kinds import KINDS, LEARNER, STICKY, STOCK, Kind

ALL = [(kind, version) for kind in KINDS for version in recorded.versions_of(kind)]


def differing(kind: Kind, version: str) -> int:
    return sum(kind.answer(case, version) != java for case, java in recorded.read(kind, version))


@pytest.mark.parametrize(("kind", "version"), ALL, ids=lambda it: it if isinstance(it, str) else it.name)
def test_the_model_gives_the_recorded_answers(kind: Kind, version: str) -> None:
    cases = recorded.read(kind, version)
    assert len(cases) == recorded.NUMBER
    for case, java in cases:
        assert kind.answer(case, version) == java


def test_the_sample_notices_process_ids_in_the_order_of_their_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProcessId, "__lt__", lambda one, other: str(one) < str(other))
    assert differing(STOCK, "4.2.1") > 0


@pytest.mark.parametrize("version", ["3.1.2", "3.2.3"])
def test_the_sample_notices_the_answers_of_another_release(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stock.Release, "of", lambda _: stock.Release.FROM_3_3)
    assert differing(STOCK, version) > 0


@pytest.mark.parametrize("version", ["4.2.1", "4.2.2"])
def test_the_sample_notices_the_answers_of_another_broker(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sticky.BrokerRelease, "of", lambda _: sticky.BrokerRelease.FROM_4_4)
    assert differing(STICKY, version) > 0


def test_the_sample_notices_members_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_order, "_bucket", lambda of, capacity: -of % capacity)
    assert differing(STICKY, "4.4.0") > 0


def test_the_sample_notices_an_assignor_that_never_balances(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamapp.simulator.learner.assignment.plan_balance", lambda _: None)
    assert differing(LEARNER, "4.2.1") > 0
