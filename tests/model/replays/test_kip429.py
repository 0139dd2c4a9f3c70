"""The tables of KIP-429's draft, copied from it: what each worker joins with, and what it gets.

Each line is worker, assigned, revoked, learning. What the draft prints otherwise is named beside the line.
"""

from collections.abc import Mapping

import pytest

from streamapp.simulator.kip429 import DraftGroup, DraftRound, Event, Kind, Share
from tests.model.replays import scenes


def told(shares: Mapping[str, Share]) -> list[str]:
    return [
        f"{name} [{','.join(sorted(share.assigned))}] [{','.join(sorted(share.revoked))}] "
        f"[{','.join(sorted(share.learning))}]"
        for name, share in shares.items()
    ]


def assigned(rounds: list[DraftRound]) -> list[list[str]]:
    return [told(one.assigned) for one in rounds]


def joined(rounds: list[DraftRound]) -> list[list[str]]:
    return [told(one.joined) for one in rounds]


def test_scale_up_takes_the_drafts_four_rebalances() -> None:
    assert assigned(scenes.draft_scale_up()) == [
        ["S1 [T1,T2] [] []", "S2 [T3,T4] [] []", "S3 [T5] [] []", "S4 [] [] [T1]"],
        ["S1 [T1,T2] [] []", "S2 [T3,T4] [] []", "S3 [T5] [] []", "S4 [] [] [T1]", "S5 [] [] [T3]"],
        # The draft prints `revoked: []` for S1 here, and `revoked: [T3]` for S2 in the same place one round later.
        ["S1 [T2] [T1] []", "S2 [T3,T4] [] []", "S3 [T5] [] []", "S4 [T1] [] []", "S5 [] [] [T3]"],
        ["S1 [T2] [] []", "S2 [T4] [T3] []", "S3 [T5] [] []", "S4 [T1] [] []", "S5 [T3] [] []"],
    ]


def test_scale_up_revokes_what_is_being_learned_as_the_draft_has_it() -> None:
    assert joined(scenes.draft_scale_up())[1:] == [
        ["S1 [T2] [T1] []", "S2 [T3,T4] [] []", "S3 [T5] [] []", "S4 [] [] [T1]", "S5 [] [] []"],
        ["S1 [T2] [T1] []", "S2 [T4] [T3] []", "S3 [T5] [] []", "S4 [] [] [T1]", "S5 [] [] [T3]"],
        ["S1 [T2] [] []", "S2 [T4] [T3] []", "S3 [T5] [] []", "S4 [T1] [] []", "S5 [] [] [T3]"],
    ]


def test_scale_down_takes_the_drafts_three_rebalances() -> None:
    assert assigned(scenes.draft_scale_down()) == [
        ["S1 [T1,T2] [] [T3]", "S2 [T3,T4] [] []", "S3 [T5] [] [T4]"],
        ["S1 [T1,T2] [] [T3]", "S2 [T3] [T4] []", "S3 [T4,T5] [] []"],
        ["S1 [T1,T2,T3] [] []", "S2 [] [T3] []", "S3 [T4,T5] [] []"],
    ]


def test_scale_down_revokes_all_that_is_being_learned_where_the_draft_forgets_one() -> None:
    assert joined(scenes.draft_scale_down())[1:] == [
        # The draft lets S2 join with T3, which S1 learns; its own rule says that S2 gives T3 up.
        ["S1 [T1,T2] [] [T3]", "S2 [] [T3,T4] []", "S3 [T5] [] [T4]"],
        ["S1 [T1,T2] [] [T3]", "S2 [] [T3] []", "S3 [T4,T5] [] []"],
    ]


def test_a_leader_crash_is_over_after_the_next_rebalance() -> None:
    assert assigned(scenes.draft_leader_crash()) == [
        ["S1 [T1,T2] [] []", "S2 [T3,T4] [] []", "S3 [T5] [] []", "S4 [] [] [T1]"],
        ["S2 [T3,T4] [] []", "S3 [T2,T5] [] []", "S4 [T1] [] []"],
    ]


def test_a_task_stops_at_every_rebalance_while_it_is_learned() -> None:
    stops = [sorted(one.interrupted()) for one in scenes.draft_scale_up()]
    assert stops == [[], ["T1"], ["T1", "T3"], ["T3"]]


@pytest.mark.parametrize("event", [Event(Kind.JOINS, "S1"), Event(Kind.LEAVES, "S2")])
def test_an_event_that_does_not_fit_the_group_is_refused(event: Event) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        DraftGroup({"S1": set()}).rebalance(event)
