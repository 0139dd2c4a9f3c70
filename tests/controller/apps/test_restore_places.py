"""The budget of learners in the process: which cluster an application is of, what a new process waits for, metrics."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from streamapp.controller.apps.apps import Application, ClusterAccess
from streamapp.controller.apps.memory import Memory
from streamapp.controller.apps.restore_places import LOOK_FIRST_SECONDS, RestorePlaces
from streamapp.controller.metrics import Metrics
from streamapp.core.actions.decision import RestoreClaim, RestoreNeed
from streamapp.core.facts.agent_reports import AgentSilent, AgentsSeen
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.snapshot import RestorePlace, Snapshot
from streamapp.kube.client.kinds import Key
from tests.builders import a_snapshot
from tests.support import example

A, B, C = (Key("demo", name) for name in "abc")
LEARNS = RestoreClaim(need=RestoreNeed.LEARNING, leaving=frozenset({Ordinal(2)}))
WAITS = RestoreClaim(need=RestoreNeed.WAITING)
RESTS = RestoreClaim()
SECRET = (("sasl.jaas.config", "password=hunter2"),)
PLAIN = a_snapshot()
HEARD = a_snapshot(agents=example.agents(example.members(3)))


class Clock:
    """Moved by the test."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def an_app(bootstrap: str = "kafka:9092", properties: tuple[tuple[str, str], ...] = ()) -> Application:
    access = ClusterAccess(bootstrap=bootstrap, properties=properties, application_id="any", topology="")
    return Application(Memory("uid"), cluster_access=access)


def places(most: int = 1, keys: tuple[Key, ...] = (), clock: Callable[[], float] | None = None) -> RestorePlaces:
    return RestorePlaces(most, lambda: keys, Metrics(), clock or Clock())


def asks(budget: RestorePlaces, key: Key, application: Application, snapshot: Snapshot = PLAIN) -> bool:
    """A pass that wants learners."""
    place = budget.with_place(key, application, snapshot).place
    budget.book(key, application, snapshot, LEARNS if place.is_free else WAITS)
    return place.is_free


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (an_app(), True),
        (an_app("kafka:9092 "), True),
        (an_app("kafka-2:9092"), False),
        (an_app(properties=SECRET), False),
        (Application(Memory("uid")), False),
    ],
)
def test_a_cluster_is_its_brokers_and_the_credentials(other: Application, is_same: bool) -> None:
    budget = places()
    assert asks(budget, A, an_app())
    assert asks(budget, B, other) is not is_same


def test_the_order_of_the_brokers_does_not_matter() -> None:
    budget = places()
    assert asks(budget, A, an_app("k1:9092,k2:9092"))
    assert not asks(budget, B, an_app("k2:9092, k1:9092"))


def test_without_a_limit_nothing_is_counted() -> None:
    budget = places(0)
    assert budget.with_place(A, an_app(), PLAIN).place == RestorePlace()
    assert all(asks(budget, key, an_app()) for key in (A, B, C))


def test_a_new_process_gives_no_place_away_before_it_has_seen_every_application() -> None:
    clock = Clock()
    budget = places(keys=(A, B, C), clock=clock)
    assert not asks(budget, A, an_app())
    assert not asks(budget, B, an_app())
    budget.book(C, an_app(), PLAIN, RESTS)
    assert [asks(budget, B, an_app()), asks(budget, A, an_app())] == [False, True]


def test_what_it_finds_under_way_counts_at_once_and_is_not_called_off() -> None:
    budget = places(keys=(A, B))
    new = budget.with_place(A, an_app(), HEARD)
    assert new.place == RestorePlace(is_free=False, most=1)
    budget.book(A, an_app(), new, LEARNS)
    found = RestorePlace(is_held=True, is_free=False, most=1)
    assert budget.with_place(A, an_app(), PLAIN).place == found, "B was not seen: it may be learning, too"
    assert not asks(budget, B, an_app())
    assert not asks(budget, B, an_app())
    budget.book(A, an_app(), HEARD, RESTS)
    assert asks(budget, B, an_app())


def silent(snapshot: Snapshot) -> Snapshot:
    assert snapshot.agents is not None
    words = {**snapshot.agents.words, Ordinal(1): (AgentSilent(Ordinal(1), "no answer"),)}
    return replace(snapshot, agents=AgentsSeen(words, snapshot.agents.ends))


@pytest.mark.parametrize(("snapshot", "is_known"), [(HEARD, True), (PLAIN, True), (silent(HEARD), False)])
def test_an_application_is_seen_when_all_its_agents_were_received(snapshot: Snapshot, is_known: bool) -> None:
    clock = Clock()
    budget = places(keys=(A, B), clock=clock)
    budget.with_place(A, an_app(), snapshot)
    budget.book(A, an_app(), snapshot, RESTS)
    budget.book(B, an_app(), PLAIN, WAITS)
    assert asks(budget, B, an_app()) is is_known
    clock.now += LOOK_FIRST_SECONDS
    assert asks(budget, B, an_app())


@pytest.mark.parametrize("most", [1, 3])
def test_a_process_that_has_looked_once_does_not_wait_for_streamapps_that_come_later(most: int) -> None:
    keys: list[Key] = [A]
    budget = RestorePlaces(most, lambda: keys, Metrics(), Clock())
    budget.book(A, an_app(), PLAIN, RESTS)
    budget.with_place(A, an_app(), PLAIN)
    keys.append(B)
    assert asks(budget, A, an_app())


def test_a_streamapp_of_another_installation_or_one_that_is_gone_is_not_waited_for() -> None:
    budget = places(keys=(A, B))
    budget.book(A, an_app(), PLAIN, RESTS)
    budget.leave(B)
    assert asks(budget, A, an_app())
    budget.leave(A)
    assert asks(budget, C, an_app())


def test_metrics_show_use_by_brokers_and_nothing_of_the_credentials() -> None:
    metrics = Metrics()
    clock = Clock()
    budget = RestorePlaces(1, tuple, metrics, clock)
    for key in (A, B, C):
        asks(budget, key, an_app("k2:9092,k1:9092", SECRET))
    asks(budget, Key("far", "a"), an_app("k1:9092,k2:9092"))
    text = metrics.text().decode()
    assert 'streamapp_restore_places_used{brokers="k1:9092,k2:9092"} 2.0' in text
    assert 'streamapp_restore_places_waiting{brokers="k1:9092,k2:9092"} 2.0' in text
    assert "hunter2" not in text
    for key in (A, B, C, Key("far", "a")):
        budget.leave(key)
    assert "k1:9092" not in metrics.text().decode()


def test_credentials_are_not_shown_where_a_cluster_is_printed() -> None:
    budget: Any = places()
    asks(budget, A, an_app(properties=SECRET))
    assert "hunter2" not in repr(budget._ledger.in_use(1_000.0))
