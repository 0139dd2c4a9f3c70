"""The ledger of the budget of learners: never more than there are places, the longest waiting first, none lost."""

from collections.abc import Iterable
from itertools import permutations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from streamapp.controller.apps.restore_ledger import (
    ASKS_SECONDS,
    LONGEST_SECONDS,
    REMEMBERED_SECONDS,
    STALLED_SECONDS,
    RestoreLedger,
)
from streamapp.core.actions.decision import RestoreClaim, RestoreNeed
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.snapshot import RestorePlace
from streamapp.kube.client.kinds import Key

A, B, C, D = (Key("demo", name) for name in "abcd")
EVERY = 5.0
"""Seconds between two questions of an application that waits."""
WAITS = RestoreClaim(need=RestoreNeed.WAITING)
RESTS = RestoreClaim()


def learns(records: int | None = 100, *leaving: int) -> RestoreClaim:
    return RestoreClaim(
        need=RestoreNeed.LEARNING, leaving=frozenset(map(Ordinal, leaving or (2,))), records_to_go=records
    )


def asks(ledger: RestoreLedger, key: Key, now: float, cluster: str = "one", records: int | None = 100) -> bool:
    """A pass of an application that wants to learn: it begins, goes on, or waits."""
    is_free = ledger.place(cluster, key, now).is_free
    ledger.book(cluster, key, learns(records) if is_free else WAITS, now, is_free=is_free)
    return is_free


def test_places_are_given_until_there_are_none_and_then_it_says_how_many_are_ahead() -> None:
    ledger = RestoreLedger(2)
    assert [asks(ledger, key, 0) for key in (A, B, C, D)] == [True, True, False, False]
    assert ledger.place("one", D, 1) == RestorePlace(is_held=False, is_free=False, ahead=3, most=2)
    assert ledger.place("one", A, 1) == RestorePlace(is_held=True, is_granted=True, is_free=True, ahead=3, most=2)
    assert (ledger.in_use(1), ledger.waiting(1)) == ({"one": 2}, {"one": 2})


def test_another_cluster_has_places_of_its_own() -> None:
    ledger = RestoreLedger(1)
    assert [asks(ledger, A, 0), asks(ledger, B, 0, "two"), asks(ledger, C, 0, "two")] == [True, True, False]


def test_the_longest_waiting_is_next_and_who_comes_later_does_not_pass_it() -> None:
    ledger = RestoreLedger(1)
    for now, key in enumerate((A, B, C)):
        asks(ledger, key, now)
    ledger.book("one", A, RESTS, 3, is_free=False)
    assert [asks(ledger, key, 4) for key in (C, D, A, B)] == [False, False, False, True]
    ledger.book("one", B, RESTS, 5, is_free=False)
    assert [asks(ledger, key, 6) for key in (A, D, C)] == [False, False, True]


def test_what_has_begun_takes_a_place_even_where_there_is_none_and_others_wait_for_all_of_them() -> None:
    ledger = RestoreLedger(1)
    for key in (A, B):
        ledger.book("one", key, learns(), 0, is_free=False)
    assert ledger.in_use(0) == {"one": 2}
    ledger.book("one", A, RESTS, 1, is_free=False)
    assert not asks(ledger, C, 1)
    ledger.book("one", B, RESTS, 2, is_free=False)
    assert asks(ledger, C, 2)


def test_what_was_only_found_to_be_under_way_begins_nothing_more_until_there_is_a_place() -> None:
    ledger = RestoreLedger(1)
    for key in (A, B):
        ledger.book("one", key, learns(), 0, is_free=False)
    for key in (A, B):
        assert ledger.place("one", key, 1) == RestorePlace(is_held=True, is_free=False, ahead=1, most=1)
    asks(ledger, C, 1)
    ledger.book("one", A, WAITS, 2, is_free=False)
    assert ledger.place("one", B, 3).is_free, "the last one that holds a place has that place, whoever waits"
    ledger.book("one", B, learns(), 3, is_free=True)
    ledger.book("one", A, learns(), 4, is_free=False)
    assert ledger.place("one", B, 5) == RestorePlace(is_held=True, is_granted=True, ahead=2, most=1)
    assert not ledger.place("one", A, 5).is_free


@pytest.mark.parametrize("records", [100, None, 101])
def test_learners_without_progress_give_their_place_back_for_good_and_are_not_called_off(records: int | None) -> None:
    ledger = RestoreLedger(1)
    asks(ledger, A, 0)
    ledger.book("one", A, learns(records), STALLED_SECONDS - 1, is_free=True)
    assert not asks(ledger, B, STALLED_SECONDS - 1)
    assert asks(ledger, B, STALLED_SECONDS)
    ledger.book("one", A, learns(1), STALLED_SECONDS + 1, is_free=True)
    assert ledger.place("one", A, STALLED_SECONDS + 2).is_free
    assert ledger.in_use(STALLED_SECONDS + 2) == {"one": 1}


def test_progress_keeps_the_place_but_not_for_ever() -> None:
    ledger, now, records = RestoreLedger(1), 0.0, 10.0**12
    while now < LONGEST_SECONDS:
        ledger.book("one", A, learns(round(records)), now, is_free=True)
        assert not asks(ledger, B, now)
        now, records = now + STALLED_SECONDS / 2, records * 0.8
    assert asks(ledger, B, now)


def test_the_next_pods_of_a_drain_are_progress_and_noise_is_none() -> None:
    ledger = RestoreLedger(1)
    ledger.book("one", A, learns(1_000), 0, is_free=True)
    ledger.book("one", A, learns(50_000, 1), 400, is_free=True)
    ledger.book("one", A, learns(49_999, 1), 800, is_free=True)
    assert not asks(ledger, B, 400 + STALLED_SECONDS - 1)
    assert asks(ledger, B, 400 + STALLED_SECONDS)


def test_who_does_not_ask_lets_others_pass_and_finds_its_turn_again() -> None:
    ledger = RestoreLedger(1)
    for key in (A, B):
        asks(ledger, key, 0)
    asks(ledger, C, 1)
    ledger.book("one", A, RESTS, 2, is_free=False)
    assert not asks(ledger, C, ASKS_SECONDS)
    assert asks(ledger, C, ASKS_SECONDS + 1)
    asks(ledger, D, ASKS_SECONDS + 2)
    asks(ledger, B, ASKS_SECONDS + 3)
    ledger.book("one", C, RESTS, ASKS_SECONDS + 4, is_free=False)
    assert [asks(ledger, D, ASKS_SECONDS + 5), asks(ledger, B, ASKS_SECONDS + 5)] == [False, True]


def test_a_turn_is_forgotten_at_last() -> None:
    ledger = RestoreLedger(1)
    asks(ledger, A, 0)
    asks(ledger, B, 0)
    ledger.book("one", A, learns(1), REMEMBERED_SECONDS, is_free=True)
    asks(ledger, C, REMEMBERED_SECONDS)
    asks(ledger, B, REMEMBERED_SECONDS + 1)
    assert ledger.place("one", B, REMEMBERED_SECONDS + 1).ahead == 2


def test_an_application_that_is_gone_gives_place_and_turn_back() -> None:
    ledger = RestoreLedger(1)
    asks(ledger, A, 0)
    asks(ledger, B, 0)
    ledger.forget(A)
    ledger.forget(B)
    assert asks(ledger, C, 0)


def test_other_credentials_are_another_cluster_and_the_place_goes_along() -> None:
    ledger = RestoreLedger(1)
    asks(ledger, A, 0)
    assert ledger.place("two", A, 1).is_held
    ledger.book("two", A, learns(), 1, is_free=True)
    assert (asks(ledger, B, 1), asks(ledger, C, 1, "two")) == (True, False)


# Laws.


class Fleet(RuleBasedStateMachine):
    """Applications of two clusters that want learners, have them, end, stall, pause, are deleted and come again."""

    keys = st.sampled_from([A, B, C, D, *(Key("far", name) for name in "abc")])

    def __init__(self) -> None:
        super().__init__()
        self.ledger, self.now = RestoreLedger(2), 0.0
        self.waiting: list[tuple[str, Key, float]] = []
        """Who asked without success, in their order, and when last."""

    def _drop(self, key: Key) -> None:
        self.waiting = [one for one in self.waiting if one[1] != key]

    @rule(key=keys, records=st.none() | st.integers(0, 1_000))
    def asks(self, key: Key, records: int | None) -> None:
        cluster = key.namespace
        place = self.ledger.place(cluster, key, self.now)
        used = self.ledger.in_use(self.now).get(cluster, 0)
        if place.is_free and not place.is_held:
            assert used < 2
            before = [one for one in self.waiting if one[0] == cluster]
            mine = next((at for at, one in enumerate(before) if one[1] == key), len(before))
            patient = [one for one in before[:mine] if self.now - one[2] <= ASKS_SECONDS]
            assert used + len(patient) < 2, "an application was passed that has waited longer"
        if not place.is_free:
            turns = [one[1] for one in self.waiting if one[0] == cluster]
            if key not in turns:
                self._drop(key)
                self.waiting.append((cluster, key, self.now))
            self.waiting = [(where, who, self.now if who == key else at) for where, who, at in self.waiting]
        else:
            self._drop(key)
        claim = learns(records) if place.is_free else WAITS
        self.ledger.book(cluster, key, claim, self.now, is_free=place.is_free)

    @rule(key=keys)
    def ends(self, key: Key) -> None:
        self.ledger.book(key.namespace, key, RESTS, self.now, is_free=False)

    @rule(key=keys)
    def is_deleted(self, key: Key) -> None:
        self._drop(key)
        self.ledger.forget(key)

    @rule(seconds=st.sampled_from([1.0, EVERY, ASKS_SECONDS + 1, STALLED_SECONDS]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.waiting = [one for one in self.waiting if self.now - one[2] <= REMEMBERED_SECONDS]

    @invariant()
    def no_cluster_has_more_than_its_places(self) -> None:
        assert all(count <= 2 for count in self.ledger.in_use(self.now).values())

    @invariant()
    def no_place_is_lost(self) -> None:
        """A newcomer finds a place where fewer are used, and wait, than there are."""
        for cluster in ("demo", "far"):
            ahead = self.ledger.in_use(self.now).get(cluster, 0) + self.ledger.waiting(self.now).get(cluster, 0)
            place = self.ledger.place(cluster, Key("demo", "newcomer"), self.now)
            assert (place.ahead, place.is_free) == (ahead, ahead < 2)


Fleet.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
test_the_ledger_keeps_its_laws = Fleet.TestCase


@st.composite
def behaviours(draw: st.DrawFn) -> list[tuple[Key, float, bool]]:
    """Applications, when each begins to want learners, and whether its learners ever end."""
    count = draw(st.integers(2, 12))
    return [(Key("demo", str(number)), draw(st.floats(0, 60)), draw(st.booleans())) for number in range(count)]


WANTS_FROM = (6.0, 0.0, 1.0, 0.0, 1.0, 16.0, 0.0, 16.0, 0.0, 11.0)
PLACE_KEPT_FOR_THE_ELDER = [
    (Key("demo", str(number)), seconds, number in {2, 4, 6, 8}) for number, seconds in enumerate(WANTS_FROM)
]
"""Two places become free after the first application asked and before the last one does: each gets one of them."""


@example(apps=PLACE_KEPT_FOR_THE_ELDER, most=2, takes=1.0)
@settings(max_examples=60, deadline=None)
@given(apps=behaviours(), most=st.integers(1, 3), takes=st.floats(1, 120))
def test_each_application_has_its_turn_whatever_the_others_do(
    apps: list[tuple[Key, float, bool]], most: int, takes: float
) -> None:
    """Never more than so many at once, and all of them in the end, in the order in which they began to wait."""
    ledger, most_at_once = RestoreLedger(most), 0
    began: dict[Key, float] = {}
    for now in _seconds(len(apps) * (STALLED_SECONDS + takes) + 120):
        for key, wants_from, ends in apps:
            started = began.get(key)
            if now < wants_from or (started is not None and ends and now - started > takes):
                ledger.book("one", key, RESTS, now, is_free=False)
            elif asks(ledger, key, now):
                began.setdefault(key, now)
        most_at_once = max(most_at_once, ledger.in_use(now).get("one", 0))
        assert most_at_once <= most
        if len(began) == len(apps):
            break
    assert len(began) == len(apps)
    # Who asks in one round asks before or after a place becomes free in it. A place that is kept for an application
    # is taken when it asks again: by then one that came later may have taken the next place.
    rounds = {key: -(-wants_from // EVERY) for key, wants_from, _ in apps}
    pairs = [(one, other) for one, other in permutations(began, 2) if rounds[one] < rounds[other]]
    assert [pair for pair in pairs if began[pair[0]] > began[pair[1]] + EVERY] == []


def _seconds(until: float) -> Iterable[float]:
    now = 0.0
    while now < until:
        yield now
        now += EVERY
