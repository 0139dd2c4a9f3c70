"""An application with `group.protocol=streams` under exactly-once: standbys are raised for a removal, and put back."""

import pytest

from lab.clusters.kubectl import wait_until
from lab.scenarios.observed_app import record_of, start_all
from lab.scenarios.stream_app import ON_DEMAND
from streamapp.core.facts.group import StandbySetting
from tests.lab.promises import SESSION_TIMEOUT_SECONDS, require_no_record_lost
from tests.lab.stories.order import holds, lowered
from tests.lab.stories.telling import Stage, keep_for_the_report
from tests.lab.streams_groups import UNSET, standbys, until_left_as_it_was

KEYS = 120_000
"""Twenty thousand a task: more than the 10,000 records that a copy may lag."""
RAISED = StandbySetting(1, is_set=True)


@pytest.mark.lab
@pytest.mark.guarantee(1)
@pytest.mark.guarantee(2)
@pytest.mark.timeout(900)
@pytest.mark.steps(4)
@pytest.mark.usefixtures("operator")
def test_streams(stage: Stage) -> None:
    one = stage.application({"STREAMS_GROUP_PROTOCOL": "streams", "EXACTLY_ONCE": "true"}, keys=KEYS, rate=100)
    with stage.story.step("three pods are up under load, and the group asks for no standby"):
        start_all({one: 3}, lambda _: ON_DEMAND)
        assert standbys(one) == UNSET
    began = one.clock()
    with stage.watched("statefulset") as statefulsets:
        with stage.story.step("a scale-down that is called off leaves the group as it was"):
            one.app.scale(2)
            wait_until("standbys asked for", lambda: standbys(one) == RAISED, 120)
            assert "standbys" in one.record()
            one.app.scale(3)
            wait_until("standbys put back", lambda: standbys(one) == UNSET, 120)
            assert list(lowered(statefulsets.changes())) == []
        with stage.story.step("the pod goes behind standbys that were asked for, and they are put back"):
            one.app.wait_until_converged(3)
            one.app.scale(2)
            wait_until("standbys asked for", lambda: standbys(one) == RAISED, 120)
            one.app.wait_until_converged(2)
            (made,) = lowered(statefulsets.changes())
            assert (made.before, made.after, made.hold_before) == (3, 2, made.step)
            records = [record_of(change.object) for change in statefulsets.changes()]
            assert "standbys" in next(record for record in records if "step" in record)
            until_left_as_it_was(one)
        with stage.story.step("nothing was lost or doubled, and nobody waited for a session timeout"):
            assert one.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS
            require_no_record_lost(one)
            keep_for_the_report(one, [(3, 2), (2, 3), (3, 2)], holds(statefulsets.changes()))
