from itertools import pairwise

import pytest

from lab.errors import LabError
from lab.meter.counts import CountReport
from lab.scenarios.moves import AFTER, BEFORE, WAYS, Moves, Scaling, Spread


def scaling(to_replicas: int, moved: dict[int, float | None]) -> Scaling:
    return Scaling(to_replicas, 10.0, moved, 0.2, 0.1, None, 2)


def test_gaps_of_all_scalings_in_one_direction_are_taken_together() -> None:
    steps = (scaling(AFTER, {0: 0.5, 3: 0.6}), scaling(BEFORE, {1: 9.0}), scaling(AFTER, {2: 0.7}))
    moves = Moves(WAYS["on-demand"], steps, CountReport.__new__(CountReport))
    assert (moves.gaps(AFTER), moves.gaps(BEFORE)) == ((0.5, 0.6, 0.7), (9.0,))


def test_an_unknown_gap_is_no_gap_of_zero() -> None:
    moves = Moves(WAYS["standby"], (scaling(AFTER, {0: None, 1: 0.5}),), CountReport.__new__(CountReport))
    with pytest.raises(LabError, match="standby: the gap of a moved partition is unknown"):
        moves.gaps(AFTER)


def test_a_spread_is_in_order_and_ends_with_the_worst() -> None:
    spread = Spread.of([0.4, 0.5, 0.6, 3.0])
    assert spread is not None
    assert (spread.count, spread.p50, spread.worst) == (4, 0.55, 3.0)
    assert all(one <= other for one, other in pairwise((spread.p50, spread.p99, spread.worst)))
    assert (Spread.of([]), Spread.of([2.0])) == (None, Spread(1, 2.0, 2.0, 2.0))


def test_every_way_is_known_by_its_own_name() -> None:
    assert all(name == way.name for name, way in WAYS.items())
