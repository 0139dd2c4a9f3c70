"""A change of the replicas is played as the operator makes it, and counted."""

from dataclasses import replace
from datetime import timedelta

import pytest

from streamapp.core.facts.ids import Ordinal, TaskId
from streamapp.core.facts.seeding import seeded_process_id
from streamapp.core.status.volumes import VolumeRow
from streamapp.simulator.forecast.change import LEARNER, STOCK, Settings, removals
from streamapp.simulator.forecast.comparison import Forecast, compared
from streamapp.simulator.forecast.outcome import Outcome, TaskMove, outcome
from streamapp.simulator.forecast.running import LayoutUnknownError, running
from streamapp.simulator.forecast.times import HandoverGap, Pauses, Spread
from tests.builders import NOW
from tests.model.forecast.apps import RECORDS, UID, a_table

SLOW = Spread(10_000, 10_000, 10_000)
FAST = Spread(100_000, 100_000, 100_000)
TWO_OF_SIX = {0: ("024", ""), 1: ("135", "")}
THREE_OF_SIX = {0: ("03", ""), 1: ("14", ""), 2: ("25", "")}


def found(layout: dict[int, tuple[str, str]], to: int, settings: Settings, restore: Spread = FAST) -> Outcome:
    app = running(a_table(layout, limit=100), len(layout), to, UID)
    return outcome(app, to, settings, restore, Pauses(), HandoverGap.LEARNER)


def test_a_scale_up_moves_what_the_assignor_deals_otherwise() -> None:
    one = found(TWO_OF_SIX, 3, Settings(assignor=STOCK))
    assert one.moves == (
        TaskMove(TaskId(0, 2), 0, 2),
        TaskMove(TaskId(0, 3), 1, 0),
        TaskMove(TaskId(0, 4), 0, 1),
        TaskMove(TaskId(0, 5), 1, 2),
    )
    assert (one.needless, one.cold, one.learners, one.copied) == (2, 0, 4, 4 * RECORDS)
    assert {len(tasks) for tasks in one.steps[-1].active.values()} == {2}


def test_the_learner_assignor_moves_only_what_must_move() -> None:
    one = found(TWO_OF_SIX, 3, Settings(assignor=LEARNER))
    assert (len(one.moves), one.needless, one.cold) == (2, 0, 0)


def test_leaving_pods_are_emptied_before_they_go() -> None:
    one = found(THREE_OF_SIX, 1, Settings(assignor=LEARNER))
    assert {(move.source, move.target) for move in one.moves} == {(1, 0), (2, 0)}
    assert (len(one.moves), one.cold, removals(3, 1, Settings(assignor=LEARNER))) == (4, 0, 1)
    # Four copies of one process share its rate, but for the hundred records that a copy may lag.
    assert one.seconds is not None
    assert one.seconds.p50 - one.pause == pytest.approx(4 * (RECORDS - 100) / FAST.p50 + 3, abs=0.1)


def test_under_the_stock_assignor_pods_go_one_after_the_other() -> None:
    settings = Settings(assignor=STOCK)
    one = found(THREE_OF_SIX, 1, settings)
    assert removals(3, 1, settings) == one.removals == 2
    assert one.pause == 2 * Pauses().down.p50
    # Nobody has a copy: the tasks of the pods that went are restored before they run.
    # Pod 0 has learned one of them when the second pod goes.
    assert one.cold == 3
    assert one.gap is not None
    assert one.gap.p50 > RECORDS / FAST.p50


def test_what_lies_unused_on_a_volume_counts_as_a_copy() -> None:
    unused = {0: {TaskId(0, task): 50 for task in (2, 5)}}
    table = a_table({0: ("013", ""), 1: ("245", "")}, limit=100, unused=unused)
    app = running(table, 2, 1, UID)
    one = outcome(app, 1, Settings(assignor=STOCK), FAST, Pauses(), HandoverGap.LEARNER)
    assert {task for copy in one.steps[0].active.values() for task in copy} == {TaskId(0, n) for n in range(6)}
    assert (one.cold, one.copied) == (1, RECORDS)


def test_eager_learners_take_over_one_by_one_with_less_double_work() -> None:
    # Pod 0 learns three tasks, of which it has a part of one already.
    layout = {0: ("0", ""), 1: ("123", "")}
    unused = {0: {TaskId(0, 1): RECORDS // 10}}
    app = running(a_table(layout, limit=100, unused=unused), 2, 1, UID)
    eager, conservative = (
        outcome(app, 1, Settings(assignor=LEARNER, is_eager=is_eager), SLOW, Pauses(), HandoverGap.LEARNER)
        for is_eager in (True, False)
    )
    assert len(eager.steps) > len(conservative.steps)
    assert eager.double_work < conservative.double_work
    assert {move.task for move in eager.moves} == {move.task for move in conservative.moves}


def test_a_slower_restore_widens_the_range() -> None:
    settings = Settings(assignor=LEARNER)
    known = found(THREE_OF_SIX, 2, settings).seconds
    unknown = found(THREE_OF_SIX, 2, settings, Spread.between(10_000, 100_000)).seconds
    assert known is not None
    assert unknown is not None
    assert unknown.p90 > known.p90
    assert unknown.p10 < unknown.p50 < unknown.p90


def test_unknown_sizes_give_moves_and_no_time() -> None:
    app = running(a_table(TWO_OF_SIX, records=None), 2, 3, UID)
    one = outcome(app, 3, Settings(assignor=STOCK), FAST, Pauses(), HandoverGap.STANDBY)
    assert (len(one.moves), one.seconds, one.gap) == (4, None, None)


def test_bytes_follow_from_what_the_agents_report() -> None:
    app = running(a_table(TWO_OF_SIX, state_bytes=3 * RECORDS * 10, limit=100), 2, 3, UID)
    one = outcome(app, 3, Settings(assignor=LEARNER), FAST, Pauses(), HandoverGap.LEARNER)
    assert (app.bytes_per_record, one.copied_bytes) == (10, 2 * RECORDS * 10)


def test_a_task_on_an_unknown_pod_is_refused() -> None:
    table = a_table(TWO_OF_SIX)
    first, *rest = table.rows
    assert first.owner is not None
    lost = replace(first, owner=replace(first.owner, ordinal=None))
    with pytest.raises(LayoutUnknownError, match="the pod of task 0_0 is not known"):
        running(replace(table, rows=(lost, *rest)), 2, 3, UID)


@pytest.mark.parametrize(("seen", "steps_seen"), [(100.0, True), (0.5, False)])
def test_a_pause_is_learned_only_where_the_rebalances_left_time_for_one(seen: float, steps_seen: bool) -> None:
    one = found(THREE_OF_SIX, 1, Settings(assignor=LEARNER))
    assert one.seconds is not None
    forecast = Forecast(made_at=NOW, opened_at=NOW, from_replicas=3, to_replicas=1, outcome=one, owners={})
    finished = compared(forecast, NOW, NOW + timedelta(seconds=seen), {})
    rounds = one.seconds.p50 - one.pause
    assert finished.pause == (pytest.approx(seen - rounds) if steps_seen else None)


def test_a_pod_that_comes_back_with_its_state_copies_less_and_takes_what_it_had() -> None:
    volume = VolumeRow(
        ordinal=Ordinal(2),
        process=seeded_process_id(UID, Ordinal(2)),
        kept_at=NOW,
        lags={TaskId(0, 2): 0, TaskId(0, 5): 10},
    )
    table = replace(a_table(TWO_OF_SIX, limit=100), volumes=(volume,))
    app = running(table, 2, 3, UID)
    for assignor in (STOCK, LEARNER):
        one = outcome(app, 3, Settings(assignor=assignor), FAST, Pauses(), HandoverGap.LEARNER)
        gained = {move.task for move in one.moves if move.target == 2}
        assert (gained, one.cold) == ({TaskId(0, 2), TaskId(0, 5)}, 0)
    empty = found(TWO_OF_SIX, 3, Settings(assignor=LEARNER))
    assert one.copied < empty.copied


def test_a_volume_says_which_process_its_pod_will_be() -> None:
    other = seeded_process_id("another-uid", Ordinal(2))
    volume = VolumeRow(ordinal=Ordinal(2), process=other, kept_at=NOW, lags={})
    app = running(replace(a_table(TWO_OF_SIX), volumes=(volume,)), 2, 3, UID)
    assert app.processes[2] == other
