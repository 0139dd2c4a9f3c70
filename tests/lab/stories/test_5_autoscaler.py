"""A real HorizontalPodAutoscaler drives a StreamApp by its bounds, which needs no metric: no load decides when it acts.

Its controller looks every 15 s.
"""

import pytest

from lab.clusters.kubectl import wait_until
from lab.scenarios.observed_app import ObservedApp
from lab.scenarios.stream_app import Autoscaled
from tests.lab.promises import SESSION_TIMEOUT_SECONDS, require_no_record_lost
from tests.lab.stories.order import holds, lowered, writers_of_replicas
from tests.lab.stories.telling import Stage, keep_for_the_report

CONTROLLER = "kube-controller-manager"
"""The autoscaler writes as the process that it is a part of."""
BY_HAND = "kubectl-client-side-apply"


@pytest.mark.lab
@pytest.mark.guarantee(3)
@pytest.mark.guarantee(6)
@pytest.mark.guarantee(8)
@pytest.mark.timeout(600)
@pytest.mark.steps(5)
@pytest.mark.usefixtures("operator")
def test_autoscaler(stage: Stage) -> None:
    one = stage.application({"STREAMS_NUM_STANDBY_REPLICAS": "1"}, keys=20_000, rate=100)
    autoscaler = Autoscaled(one.app)
    with stage.story.step("two pods are up under load, scaled by hand"):
        one.app.preload()
        one.app.apply(None)  # no manifest has replicas, so it begins with one
        wait_until("it is made", lambda: one.app.granted() == 1, 60)
        one.app.scale(2)
        one.app.wait_until_converged(2)
        one.start_load()
        wait_until("nothing is amiss", lambda: is_sound(one), 120)
    began = one.clock()
    with stage.watched("statefulset") as statefulsets:
        with stage.story.step("bounds above raise it, without a hold"):
            autoscaler.apply(minReplicas=3, maxReplicas=3)
            wait_until("the autoscaler wrote 3", lambda: one.app.wish() == 3, 120)
            one.app.wait_until_converged(3)
            assert holds(statefulsets.changes()) == []
            assert writers_of_replicas(one) == {CONTROLLER}
            wait_until("nothing is amiss", lambda: is_sound(one), 120)
        with stage.story.step("bounds below lower it, and the pod goes after a hold"):
            autoscaler.apply(minReplicas=2, maxReplicas=2)
            wait_until("the autoscaler wrote 2", lambda: one.app.wish() == 2, 120)
            one.app.wait_until_converged(2)
            (made,) = lowered(statefulsets.changes())
            assert (made.before, made.after, made.hold_before) == (3, 2, made.step)
            assert writers_of_replicas(one) == {CONTROLLER}
        with stage.story.step("a manifest with replicas is named beside the autoscaler"):
            one.app.apply(2)
            wait_until("two writers are named", lambda: sound(one)[1] == "TwoWritersOfReplicas", 180)
            assert BY_HAND in one.app.condition("AutoscalingHealthy")["message"]
        with stage.story.step("nothing was lost, and nobody waited for a session timeout"):
            assert one.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS
            require_no_record_lost(one)
            keep_for_the_report(one, [(1, 2), (2, 3), (3, 2)], holds(statefulsets.changes()))


def sound(one: ObservedApp) -> tuple[str, str]:
    """Status and reason of the condition about autoscaling."""
    condition = one.app.condition("AutoscalingHealthy")
    return condition.get("status", ""), condition.get("reason", "")


def is_sound(one: ObservedApp) -> bool:
    """Whether nothing is amiss with autoscaling."""
    return sound(one) == ("True", "AutoscalingInOrder")
