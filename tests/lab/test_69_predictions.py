"""Changes of a StreamApp, each predicted before it is made: two pods become three and two again, one is replaced.

Six partitions, the process IDs that the operator seeds, the stock assignor with one standby. The model's prediction is
written down first. Where every task ends must be as predicted; each assignment on the way is compared with the model's
answer to what the members reported for it, since the moment at which a copy catches up is the machine's. The operator
makes its own predictions, which must be right too. Nothing writes meanwhile, so that every lag is exact.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.clusters.kubectl import Kubectl, wait_until
from lab.errors import LabError
from lab.matrix.group import trigger_rebalance_once_stable
from lab.scenarios import demo_application, operator_deployment
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.layouts.task_layouts import read_stable
from lab.scenarios.observed_app import PARTITIONS, ObservedApp, remove_all, unique_name
from lab.scenarios.predictions import (
    Layout,
    ModelledGroup,
    PredictedChange,
    changelog_ends,
    layout_of,
    owners,
    shown,
    store,
)
from streamapp.core.facts.ids import Ordinal, ProcessId
from streamapp.core.facts.seeding import seeded_process_id
from streamapp.kafka.group.groups import DecodedGroup
from streamapp.simulator.rounds import Pace, Play, moved, play, stock_assignor, worst_share
from streamapp.simulator.stock import StockSettings
from streamapp.simulator.world import Instance, Rates, World

pytestmark = [pytest.mark.lab, pytest.mark.timeout(420)]
NAMESPACE = "t-predicted"
RECORDS = 600
LONGEST_SECONDS = 180.0
TRIGGER_SECONDS = 4.0
STOCK = stock_assignor(StockSettings(acceptable_recovery_lag=0, num_standby_replicas=1))
AT_ONCE = Pace(rates=Rates(restore=1e9), acceptable_lag=0, is_triggered=True)
"""The state is so small that a copy has caught up before the next rebalance."""
SETTINGS = {
    "STREAMS_NUM_STANDBY_REPLICAS": "1",
    "STREAMS_ACCEPTABLE_RECOVERY_LAG": "0",
    "STREAMS_PROBING_REBALANCE_INTERVAL_MS": "600000",
    "STREAMS_COMMIT_INTERVAL_MS": "200",
    "LEAVE_ON_CLOSE": "true",
}


@dataclass(frozen=True)
class PredictedApp:
    """The StreamApp, and the model of its group."""

    observed: ObservedApp
    folder: Path
    """Where predictions are written before the change."""

    @property
    def application_id(self) -> str:
        """What the group is called."""
        return self.observed.app.application.application_id

    def process(self, ordinal: int) -> ProcessId:
        """The process ID that the operator gives to an ordinal."""
        return seeded_process_id(self.observed.app.read()["metadata"]["uid"], Ordinal(ordinal))

    def model(self) -> ModelledGroup:
        """The group with the changelogs as they are."""
        ends = changelog_ends(self.observed.bootstrap, self.observed.app.application.changelog_topic, PARTITIONS)
        return ModelledGroup(STOCK, ends)

    def world(self) -> World:
        """The group as it is, after all its members have joined once more."""
        self.trigger()
        time.sleep(1)
        return self.model().world(self.read())

    def read(self) -> DecodedGroup:
        """The group at a moment at which it is stable."""
        return read_stable(self.observed.bootstrap, self.application_id)

    def trigger(self) -> None:
        """Let the group rebalance, as the operator does."""
        trigger_rebalance_once_stable(self.observed.bootstrap, self.application_id, self.process(0))

    def follow(self, until: Callable[[Layout], bool], *, is_triggered: bool) -> list[DecodedGroup]:
        """Every layout until one is as wanted; LabError after a while."""
        seen: list[DecodedGroup] = []
        ends, triggered = time.monotonic() + LONGEST_SECONDS, time.monotonic()
        while time.monotonic() < ends:
            reading = self.read()
            layout = layout_of(reading)
            if not seen or layout_of(seen[-1]) != layout:
                seen.append(reading)
            if until(layout):
                return seen
            if is_triggered and time.monotonic() - triggered > TRIGGER_SECONDS:
                self.trigger()
                triggered = time.monotonic()
            time.sleep(0.05)
        last = shown(layout_of(seen[-1]))
        raise LabError("group: not as predicted", f"last seen {last}", f"look at {self.folder}")

    def change(
        self, name: str, before: World, predicted: Play, make: Callable[[], None], *, is_triggered: bool
    ) -> PredictedChange:
        """Write the prediction down, make the change, and follow it to the predicted end."""
        store(predicted, self.folder / f"{name}.json")
        forecasts = self.forecasts()
        make()
        expected = predicted.rounds[-1].given
        readings = self.follow(lambda layout: layout == expected, is_triggered=is_triggered)
        found = PredictedChange.of(self.model(), before, predicted, readings, len(expected))
        if name != "replaced":
            wait_until("the operator has compared its own prediction", lambda: self.forecasts() > forecasts, 120)
        return found

    def forecasts(self) -> float:
        """How many predictions the operator has compared with what it saw."""
        return sum(self.metric("streamapp_forecasts_total"))

    def metric(self, name: str) -> list[float]:
        """The values of one of the operator's metrics for this StreamApp."""
        lines = operator_deployment.metrics(self.observed.app.kubectl).splitlines()
        own = [line for line in lines if line.startswith(f"{name}{{") and f'namespace="{NAMESPACE}"' in line]
        return [float(line.rpartition(" ")[2]) for line in own]


@pytest.fixture(scope="module")
def app(
    kubectl: Kubectl,
    bootstrap: str,
    operator: None,  # noqa: ARG001 (it must run)
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[PredictedApp]:
    """Deploy it with two pods, without load; returns when every record is in the changelog."""
    application = DemoApplication(unique_name("predicted"), SETTINGS, RECORDS, 1, NAMESPACE, cpu_request="20m")
    remove_all(kubectl, bootstrap, [application])
    found = PredictedApp(ObservedApp.of(kubectl, bootstrap, application), tmp_path_factory.mktemp("predicted"))
    demo_application.preload(kubectl, application)
    found.observed.app.apply(2, learners={"acceptableRecoveryLag": 0})
    found.observed.app.wait_until_converged(2)
    wait_until("all records counted", lambda: sum(found.model().ends.values()) >= RECORDS, 60)
    yield found
    remove_all(kubectl, bootstrap, [application])


@pytest.fixture(scope="module")
def up(app: PredictedApp) -> PredictedChange:
    """A third pod comes, without state."""
    before = app.world()
    predicted = play(before.joined_by(Instance(process=app.process(2))), STOCK, AT_ONCE)
    return app.change("up", before, predicted, lambda: app.observed.app.scale(3), is_triggered=True)


@pytest.fixture(scope="module")
def down(app: PredictedApp, up: PredictedChange) -> PredictedChange:
    """It goes again; the two others still have the state of what they gave away."""
    assert up.seen
    app.observed.app.wait_until_converged(3)
    before = app.world()
    predicted = play(before.left_by([app.process(2)]), STOCK, AT_ONCE)
    return app.change("down", before, predicted, lambda: app.observed.app.scale(2), is_triggered=False)


def test_every_assignment_of_a_scale_up_is_as_predicted(app: PredictedApp, up: PredictedChange) -> None:
    assert set(up.before.instances) == {app.process(0), app.process(1)}
    assert [shown(one) for one in up.seen] == [shown(one) for one in up.answers]
    assert up.seen[-1] == up.predicted.rounds[-1].given
    assert {len(placed.actives) for placed in up.seen[-1].values()} == {2}
    assert up.moved == moved(up.before.owners(), up.predicted.world.owners())
    assert len(up.moved) > 0


def test_on_the_way_no_pod_has_more_tasks_than_predicted(up: PredictedChange) -> None:
    worst = max(len(placed.actives) for layout in up.seen for placed in layout.values())
    assert worst <= worst_share(up.predicted.rounds, frozenset(up.before.ends))


def test_every_assignment_of_a_scale_down_is_as_predicted(app: PredictedApp, down: PredictedChange) -> None:
    assert [shown(one) for one in down.seen] == [shown(one) for one in down.answers]
    assert down.seen[-1] == down.predicted.rounds[-1].given
    assert set(owners(down.seen[-1]).values()) == {app.process(0), app.process(1)}


def test_the_operator_itself_predicted_where_every_task_would_end(app: PredictedApp, down: PredictedChange) -> None:
    assert down.seen
    assert app.forecasts() >= 2
    assert app.metric("streamapp_forecast_wrong_moves") == [0.0]


def test_a_pod_that_is_replaced_with_its_volume_gets_its_tasks_back(app: PredictedApp, down: PredictedChange) -> None:
    """0 of 6 tasks end elsewhere, though the other pod has all of them meanwhile."""
    assert down.seen
    app.observed.app.wait_until_converged(2)
    before = app.world()
    gone = before.instances[app.process(1)]
    without = play(before.left_by([gone.process]), STOCK, AT_ONCE)
    back = Instance(process=gone.process, positions=gone.positions)
    predicted = play(without.world.joined_by(back), STOCK, AT_ONCE)
    assert moved(before.owners(), predicted.world.owners()) == frozenset()
    uid = app.observed.pod(1)["metadata"]["uid"]

    def replace() -> None:
        app.observed.delete_pod(1)
        wait_until("its successor runs", lambda: app.observed.app.status()["readyReplicas"] == 2, 60)

    change = app.change("replaced", before, predicted, replace, is_triggered=True)
    assert app.observed.pod(1)["metadata"]["uid"] != uid
    assert [shown(one) for one in change.seen] == [shown(one) for one in change.answers]
    assert change.moved == frozenset()
