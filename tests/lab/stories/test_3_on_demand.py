"""An application under exactly-once without standbys: copies are made when a pod must go, and before a pod gets tasks.

What each member was given is read from every generation that the group's coordinator wrote, so no layout is missed.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from lab.clusters.kubectl import wait_until
from lab.scenarios.api_changes import WatchHistory
from lab.scenarios.layouts.generations import layouts_since
from lab.scenarios.layouts.task_layouts import TaskLayouts
from lab.scenarios.observed_app import ObservedApp, start_all
from lab.scenarios.stream_app import ON_DEMAND
from tests.lab.promises import SESSION_TIMEOUT_SECONDS, require_no_record_lost
from tests.lab.stories.order import holds, lowered
from tests.lab.stories.telling import Stage, Story, keep_for_the_report

KEYS = 120_000
"""Twenty thousand a task: more than the 10,000 records that a copy may lag."""
ALWAYS = datetime.fromtimestamp(0, UTC)


@dataclass
class OnDemand:
    """The application, and all states that a watch saw of its StatefulSet."""

    story: Story
    one: ObservedApp
    statefulsets: WatchHistory

    def seen_since(self, since: datetime) -> TaskLayouts:
        """Every layout since then."""
        return layouts_since(self.one.bootstrap, self.one.app.application.application_id, since)

    def shrinks(self) -> None:
        with self.story.step("the last pod learns elsewhere and holds nothing when it is removed") as since:
            self.one.app.scale(2)
            self.one.app.wait_until_converged(2)
            (made,) = lowered(self.statefulsets.changes())
            assert (made.before, made.after, made.hold_before) == (3, 2, made.step)
            seen = self.seen_since(since)
            taken = datetime.fromisoformat(self.one.app.status()["lastSteps"][0]["at"])
            assert seen.at(taken).holds_nothing(2)
            assert len(seen.moves()) >= 2

    def grows(self) -> None:
        with self.story.step("two pods come: the one that was never there gets its task behind a learner") as since:
            self.one.app.scale(4)
            self.one.app.wait_until_converged(4)
            wait_until("tasks on all pods", lambda: self.seen_since(since).shares() == [1, 1, 2, 2], 180, 1)
            self.one.app.wait_until_converged(4)
            to_the_new_one = [move for move in self.seen_since(since).moves() if move.after == 3]
            assert [move.had_copy for move in to_the_new_one] == [True]

    def moved_nothing_cold(self) -> None:
        with self.story.step("no task ever went to a process that had neither a copy nor state"):
            assert [move for move in self.seen_since(ALWAYS).moves() if not move.had_state] == []
            assert len(holds(self.statefulsets.changes())) == 1


@pytest.mark.lab
@pytest.mark.guarantee(1)
@pytest.mark.guarantee(7)
@pytest.mark.timeout(900)
@pytest.mark.steps(5)
@pytest.mark.usefixtures("operator")
def test_on_demand(stage: Stage) -> None:
    settings = {"STREAMS_NUM_STANDBY_REPLICAS": "0", "EXACTLY_ONCE": "true"}
    one = stage.application(settings, keys=KEYS, rate=100)
    with stage.story.step("three pods are up under load, each with an agent at work"):
        start_all({one: 3}, lambda _: ON_DEMAND)
        wait_until("every agent answers", lambda: agents(one) == ["Active"] * 3, 120)
        assert one.app.status()["learnerSource"] == "OnDemand"
    began = one.clock()
    with stage.watched("statefulset") as statefulsets:
        on_demand = OnDemand(stage.story, one, statefulsets)
        on_demand.shrinks()
        on_demand.grows()
        on_demand.moved_nothing_cold()
        with stage.story.step("nothing was lost or doubled, and nobody waited for a session timeout"):
            assert one.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS
            require_no_record_lost(one)
            keep_for_the_report(one, [(3, 2), (2, 4)], holds(statefulsets.changes()))


def agents(one: ObservedApp) -> list[str]:
    """What the resource says of the agent of each pod."""
    return [member.get("agent", "") for member in one.app.status().get("members", [])]
