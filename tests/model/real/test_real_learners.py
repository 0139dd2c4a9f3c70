"""The learner assignor's model beside a real group: a former owner keeps a standby while it gives its task up.

Two processes with one standby for each task become three and two again, with the agent in each JVM. The agents are told
who leaves, as the operator tells them. Each change is predicted and stored before it is made; each assignment is
compared with the model's answer to what the members reported for it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.build import maven
from lab.build.cache import Cache
from lab.errors import NotYetError
from lab.matrix.agents import Agents
from lab.matrix.processes import free_ports
from lab.scenarios.predictions import Layout, PredictedChange, shown, store
from lab.settings import Settings
from streamapp.core.assignors.group import ClientState, Task
from streamapp.core.facts.ids import ProcessId, TaskId
from streamapp.simulator.learner.draft import Announcement, LearnerSettings, Leaving
from streamapp.simulator.rounds import Answer, learner_assignor, moved, play
from streamapp.simulator.world import Instance
from tests.model.real.group import AT_ONCE, RealGroup, changed, on_a_broker, waited_for
from tests.model.real.thread_log import OPTION, GivenToThread, assignments
from tests.model.replays.scenes import ordered_id

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]
ONE, TWO, THREE = (ordered_id(number) for number in (1, 2, 3))
OURS = LearnerSettings(acceptable_lag=0, standbys=1)
SETTINGS = {
    "STREAMS_ACCEPTABLE_RECOVERY_LAG": "0",
    "STREAMS_NUM_STANDBY_REPLICAS": "1",
    "STREAMS_PROBING_REBALANCE_INTERVAL_MS": "600000",
    "STREAMS_COMMIT_INTERVAL_MS": "200",
    "STREAMS_STREAMAPP_ASSIGNOR_WARM_MS": "0",
    "LEAVE_ON_CLOSE": "true",
}


@dataclass
class ToldAgents:
    """The agents of all processes, and what they were told last."""

    agents: Agents
    ports: Sequence[int]
    leaving: frozenset[ProcessId] = frozenset()

    def environment(self) -> dict[str, str]:
        """What one more agent is told at its start."""
        ordinal = len(self.agents.ports)
        self.agents.ports = self.ports[: ordinal + 1]
        return self.agents.environment(ordinal)

    def forget_last(self) -> None:
        """The agent that was started last is gone."""
        self.agents.ports = self.agents.ports[:-1]

    def tell(self, *leaving: ProcessId) -> None:
        """Tell every agent who leaves, as soon as all of them answer."""
        self.leaving = frozenset(leaving)

        def is_told() -> bool:
            try:
                self.agents.tell(leaving)
            except NotYetError:
                return False
            return True

        waited_for("all agents know who leaves", is_told, 60)

    def answer(self, tasks: Sequence[Task], clients: Sequence[ClientState]) -> Answer:
        """What the model answers while the agents know what they were told last."""
        state = Leaving.SET if self.leaving else Leaving.EMPTY
        return learner_assignor(OURS, Announcement(state=state, leaving=self.leaving))(tasks, clients)


@dataclass
class LearningGroup:
    """The group, and the agents of its processes."""

    group: RealGroup
    told: ToldAgents
    agent: Path
    """Its jar."""

    def start(self, process: ProcessId) -> None:
        """Start one more process, and tell all agents that no process leaves."""
        options = f"-javaagent:{self.agent} {OPTION}"
        self.group.start(process, JDK_JAVA_OPTIONS=options, **self.told.environment())
        self.told.tell()

    def given(self) -> list[list[GivenToThread]]:
        """What each process was given since its start, by its own log."""
        return [assignments(log.read_text()) for log in self.group.logs]

    def stop(self, process: ProcessId) -> None:
        """Stop the process that was started last, and tell the agents that no process leaves."""
        self.group.stop(process)
        self.told.forget_last()
        self.told.tell()


@pytest.fixture(scope="module")
def learning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LearningGroup]:
    """Two processes that have counted all records, with a standby for each task."""
    lab = Settings.from_environment()
    agent = maven.agent_jar(lab.versions, Cache(lab.cache)) / maven.AGENT_JAR
    name, told = "learning", ToldAgents(Agents("learning", ()), free_ports(3))
    with on_a_broker(tmp_path_factory.mktemp(name), name, SETTINGS, told.answer) as group:
        found = LearningGroup(group, told, agent)
        found.start(ONE)
        found.start(TWO)
        group.follow(lambda layout: sizes(layout) == [(3, 3), (3, 3)])
        group.wait_for_records()
        yield found


def sizes(layout: Layout) -> list[tuple[int, int]]:
    """Actives and copies of each process."""
    return sorted((len(placed.actives), len(placed.standbys)) for placed in layout.values())


@dataclass(frozen=True)
class Growth:
    """How two processes became three."""

    change: PredictedChange
    given: Sequence[GivenToThread]
    """What the two were given meanwhile."""


@pytest.fixture(scope="module")
def growth(learning: LearningGroup, tmp_path_factory: pytest.TempPathFactory) -> Growth:
    """A third process joins, which has no state."""
    before, given_before = learning.group.world(), learning.given()
    predicted = play(before.joined_by(Instance(process=THREE)), learning.told.answer, AT_ONCE)
    store(predicted, tmp_path_factory.mktemp("predicted") / "up.json")
    learning.start(THREE)
    expected = predicted.rounds[-1].given
    readings = learning.group.follow(lambda layout: layout == expected)
    given = [one for was, now in zip(given_before, learning.given(), strict=False) for one in now[len(was) :]]
    return Growth(changed(learning.group, before, predicted, readings, 3), given)


@pytest.fixture(scope="module")
def up(growth: Growth) -> PredictedChange:
    return growth.change


def test_every_assignment_of_a_scale_up_is_as_predicted(up: PredictedChange) -> None:
    assert [shown(one) for one in up.seen] == [shown(one) for one in up.answers]
    assert up.seen[-1] == up.predicted.rounds[-1].given
    assert sizes(up.seen[-1]) == [(2, 2), (2, 2), (2, 2)]
    assert up.moved == moved(up.before.owners(), up.predicted.world.owners())
    assert len(up.moved) == 2


def test_the_former_owner_keeps_the_standby_while_it_gives_the_task_up(growth: Growth) -> None:
    """Until the next rebalance nobody has the task; then no process says any more that it had it.

    That lasts some tens of milliseconds, so the logs are asked and not the broker.
    """
    gave_up = [one for one in growth.given if one.given_up]
    for one in gave_up:
        assert one.given_up <= one.standbys
    assert frozenset[TaskId]().union(*(one.given_up for one in gave_up)) == growth.change.moved


def test_a_process_that_leaves_is_emptied_before_it_goes(
    learning: LearningGroup, up: PredictedChange, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert up.seen
    before = learning.group.world()
    learning.told.tell(THREE)
    emptied = play(before, learning.told.answer, AT_ONCE)
    store(emptied, tmp_path_factory.mktemp("predicted") / "down.json")
    expected = emptied.rounds[-1].given
    assert not expected[THREE].actives
    change = changed(learning.group, before, emptied, learning.group.follow(lambda layout: layout == expected), 3)
    # The first layout is the one from before the announcement.
    assert change.seen[0] == up.seen[-1]
    assert [shown(one) for one in change.seen[1:]] == [shown(one) for one in change.answers[1:]]
    assert change.moved == {task for task, owner in before.owners().items() if owner == THREE}
    learning.stop(THREE)
    alone = learning.group.follow(lambda layout: sizes(layout) == [(3, 3), (3, 3)])
    assert alone
