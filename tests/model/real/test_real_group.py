"""The model beside a real group: each change is predicted and stored before it is made, then compared task by task.

Where every task ends, and the worst share on the way, must be as predicted. When a copy catches up depends on the
machine; so each assignment on the way is compared with the model's answer to what the members reported for it.

A broker and the demo application as bare JVMs, with the process IDs of the article (docs/model/two-to-three.md): stock
assignor, no standby, `acceptable.recovery.lag` 0. Nothing writes while processes change, so that every lag is exact.
Rebalances are triggered as the operator triggers them, so that the probing interval of a minute need not pass.
"""

from collections.abc import Iterator

import pytest

from lab.matrix.broker import PARTITIONS
from lab.scenarios.predictions import PredictedChange, layout_of, owners, shown, store
from streamapp.simulator.rounds import moved, play, stock_assignor
from streamapp.simulator.stock import StockSettings
from streamapp.simulator.world import Instance
from tests.model.real.group import AT_ONCE, RealGroup, changed, on_a_broker
from tests.model.replays.scenes import ARTICLE_NEW, ARTICLE_OLD

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]
STOCK = stock_assignor(StockSettings(acceptable_recovery_lag=0))
SETTINGS = {
    "STREAMS_ACCEPTABLE_RECOVERY_LAG": "0",
    "STREAMS_NUM_STANDBY_REPLICAS": "0",
    "STREAMS_PROBING_REBALANCE_INTERVAL_MS": "600000",
    "STREAMS_COMMIT_INTERVAL_MS": "200",
    "LEAVE_ON_CLOSE": "true",
}


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealGroup]:
    """The article's two processes, which have counted all records."""
    with on_a_broker(tmp_path_factory.mktemp("article"), "article", SETTINGS, STOCK) as found:
        for process in ARTICLE_OLD:
            found.start(process)
        found.follow(lambda layout: sorted(len(placed.actives) for placed in layout.values()) == [3, 3])
        found.wait_for_records()
        yield found


@pytest.fixture(scope="module")
def up(group: RealGroup, tmp_path_factory: pytest.TempPathFactory) -> PredictedChange:
    """A third process joins, which has no state."""
    before = group.world()
    predicted = play(before.joined_by(Instance(process=ARTICLE_NEW)), STOCK, AT_ONCE)
    store(predicted, tmp_path_factory.mktemp("predicted") / "up.json")
    group.start(ARTICLE_NEW)
    expected = predicted.rounds[-1].given
    return changed(group, before, predicted, group.follow(lambda layout: layout == expected), 3)


@pytest.fixture(scope="module")
def down(group: RealGroup, up: PredictedChange, tmp_path_factory: pytest.TempPathFactory) -> PredictedChange:
    """It leaves; the other two still have the state of what they gave away."""
    assert up.seen
    before = group.world()
    predicted = play(before.left_by([ARTICLE_NEW]), STOCK, AT_ONCE)
    store(predicted, tmp_path_factory.mktemp("predicted") / "down.json")
    group.stop(ARTICLE_NEW)
    expected = predicted.rounds[-1].given
    return changed(group, before, predicted, group.follow(lambda layout: layout == expected), 2)


def test_every_assignment_of_a_scale_up_is_as_predicted(up: PredictedChange) -> None:
    assert [shown(one) for one in up.seen] == [shown(one) for one in up.answers]
    assert up.seen[-1] == up.predicted.rounds[-1].given
    assert len(up.moved) == 4


def test_on_the_way_the_shares_are_as_uneven_as_predicted(up: PredictedChange) -> None:
    worst_seen = max(len(placed.actives) for layout in up.seen for placed in layout.values())
    assert worst_seen == max(len(one.actives) for it in up.predicted.rounds for one in it.given.values())


def test_every_assignment_of_a_scale_down_is_as_predicted(down: PredictedChange) -> None:
    assert [shown(one) for one in down.seen] == [shown(one) for one in down.answers]
    assert down.seen[-1] == down.predicted.rounds[-1].given


def test_a_process_that_comes_back_with_its_volume_gets_its_tasks_back(group: RealGroup, down: PredictedChange) -> None:
    """0 of 6 tasks end elsewhere, though the other process has all of them meanwhile."""
    before = group.world()
    gone = before.instances[ARTICLE_OLD[1]]
    without = play(before.left_by([gone.process]), STOCK, AT_ONCE)
    back = Instance(process=gone.process, positions=gone.positions)
    predicted = play(without.world.joined_by(back), STOCK, AT_ONCE)
    assert moved(before.owners(), predicted.world.owners()) == frozenset()
    group.stop(gone.process)
    alone = group.follow(lambda layout: layout == without.rounds[-1].given, is_triggered=False)
    assert len(owners(layout_of(alone[-1]))) == PARTITIONS
    group.start(gone.process)
    expected = predicted.rounds[-1].given
    change = changed(group, before, predicted, group.follow(lambda layout: layout == expected), 2)
    assert [shown(one) for one in change.seen] == [shown(one) for one in change.answers]
    assert change.moved == frozenset()
    assert down.seen


def test_a_group_that_was_stopped_whole_comes_back_as_it_was(group: RealGroup, down: PredictedChange) -> None:
    """0 of 6 tasks end elsewhere after no process ran at all: each has its ID and its volume."""
    assert down.seen
    before = group.world()
    processes = [Instance(process=one.process, positions=one.positions) for one in before.instances.values()]
    predicted = play(before.left_by(before.instances).joined_by(*processes), STOCK, AT_ONCE)
    assert moved(before.owners(), predicted.world.owners()) == frozenset()
    for process in before.instances:
        group.stop(process)
    for process in before.instances:
        group.start(process)
    expected = predicted.rounds[-1].given
    change = changed(group, before, predicted, group.follow(lambda layout: layout == expected), 2)
    assert [shown(one) for one in change.seen] == [shown(one) for one in change.answers]
    assert change.moved == frozenset()
