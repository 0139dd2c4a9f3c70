"""A coordinator that fails over: no pod goes by an older state of a group that is taken for a new one."""

from collections.abc import Sequence

import pytest

from tests.prove.play import play_family
from tests.prove.story import Disturbance, Story

SCENE, SEED = "failover-of-a-restart", 6
"""A container ends after the join that says what it runs; the group is shown as it was one join earlier, then as it is.
An operator that takes both for new joins has two readings in which the dead member runs its tasks."""


def stories() -> Sequence[Story]:
    """The rebalance that the operator triggers between the two is lost; which call that is depends on the scene."""
    return [Story(SCENE, SEED, (Disturbance("kafka", number, "timeout-before"),)) for number in range(14, 24)]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_joins_that_are_shown_again_prove_nothing() -> None:
    assert [outcome.wrongs for outcome in play_family(stories())] == [()] * 10
