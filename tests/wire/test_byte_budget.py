"""The budget of unfinished answers: who must go when there is no more room."""

import pytest

from streamapp.wire.byte_budget import BudgetExceededError, ByteBudget


def test_shares_are_counted_from_their_first_byte_to_their_end() -> None:
    budget = ByteBudget(100)
    with budget.share("a", lambda: None) as share:
        share.add(60)
        with budget.share("b", lambda: None) as other:
            other.add(40)
            assert budget.used == 100
        assert budget.used == 60
    assert budget.used == 0


def test_the_owner_who_holds_most_loses_all_that_he_holds() -> None:
    dropped: list[str] = []
    budget = ByteBudget(100)
    with (
        budget.share("greedy", lambda: dropped.append("first")) as first,
        budget.share("greedy", lambda: dropped.append("second")) as second,
        budget.share("modest", lambda: dropped.append("modest")) as modest,
    ):
        first.add(35)
        second.add(35)
        modest.add(40)
        assert (sorted(dropped), budget.used) == (["first", "second"], 40)
        with pytest.raises(BudgetExceededError):
            first.add(1)


def test_an_owner_who_asks_for_more_than_all_others_hold_is_refused() -> None:
    budget = ByteBudget(100)
    with budget.share("greedy", lambda: None) as greedy, budget.share("modest", lambda: None) as modest:
        modest.add(40)
        with pytest.raises(BudgetExceededError):
            greedy.add(61)
