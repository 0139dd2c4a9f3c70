"""Without a key no agent can be asked: that is said wherever something else would only follow from it."""

from dataclasses import replace

import pytest

from streamapp.core.actions.decision import Answer
from streamapp.core.decide import decide
from streamapp.core.facts.agent_reports import AgentSilent, AgentsSeen
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.policy import LearnerSource, ScalingPolicy
from streamapp.core.facts.snapshot import Snapshot
from streamapp.core.facts.tasks import TopologyUnknown
from tests.builders import a_reading, a_snapshot
from tests.support import example

WHY = "the operator has no key for agents"
KEYLESS = AgentsSeen({Ordinal(one): (AgentSilent(Ordinal(one), WHY),) for one in range(3)}, no_key=WHY)
ENABLED = ScalingPolicy(agent=True)
DEMANDED = replace(ENABLED, source=LearnerSource.ON_DEMAND)
BARE = example.members(3, standbys=False)


def keyless(*, standbys: bool = False, topology: TopologyUnknown | None = None) -> Snapshot:
    members = example.members(3, standbys=standbys)
    found = a_snapshot(members=members, agents=KEYLESS)
    return found if topology is None else replace(found, task_set=topology)


def conditions(snapshot: Snapshot, policy: ScalingPolicy) -> dict[str, tuple[Answer, str]]:
    return {one.type: (one.status, one.reason.name) for one in decide(snapshot, policy).conditions}


@pytest.mark.parametrize("topology", [None, TopologyUnknown("two sub-topologies")])
def test_a_scale_down_that_demands_agents_names_the_key(topology: TopologyUnknown | None) -> None:
    decision = decide(keyless(topology=topology), DEMANDED)
    assert (decision.reason.name, decision.detail) == ("AgentKeyMissing", WHY)
    assert "kubectl create secret generic streamapp-agent-key" in decision.reason.next_step


def test_where_a_rebalance_may_show_the_tasks_that_comes_first() -> None:
    shown_later = TopologyUnknown("the members have no state yet", may_show_after_a_join=True)
    assert decide(keyless(topology=shown_later), DEMANDED).reason.name == "TopologyUnknown"


@pytest.mark.parametrize(
    ("topology", "standbys", "told"),
    [
        (TopologyUnknown("two sub-topologies"), False, (Answer.FALSE, "AgentKeyMissing")),
        (None, False, (Answer.FALSE, "AgentKeyMissing")),
        (None, True, (Answer.TRUE, "StandbysDetected")),
    ],
)
def test_the_condition_of_learners_names_the_key_unless_standbys_do_without(
    topology: TopologyUnknown | None, standbys: bool, told: tuple[Answer, str]
) -> None:
    assert conditions(keyless(topology=topology, standbys=standbys), ENABLED)["LearnersAvailable"] == told


def test_where_no_agent_is_enabled_nothing_asks_for_a_key() -> None:
    snapshot = a_snapshot(readings=(a_reading(BARE),))
    told = {reason for _, reason in conditions(snapshot, ScalingPolicy()).values()}
    assert "AgentKeyMissing" not in told
