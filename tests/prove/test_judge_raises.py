"""A raise has a limit by what befell it, and one that is late is told."""

import random

import pytest

from tests.prove.calls import Switchboard
from tests.prove.judge_raises import WITHIN, During, RaiseJudge, during
from tests.prove.story import Disturbance


class Timed:
    """A judge, and the clock that it goes by."""

    def __init__(self) -> None:
        self.now = 0.0
        self.wrongs: list[str] = []
        board = Switchboard(lambda *_: False, random.Random(1))  # noqa: S311 (draws nothing here)
        self.judge = RaiseJudge(board, lambda: self.now, lambda _, what: self.wrongs.append(what))

    def raise_after(self, seconds: float, *befell: Disturbance) -> None:
        """Wish for 3 instead of 2 at second 100, when this befalls it; the StatefulSet follows so much later."""
        self.now = 100.0
        self.judge.wished(3, current=2)
        for one in befell:
            self.judge.struck(one)
        self.now += seconds
        self.judge.written(3)


CAUSES = {
    During.NOTHING: Disturbance("second", 3, "kill", 1),
    During.ERROR: Disturbance("write", 3, "500"),
    During.DEATH: Disturbance("kafka", 3, "freeze", 12),
    During.SILENCE: Disturbance("event", 3, "lost"),
}


@pytest.mark.parametrize("befell", CAUSES)
def test_a_raise_has_the_limit_of_the_worst_that_befell_it(befell: During) -> None:
    in_time, late = Timed(), Timed()
    in_time.raise_after(WITHIN[befell], CAUSES[During.NOTHING], CAUSES[befell])
    late.raise_after(WITHIN[befell] + 0.2, CAUSES[During.NOTHING], CAUSES[befell])
    assert (in_time.judge.delays, in_time.wrongs) == ([(befell, WITHIN[befell])], [])
    assert [befell in wrong for wrong in late.wrongs] == [True]


@pytest.mark.parametrize(("seconds", "is_late"), [(57.0, False), (57.2, True)])
def test_the_limit_of_a_raise_that_a_policy_denies_counts_from_the_end_of_the_policy(
    seconds: float, is_late: bool
) -> None:
    timed = Timed()
    timed.now = 90.0
    timed.judge.denied_for(50.0)
    timed.raise_after(seconds)
    assert (timed.judge.delays, bool(timed.wrongs)) == ([(During.DENIAL, seconds)], is_late)


def test_a_policy_that_ended_before_the_raise_excuses_no_delay() -> None:
    timed = Timed()
    timed.now = 90.0
    timed.judge.denied_for(9.0)
    timed.raise_after(3.0)
    assert (timed.judge.delays, bool(timed.wrongs)) == ([(During.NOTHING, 3.0)], True)


def test_a_raise_that_is_never_made_is_told_when_its_time_is_over() -> None:
    timed = Timed()
    left = timed.judge.wished(3, current=2)
    assert left is not None
    assert left < 2.2
    timed.now += left
    assert (timed.judge.look(), timed.wrongs) == (
        None,
        ["the raise to 3 of 0.00 s is not made (the leader leads, the event is delivered)"],
    )


def test_a_raise_that_is_taken_back_is_none() -> None:
    timed = Timed()
    timed.judge.wished(3, current=2)
    timed.judge.wished(2, current=2)
    timed.now += 100
    assert (timed.judge.look(), timed.judge.delays) == (None, [])


@pytest.mark.parametrize("what", ["timeout-before", "500"])
def test_what_befalls_the_brokers_excuses_no_raise(what: str) -> None:
    assert during(Disturbance("kafka", 1, what)) is During.NOTHING


@pytest.mark.parametrize(("replicas", "is_late"), [(2, True), (1, False)])
def test_a_replica_that_is_alone_makes_raises_when_its_freeze_is_over(replicas: int, is_late: bool) -> None:
    timed = Timed()
    timed.judge.replicas = replicas
    timed.raise_after(35.0, Disturbance("write", 3, "freeze-sending-raise", 18))
    assert bool(timed.wrongs) is is_late


@pytest.mark.parametrize(("replicas", "is_late"), [(3, True), (2, False)])
def test_no_raise_is_expected_while_every_replica_is_out(replicas: int, is_late: bool) -> None:
    timed = Timed()
    timed.judge.replicas = replicas
    timed.raise_after(44.0, Disturbance("read", 3, "cut", 25), Disturbance("second", 100, "standby-freezes", 25))
    assert bool(timed.wrongs) is is_late
