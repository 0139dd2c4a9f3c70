"""What is demanded of a coordinator's failover, on looks and events that are made up."""

from typing import Any

import pytest

from lab.scenarios.holds.timed_watch import Seen, TimedWatch
from streamapp.kafka.group.groups import ClassicGroupState
from tests.lab.failovers import Failover, GroupWatch, Shown, Watches

STABLE, EMPTY, PREPARING = (
    ClassicGroupState.STABLE,
    ClassicGroupState.EMPTY,
    ClassicGroupState.PREPARING_REBALANCE,
)
NOT_ASKED: Any = None
BEFORE = Shown(9.9, STABLE, {"a": 4, "b": 4})
HELD = ("True", "BrokersUnreachable", "False", "BrokersUnreachable")
AGAIN = Shown(22.0, STABLE, {"a": 4, "b": 4})


def failover(*looks: Shown, removals: tuple[float, ...] = (), conditions: tuple[str, ...] = HELD) -> Failover:
    """The coordinator was killed at second 10."""
    events = [Seen(0.0, ("3",)), *(Seen(at, (str(2 - number),)) for number, at in enumerate(removals))]
    seen = Watches(
        NOT_ASKED,
        NOT_ASKED,
        GroupWatch([BEFORE, *looks]),
        TimedWatch([Seen(0.0, ("False", "Steady", "True", "Converged")), Seen(12.0, conditions)]),
        TimedWatch(events),
    )
    return Failover(seen, 0, 10.0, BEFORE)


@pytest.mark.parametrize(
    ("shown", "is_as_before", "is_older"),
    [
        (AGAIN, True, False),
        (Shown(20, STABLE, {"a": 5, "b": 5}), True, False),
        (Shown(20, STABLE, {"a": 5, "b": 5, "c": 5}), True, False),
        (Shown(20, STABLE, {"a": 4, "b": 3}), False, True),
        (Shown(20, STABLE, {"a": 4}), False, True),
        (Shown(20, EMPTY), False, True),
        (Shown(20, PREPARING), False, False),
        (Shown(20, None), False, False),
    ],
    ids=["the same", "newer", "one more", "an earlier join", "a member less", "empty", "rebalancing", "unknown"],
)
def test_an_older_state_is_told_from_the_group_as_it_is(shown: Shown, is_as_before: bool, is_older: bool) -> None:
    assert (shown.is_of(BEFORE), shown.is_older_than(BEFORE)) == (is_as_before, is_older)


def test_a_removal_after_the_group_is_known_again_is_in_order() -> None:
    older = Shown(20.0, STABLE, {"a": 3, "b": 3})
    found = failover(Shown(11.0, None), older, AGAIN, removals=(30.0,))
    found.require_hold()
    found.require_removal_after()
    assert found.older_states() == [older]
    assert found.figures() == (
        "known again after 12.0 s, older state from 10.0 s to 10.0 s; 0.0 s converged; 2.0 s BrokersUnreachable; "
        "removals +20.0 s"
    )


def test_what_the_group_shows_without_the_removed_pod_is_no_older_state() -> None:
    assert failover(AGAIN, Shown(40.0, STABLE, {"a": 6}), removals=(30.0,)).older_states() == []


def test_a_removal_while_an_older_state_is_shown_is_found() -> None:
    found = failover(Shown(20.0, EMPTY), AGAIN, removals=(21.0,))
    with pytest.raises(AssertionError):
        found.require_hold()
    with pytest.raises(AssertionError):
        found.require_removal_after()


def test_a_removal_right_after_the_kill_rests_on_the_look_before() -> None:
    found = failover(AGAIN, removals=(11.5,))
    found.require_hold()
    with pytest.raises(AssertionError):
        found.require_removal_after()


def test_a_status_that_says_nothing_of_it_is_found() -> None:
    with pytest.raises(AssertionError):
        failover(AGAIN, conditions=("True", "Stabilizing", "False", "ReadingsPending")).require_hold()
    failover(AGAIN, conditions=("False", "Steady", "False", "GroupOutdated")).require_hold()
