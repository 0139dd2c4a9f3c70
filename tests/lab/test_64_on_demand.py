"""Tasks learn elsewhere and move before their pod goes: no standing standbys, no change of the image, nobody notices.

Two applications side by side, at least once and exactly once, each with the agent. Those that have standbys besides are
played in the part `on-demand` (`test_66_on_demand_with_standbys`).
"""

import os
from collections.abc import Iterator

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.clusters.second_node import second_node
from lab.node.layout import FIRST, Layout
from lab.node.namespaces import INSIDE
from lab.scenarios.departures import IMAGES
from lab.scenarios.layouts.task_layouts import TaskLayouts, layouts
from lab.scenarios.observed_app import ObservedApp
from lab.settings import Settings
from tests.lab import on_demand
from tests.lab.node_drains import FOLLOWS, cordoned, drain, evict, nodes_of, pods_of
from tests.lab.on_demand import Scaled
from tests.lab.plugin import run_kubectl
from tests.lab.promises import SESSION_TIMEOUT_SECONDS, require_no_record_lost

pytestmark = [pytest.mark.lab, pytest.mark.timeout(420)]
KINDS = {
    "bare": {"STREAMS_NUM_STANDBY_REPLICAS": "0"},
    "bare-exactly-once": {"STREAMS_NUM_STANDBY_REPLICAS": "0", "EXACTLY_ONCE": "true"},
}


@pytest.fixture(scope="module")
def kinds(kubectl: Kubectl, bootstrap: str, operator: None) -> Iterator[dict[str, ObservedApp]]:  # noqa: ARG001 (it must run)
    """Deploy all of them with three pods under load."""
    with on_demand.applications(kubectl, bootstrap, KINDS) as made:
        yield made


@pytest.fixture(scope="module", autouse=True)
def bare_from_the_start(kinds: dict[str, ObservedApp], bootstrap: str) -> Iterator[TaskLayouts]:
    """All layouts of one of them: what lies on a volume may be of a test that is long over."""
    with layouts(bootstrap, kinds["bare"].app.application.application_id) as seen:
        yield seen


@pytest.fixture(scope="module")
def drained(kinds: dict[str, ObservedApp], bootstrap: str) -> dict[str, Scaled]:
    """Scale all of them down by one."""
    return on_demand.drain_the_last_of_three(kinds, bootstrap)


@pytest.fixture(scope="module")
def grown(kinds: dict[str, ObservedApp], drained: dict[str, Scaled], bootstrap: str) -> dict[str, Scaled]:
    """Scale those that were drained up by two."""
    assert drained.keys() == kinds.keys()
    return on_demand.grow_by_a_new_pod(kinds, bootstrap)


@pytest.mark.parametrize("kind", KINDS)
def test_the_agents_are_at_work_in_every_pod(kinds: dict[str, ObservedApp], kind: str) -> None:
    on_demand.require_agents(kinds[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_a_pod_is_drained_before_it_goes(kinds: dict[str, ObservedApp], drained: dict[str, Scaled], kind: str) -> None:
    on_demand.require_drained(kinds[kind], drained[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_a_pod_that_comes_gets_tasks_only_behind_learners(grown: dict[str, Scaled], kind: str) -> None:
    on_demand.require_grown(grown[kind])


def test_several_pods_are_drained_and_go_together(
    kinds: dict[str, ObservedApp], bare_from_the_start: TaskLayouts
) -> None:
    one, seen = kinds["bare"], bare_from_the_start
    earlier = len(seen.moves())
    one.app.scale(6)
    one.app.wait_until_converged(6)
    began = one.clock()
    one.app.scale(3)
    one.app.wait_until_converged(3)
    assert one.steps()[0] == (6, 3)
    before = seen.at(on_demand.granted_at(one))
    assert all(before.holds_nothing(ordinal) for ordinal in (3, 4, 5))
    moves = seen.moves()[earlier:]
    assert len(moves) >= 3
    # What a pod was the owner of before lies on its volume still, and is as good as a copy.
    assert [move for move in moves if not move.had_state] == []
    assert seen.failure is None
    assert one.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS


def test_a_pod_is_drained_before_it_restarts_with_a_new_volume(
    kinds: dict[str, ObservedApp], bare_from_the_start: TaskLayouts, session: Session
) -> None:
    one = kinds["bare"]
    before, claim, began = one.pods(), one.claim_uid(1), one.clock()
    command = ("streamapp", "restart", "--namespace", one.app.namespace, one.app.name, "--ordinal", "1")
    earlier = len(bare_from_the_start.moves())
    assert run_kubectl(session, *command, "--new-volume", "--yes", "--wait").code == 0
    one.app.wait_until_converged(3)
    after, moves = one.pods(), bare_from_the_start.moves()[earlier:]
    assert [ordinal for ordinal in before if before[ordinal] != after[ordinal]] == [1]
    assert one.claim_uid(1) != claim
    assert [move for move in moves if move.before == 1]
    # What a pod was the owner of before lies on its volume still, and is as good as a copy; but for the new volume.
    assert [move for move in moves if not (move.had_copy if move.after == 1 else move.had_state)] == []
    assert bare_from_the_start.failure is None
    assert one.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS


@pytest.mark.timeout(600)
@pytest.mark.skipif(INSIDE not in os.environ, reason="only the embedded lab adds a node to itself")
def test_a_node_is_drained_and_each_pod_is_evicted_when_it_is_empty(
    kinds: dict[str, ObservedApp], bare_from_the_start: TaskLayouts, session: Session, kubectl: Kubectl
) -> None:
    """From the only node to a second one."""
    one = kinds["bare"]
    one.patch(FOLLOWS)
    one.app.wait_until_converged(3)
    wait_until("closed at rest", lambda: one.app.condition("DisruptionAllowed").get("reason") == "NoDrainedNode", 60)
    assert "Cannot evict pod" in evict(one, 0)
    before, began, earlier = one.pods(), one.clock(), len(bare_from_the_start.moves())
    with second_node(session, Layout(Settings.from_environment().state), images=IMAGES) as node:
        with cordoned(kubectl, FIRST.name):
            drain(kubectl, FIRST.name, pods_of(one))
            one.app.wait_until_converged(3)
            assert set(nodes_of(one).values()) == {node.name}
        assert not set(one.pods().values()) & set(before.values())
        assert [move for move in bare_from_the_start.moves()[earlier:] if not move.had_state] == []
        assert bare_from_the_start.failure is None
        assert one.worst_gap_since(began) < SESSION_TIMEOUT_SECONDS
        require_no_record_lost(one)


@pytest.mark.parametrize("kind", KINDS)
def test_no_record_was_lost_and_where_it_is_promised_none_was_doubled(kinds: dict[str, ObservedApp], kind: str) -> None:
    require_no_record_lost(kinds[kind])
