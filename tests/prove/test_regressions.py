"""What the sweep has found on the way, each as the story that showed it, and traps of other operators as stories."""

import pytest

from tests.prove.play import play
from tests.prove.story import Disturbance, Story


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(
            "down-by-slow-controllers seed=1 removal:1:wish:3",
            id="stuck for ever after down, then up again in a moment",
        ),
        pytest.param(
            "down-by-slow-controllers seed=1 removal:1:wish:3 removal:1:kill:2",
            id="the pod that was spared dies all the same",
        ),
        pytest.param("down-up-down seed=1 second:33:slow:30000", id="behind for ever in the status: nobody looked"),
        pytest.param(
            "down-3-2 seed=1 kafka:39:ghost", id="never seen to converge: a copy given back says nothing of itself"
        ),
        pytest.param("down-4-2 seed=1 kafka:44:kill", id="a copy that died before anybody could know"),
        pytest.param("kill-in-hold seed=1 kafka:9:api-slow:3", id="an old judgement, since the reads took 3 s each"),
        pytest.param("drain-4-2 seed=1 kafka:19:api-slow:3", id="an old judgement of drained pods"),
        pytest.param("template-in-hold seed=1 kafka:62:api-slow:3", id="an old judgement of a restart"),
        pytest.param(
            "down-up-down-far-behind seed=1 kafka:26:api-slow:3", id="a raise by late watches, slowly answered"
        ),
        pytest.param(
            "two-replicas-two-apps seed=1 kafka:29:api-slow:4", id="a Lease was lost to answers of four seconds"
        ),
        pytest.param(
            "two-replicas-two-apps seed=163919636000001 second:40:standby-freezes:25 kafka:111:cut:25 "
            "second:18:standby-dies read:164:cut:25",
            id="no replica was there to make a raise",
        ),
        pytest.param(
            "neighbours-agents-away seed=1 kafka:107:api-slow:3",
            id="a raise that a record on its way overtook, slowly answered",
        ),
        pytest.param(
            "clock-set-back seed=1 write:18:freeze-sending-raise:18",
            id="nobody else is there to refuse what a lone replica sent before a freeze",
        ),
        pytest.param(
            "clock-set-back seed=1 write:20:freeze-raise:18",
            id="the listed member of a pod that was taken and given back counted as running",
        ),
        pytest.param("down-4-3 seed=1 removal:1:die", id="a marker was left by who died between two writes"),
        pytest.param(
            "leader-freezes-in-hold seed=1 kafka:58:clock-step:60", id="a clock set forward made one reading two"
        ),
        pytest.param("clock-set-back seed=1", id="a clock set back made older desired replicas the newest"),
        pytest.param("clock-ahead seed=1 kafka:20:kill", id="a dead copy counted, since the node's clock was behind"),
        pytest.param(
            "never-ran seed=246668631000001 kafka:5:timeout-after", id="a raise waited for brokers that did not answer"
        ),
        pytest.param(
            "never-ran seed=1000032 write:5:crash-after",
            id="a pod that never ran, on a volume on which another one had",
        ),
        pytest.param(
            "budget-raise seed=1 kafka:3:fail-over:960",
            id="a group that a new coordinator shows empty gave its place for learners back",
        ),
        pytest.param(
            "streams-demand-down-3-2 seed=2 second:20:pause:1",
            id="standbys were put back in a pause, and a pod left by them right after it",
        ),
        pytest.param("older-rival seed=1", id="an older rival that came late got pods beside those of the owner"),
        pytest.param("older-rival-new-process seed=1", id="the same, in a new process that has not read the group"),
        pytest.param(
            "replicas-namespace-silent-in-hold seed=1 write:22:freeze-sending:25",
            id="a late removal passed, since a new leader waited for a silent namespace",
        ),
        pytest.param(
            "namespace-silent seed=31000003 second:2:skew:2 write:24:freeze-sending-raise:9",
            id="the same without a Lease, and below what was wished meanwhile",
        ),
        pytest.param(
            "budget-raise seed=1000018 second:2:skew:2 second:38:wish@1:1 second:18:kill removal:1:template:5 "
            "told:73:freeze:12",
            id="a new leader gave two places of one: it took for begun what it had not read yet",
        ),
        pytest.param(
            "owner-deleted-slowly seed=31000015 kafka:19:wish@1:3",
            id="a StatefulSet that is made with the desired replicas is a raise to them",
        ),
        pytest.param(
            "node-drain seed=1 write:15:delete-app:1", id="the budget of a StreamApp that is being deleted opens"
        ),
        pytest.param("streams-demand-deleted seed=1", id="standbys stayed raised when the StreamApp was deleted"),
        pytest.param("streams-rollout seed=1", id="a rollout of a streams group waited for ends that nobody read"),
        pytest.param(
            "streams-demand-down-4-2 seed=1 write:37:wish:4", id="a raise took the standbys from a pod that was leaving"
        ),
        pytest.param(
            "streams-two-raises seed=1 write:8:freeze-sending-raise:9",
            id="an operator that was frozen took its successor's standbys for another hand's",
        ),
        pytest.param("streams-threads-3-2 seed=1", id="a streams group was read twice within one heartbeat"),
        pytest.param(
            "streams-demand-down-4-2 seed=41000008 agent:8:crash-after second:23:template:6",
            id="a rollout and a scale-down of a streams group waited for each other",
        ),
        pytest.param(
            "streams-demand-down-4-2 seed=41000004 told:47:wipe second:18:api-slow:3",
            id="a settled streams group whose members take up their standbys a little later",
        ),
        pytest.param(
            "kill-behind-a-fast-clock seed=1 read:17:stale:4",
            id="one stale read of the pods placed a new member in the container before its own",
        ),
        pytest.param(
            "streams-demand-rollout seed=127033253000001 second:2:skew:2 config-write:1:refused",
            id="one refused write of the group's setting let a rollout restart a pod cold",
        ),
        pytest.param(
            "streams-demand-set-in-hold seed=127033253000001 kafka:45:api-slow:3 config-write:1:freeze:25 "
            "read:44:freeze:12",
            id="a raise that arrived late overwrote another hand's value, and stayed",
        ),
        pytest.param(
            "streams-demand-set-in-hold seed=80000002 config-write:1:freeze:12",
            id="a frozen operator took its own late raise for another hand's, and lost what that had set",
        ),
        pytest.param(
            "streams-demand-down-3-2 seed=3 config-write:1:freeze:25 second:20:wish:4 second:32:wish:2 "
            "second:90:wish:4",
            id="the same after two other wishes: the users' value was lost for good",
        ),
        pytest.param(
            "streams-demand-rollout seed=1 second:14:wish:4",
            id="standbys that were put back for a raise were not raised again, until a user gave up",
        ),
        pytest.param(
            "streams-raise-beside-a-hold seed=77000002 config-write:2:set-standbys",
            id="what another hand set as well is put back, and that is no raise",
        ),
        pytest.param(
            "streams-demand-rollout seed=1 kafka:69:kill:2", id="a pod died in a rollout, and a record was left"
        ),
        pytest.param(
            "streams-demand-up-down seed=1 told:19:kill:1", id="a pod died after up and down, and a record was left"
        ),
        pytest.param(
            "streams-demand-down-4-2 seed=11 read:108:kill:0",
            id="standbys stayed for a live member that was seen in the container before its own",
        ),
        pytest.param(
            "streams-demand-down-4-2 seed=1 kafka:85:kill",
            id="a step ended although the tasks of a streams group lay with the member of a container that had ended",
        ),
        pytest.param(
            "streams-kill seed=1 kafka:10:timeout-before",
            id="a status said Converged while a task lay with the member of a container that had ended",
        ),
        pytest.param(
            "bare-rollout seed=1 second:200:kill:1 told:66:crash-after",
            id="a new process took the member of a container that had ended for one of the next container",
        ),
        pytest.param(
            "rollout-beside-an-ill-leaver seed=1 write:3:freeze-sending:8",
            id="a pod restarted beside one that left and was down, because its template was the older one",
        ),
        pytest.param(
            "streams-demand-unset-in-hold seed=1 config-write:1:freeze:12",
            id="standbys of a frozen process were never put back",
        ),
        pytest.param(
            "streams-demand-deleted seed=1 config-write:1:freeze:12",
            id="a frozen process set standbys of a StreamApp that had been deleted",
        ),
        pytest.param(
            "streams-demand-kill seed=153762636000001 config-write:1:crash-before agent:54:silent:1 "
            "config-write:3:freeze-raise:9",
            id="a process that was frozen set standbys that its successor had put back",
        ),
        pytest.param(
            "streams-demand-down-4-2 seed=224292720000001 second:2:skew:2 second:1:kill config-write:1:freeze-raise:9",
            id="a process that was frozen set standbys before a raise",
        ),
        pytest.param(
            "streams-demand-one-down-4-3 seed=224292720000001 second:2:skew:2 second:1:kill "
            "config-write:1:freeze-raise:9",
            id="a process that was frozen set standbys in a group that had one",
        ),
        pytest.param(
            "streams-demand-deleted-slowly seed=1 config-write:2:freeze:8",
            id="a process that was frozen set standbys of a StreamApp whose deletion waits for its pods",
        ),
        pytest.param(
            "streams-demand-pause seed=101000019 kafka:69:claims-stay config-write:5:set-standbys "
            "removal:1:brokers-slow:4",
            id="an application was said to have converged on a look before the last change",
        ),
        pytest.param(
            "streams-demand-pause seed=1 kafka:67:set-standbys:1",
            id="the judge blamed a raise that went on record just after another hand had set the same value",
        ),
        pytest.param(
            "streams-undescribed-kill seed=1 told:21:kill:1",
            id="the judge asked for ready pods at the end of a step, though brokers described the group again",
        ),
        pytest.param(
            "streams-demand-down-3-2 seed=1 told:28:wish:3",
            id="a step ended by a look from before a rebalance and words of agents from after its begin",
        ),
        pytest.param(
            "owner-deleted-slowly seed=1 second:20:wish@1:3",
            id="the judge took a creation that waits for a rival's end for a raise",
        ),
        pytest.param(
            "down-up-without-claims seed=1 told:15:crash-after",
            id="a look from before its own evictions showed a pod that had gone as one that runs its tasks",
        ),
        pytest.param(
            "down-up-without-claims seed=1 kafka:17:api-slow:1",
            id="a raise to as many as before the last removal was none until the next pass had read",
        ),
        pytest.param(
            "down-4-3 seed=1 second:18:api-slow:1 removal:1:wish:4",
            id="the same right after the removal, with other claims",
        ),
        pytest.param(
            "budget-rollout seed=20261129000046 read:365:timeout-before kafka:270:deny:13 agent:360:crash-after "
            "event:154:delayed:5",
            id="a StreamApp whose StatefulSet a policy refused gave its place away while its learners went on",
        ),
        pytest.param("budget-raise seed=1 second:20:dry-run:100", id="the same in a dry run"),
        pytest.param("budget-rollout seed=1 second:80:break-spec@1:100", id="the same with an invalid spec"),
        pytest.param(
            "streams-tight-memory seed=1 write:11:wish:1", id="a hold for good reason that nobody gave up in the end"
        ),
        pytest.param(
            "streams-demand-changelog-unseen seed=1 kafka:37:freeze:12",
            id="a process that took over believed that a streams group has no changelog",
        ),
        pytest.param(
            "streams-demand-changelog-unseen seed=1 read:40:crash-before",
            id="so did one that never saw the changelog, after it was seen again",
        ),
        pytest.param(
            "container-renamed-beside-a-sidecar seed=20261129000053 second:2:skew:-2 kafka:85:freeze:12 "
            "read:326:crash-before event:76:delayed:60 removal:2:slow:30000",
            id="a process that woke up beside its successors read all anew, and took a pod",
        ),
    ],
)
def test_a_story_that_once_went_wrong_ends_well(story: str) -> None:
    assert play(Story.parse(story)).wrongs == ()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_half_an_hour_of_a_load_like_a_saw_never_leaves_the_application_smaller_than_it_is_wished() -> None:
    teeth = tuple(Disturbance("second", 20 + 45 * count, "wish", 2 + count % 3) for count in range(40))
    outcome = play(Story("kill", 1, teeth))
    assert (outcome.wrongs, outcome.hits["wish"], outcome.notes["grants"] > 5) == ((), 40, True)
