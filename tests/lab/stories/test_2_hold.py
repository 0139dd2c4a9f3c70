"""A classic application with a standby: grown, held, its leader killed, shrunk, its container killed, rolled out."""

from dataclasses import dataclass, field

import pytest

from lab.clusters.kubectl import wait_until
from lab.scenarios import operator_deployment
from lab.scenarios.api_changes import WatchHistory
from lab.scenarios.faults import kill_container, restarts
from lab.scenarios.observed_app import ObservedApp, start_all
from tests.lab.promises import SESSION_TIMEOUT_SECONDS, require_no_record_lost
from tests.lab.stories.order import holds, lowered, process_ids
from tests.lab.stories.telling import Stage, Story, keep_for_the_report

NEVER_NEAR_ENOUGH = {"acceptableRecoveryLag": 0}
"""Under load no copy is ever so near: a hold that lasts."""


@dataclass
class Hold:
    """The application, and all states that a watch saw of it."""

    story: Story
    one: ObservedApp
    statefulsets: WatchHistory
    pods: WatchHistory
    claims: dict[int, str] = field(default_factory=dict)
    ids: dict[int, str] = field(default_factory=dict)
    """Process IDs by ordinal."""

    def kept(self) -> tuple[dict[int, str], dict[int, str]]:
        """Claims and process IDs of the three pods that stay."""
        ids = {ordinal: each for ordinal, each in process_ids(self.one).items() if ordinal < 3}
        return {ordinal: self.one.claim_uid(ordinal) for ordinal in range(3)}, ids

    def grows(self) -> None:
        with self.story.step("a fourth pod comes without a hold"):
            self.one.app.scale(4)
            self.one.app.wait_until_converged(4)
            assert holds(self.statefulsets.changes()) == []
            self.claims, self.ids = self.kept()

    def outlives_a_container(self) -> None:
        with self.story.step("a container is killed: its pod, its claim and its process ID stay"):
            before = self.one.pods()
            kill_container(self.one.pod(1))
            wait_until("restarted", lambda: restarts(self.one.pod(1)) == 1, 120)
            self.one.app.wait_until_converged(4)
            assert (self.one.pods(), self.kept()) == (before, (self.claims, self.ids))

    def is_held(self) -> None:
        with self.story.step("desired replicas of 3 are held, and the resource says why"):
            self.one.app.apply(3, learners=NEVER_NEAR_ENOUGH)
            self.one.wait_until_held()
            wait_until("the hold is on record", lambda: "hold" in self.one.record(), 60)
            assert self.one.app.condition("ScaleDownHeld")["message"]
            assert self.one.app.granted() == 4

    def outlives_the_leader(self) -> None:
        kubectl, before = self.one.app.kubectl, self.one.record()
        with self.story.step("the leader is killed, and its successor goes on with the same hold"):
            former = operator_deployment.lease(kubectl)
            kill_container(operator_deployment.pods(kubectl)[operator_deployment.pod_name(kubectl)])
            wait_until("another epoch", lambda: self.one.record().get("epoch", [0])[0] > before["epoch"][0], 120)
            assert operator_deployment.lease(kubectl)["leaseTransitions"] > former["leaseTransitions"]
            hold = self.one.record()["hold"]
            assert (hold["id"], hold["since"]) == (before["hold"]["id"], before["hold"]["since"])
            assert self.one.app.granted() == 4

    def steps(self) -> None:
        with self.story.step("lag is allowed: one step, and only after the hold was on record"):
            self.one.app.apply(3)
            self.one.app.wait_until_converged(3)
            made = list(lowered(self.statefulsets.changes()))
            assert [(each.before, each.after) for each in made] == [(4, 3)]
            assert made[0].hold_before == made[0].step != ""
            assert self.one.steps() == [(4, 3)]

    def rolls_out(self) -> None:
        with self.story.step("another template restarts the pods one by one, each on its volume"):
            before = set(self.one.pods().values())
            self.one.change_template(story="rolled")
            wait_until("every pod is new", lambda: not before & set(self.one.pods().values()), 300)
            self.one.app.wait_until_converged(3)
            assert max(map(len, self.pods.pods_down(among=3))) == 1
            assert self.kept() == (self.claims, self.ids)
            assert len(list(lowered(self.statefulsets.changes()))) == 1


@pytest.mark.lab
@pytest.mark.guarantee(1)
@pytest.mark.guarantee(2)
@pytest.mark.guarantee(3)
@pytest.mark.guarantee(4)
@pytest.mark.guarantee(5)
@pytest.mark.guarantee(8)
@pytest.mark.timeout(900)
@pytest.mark.steps(8)
@pytest.mark.usefixtures("operator")
def test_hold(stage: Stage) -> None:
    one = stage.application({"STREAMS_NUM_STANDBY_REPLICAS": "1"}, keys=20_000, rate=200)
    with stage.story.step("three pods are up under load"):
        start_all({one: 3})
    began = one.clock()
    with stage.watched("statefulset") as statefulsets, stage.watched("pods") as pods:
        hold = Hold(stage.story, one, statefulsets, pods)
        hold.grows()
        # Before the leader is killed: its successor has not seen the container begin, and doubts the node's clock.
        hold.outlives_a_container()
        hold.is_held()
        hold.outlives_the_leader()
        hold.steps()
        hold.rolls_out()
        with stage.story.step("nothing was lost, and nobody waited for a session timeout"):
            assert one.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS
            require_no_record_lost(one)
            # Of a namespace that ends, a quota or a policy "forbidden" is said with other words.
            assert "forbidden: User" not in operator_deployment.logs(stage.kubectl)
            keep_for_the_report(one, [(3, 4), (4, 3)], holds(statefulsets.changes()))
