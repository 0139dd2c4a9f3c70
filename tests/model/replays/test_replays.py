"""KIP-441's scenarios and the article's log, by the stock assignor; and where it does not end in their tables."""

import pytest

from streamapp.core.assignors.group import Placement
from streamapp.core.facts.ids import ProcessId, TaskId
from streamapp.simulator.rounds import moved, worst_share
from tests.model.replays import scenes, ways
from tests.model.replays.scenes import Scene, ordered_id


def wanted(scene: Scene) -> list[dict[str, str]]:
    """What the assignor answered, without rounds that change nothing."""
    answers = [
        {scene.processes[name]: told(scene, placed) for name, placed in one.wanted.placements.items()}
        for one in scene.play.rounds
    ]
    return [one for at, one in enumerate(answers) if at == 0 or one != answers[at - 1]]


def told(scene: Scene, placed: Placement) -> str:
    kinds = (" ".join(scene.task(task) for task in sorted(tasks)) for tasks in (placed.actives, placed.standbys))
    return " / ".join(kinds).strip()


def test_scaling_out_first_warms_up_and_then_moves_one_task() -> None:
    assert wanted(scenes.scaling_out()) == [
        # KIP-441 has T1 where the third process gets T2: it warms up copies of all that it will hold.
        {"I1": "T1 T3 / T2", "I2": "T2 / T1 T3", "I3": "/ T2 T3"},
        # The actives are KIP-441's; its standbys are T2, T3 and T1.
        {"I1": "T1 / T3", "I2": "T2 / T1", "I3": "T3 / T2"},
    ]


def test_scaling_in_with_standbys_in_sync_needs_one_more_exchange_than_the_kip_says() -> None:
    first, *later = wanted(scenes.scaling_in(lag=0))
    assert first == {"I2": "T1 T4 / T2 T3", "I3": "T2 T3 / T1 T4"}  # KIP-441's table, where it ends
    assert later == [{"I2": "T1 T3 / T2 T4", "I3": "T2 T4 / T1 T3"}]


def test_scaling_in_with_lagging_standbys_begins_as_the_kip_says_and_ends_otherwise() -> None:
    first, *later = wanted(scenes.scaling_in(lag=20_000))
    assert first == {"I2": "T1 T2 T4 / T3", "I3": "T3 / T1 T2 T4"}
    # KIP-441 ends with T1 and T2 on I2, T3 and T4 on I3; the assignor deals in turn.
    assert later == [{"I2": "T1 T3 / T2 T4", "I3": "T2 T4 / T1 T3"}]


def test_our_assignor_ends_in_the_tables_of_scaling_in() -> None:
    assert wanted(scenes.scaling_in(0, scenes.OURS)) == [{"I2": "T1 T4 / T2 T3", "I3": "T2 T3 / T1 T4"}]
    assert wanted(scenes.scaling_in(20_000, scenes.OURS)) == [
        {"I2": "T1 T2 T4 / T3", "I3": "T3 / T1 T2 T4"},
        {"I2": "T1 T4 / T2 T3", "I3": "T2 T3 / T1 T4"},
    ]


def test_our_assignor_leaves_the_standby_with_the_former_owner_of_a_task_that_moved() -> None:
    assert wanted(scenes.scaling_out(scenes.OURS)) == [
        {"I1": "T1 T3 / T2", "I2": "T2 / T1 T3", "I3": "/ T1 T3"},
        # T1 moves from I1 to I3: I1 has its standby from then on, and I2 gives up the one it had.
        {"I1": "T3 / T1 T2", "I2": "T2 / T3", "I3": "T1 / T2"},
        {"I1": "T3 / T1", "I2": "T2 / T3", "I3": "T1 / T2"},
    ]


def test_a_moved_task_takes_two_rebalances_and_runs_nowhere_between_them() -> None:
    rounds = scenes.scaling_out().play.rounds
    given_up = [[scene_task.task.partition for scene_task in one.revoked] for one in rounds]
    assert given_up == [[], [3], []]
    assert [len(one.owners()) for one in rounds] == [3, 2, 3]


def test_the_articles_three_assignments_are_those_of_its_log() -> None:
    assert wanted(scenes.article()) == [
        {"bbb8": "0_0 0_1 0_2 0_3 / 1_0", "4b61": "0_4 1_0 1_2 1_4 /", "7156": "0_5 1_1 1_3 1_5 / 1_2"},
        {"bbb8": "0_0 0_2 0_4 1_0 / 1_3", "4b61": "0_1 0_3 0_5 1_4 / 1_1", "7156": "1_1 1_2 1_3 1_5 /"},
        {"bbb8": "0_0 0_3 1_0 1_3 /", "4b61": "0_1 0_4 1_1 1_4 /", "7156": "0_2 0_5 1_2 1_5 /"},
    ]


def test_of_five_ways_eager_works_least_twice_and_the_draft_stops_most() -> None:
    cold, standby, conservative, eager, draft = ways.ways()
    assert [(one.rebalances, one.stops) for one in (cold, standby, conservative, eager, draft)] == [
        (3, 2),
        (4, 3),
        (8, 3),
        (9, 3),
        (3, 5),
    ]
    # Without a copy the users of the largest share wait for its whole restore: four of nine million records.
    assert [one.longest for one in (cold, standby, conservative, eager, draft)] == [40, 0, 0, 0, 0]
    assert standby.double_work == 0 < eager.double_work < conservative.double_work < draft.double_work


def test_on_the_way_one_instance_of_the_article_has_four_of_six_stateful_tasks() -> None:
    scene = scenes.article()
    stateful = frozenset(scene.before.ends)
    assert (worst_share(scene.play.rounds, stateful), len(stateful)) == (4, 6)


@pytest.mark.parametrize(("gone", "new", "count"), [(1, 1, 0), (2, 2, 0), (3, 3, 0), (1, 4, 6), (3, 4, 2)])
def test_how_many_of_six_tasks_move_when_a_process_is_replaced(gone: int, new: int, count: int) -> None:
    scene = scenes.replaced(gone, new)
    assert scene.play.is_over
    assert len(moved(scene.before.owners(), scene.play.world.owners())) == count


def test_a_process_that_kept_its_id_gets_its_tasks_back_in_the_first_round() -> None:
    (only,) = scenes.replaced(1, 1).play.rounds
    assert only.wanted.placements[ordered_id(1)].actives == {TaskId(1, 0), TaskId(1, 3)}
    assert not only.cold


def test_an_unsigned_order_would_put_the_articles_new_process_last() -> None:
    assert sorted((scenes.ARTICLE_NEW, *scenes.ARTICLE_OLD)) == [scenes.ARTICLE_NEW, *scenes.ARTICLE_OLD]
    assert ProcessId.parse("80000000-0000-4000-8000-000000000000") < ordered_id(0)
