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


@pytest.mark.parametrize("befell", During)
def test_a_raise_has_the_limit_of_the_worst_that_befell_it(befell: During) -> None:
    in_time, late = Timed(), Timed()
    in_time.raise_after(WITHIN[befell], CAUSES[During.NOTHING], CAUSES[befell])
    late.raise_after(WITHIN[befell] + 0.2, CAUSES[During.NOTHING], CAUSES[befell])
    assert (in_time.judge.delays, in_time.wrongs) == ([(befell, WITHIN[befell])], [])
    assert [befell in wrong for wrong in late.wrongs] == [True]


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


@pytest.mark.parametrize(("is_alone", "is_late"), [(False, True), (True, False)])
def test_a_replica_that_is_alone_makes_raises_when_its_freeze_is_over(is_alone: bool, is_late: bool) -> None:
    timed = Timed()
    timed.judge.is_alone = is_alone
    timed.raise_after(35.0, Disturbance("write", 3, "freeze-sending-raise", 18))
    assert bool(timed.wrongs) is is_late
