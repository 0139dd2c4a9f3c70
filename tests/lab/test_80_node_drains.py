"""Two nodes are drained in turn under load: `kubectl drain` ends by itself, and nobody waits for a restore.

Two applications side by side, whose evictions wait for copies: one with learners on demand, and one with standbys and
without agents. Only their own pods are drained; the broker and the operator stay on the first node.
"""

import os
from collections.abc import Iterator

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl, wait_until
from lab.clusters.second_node import SecondNode, second_node
from lab.node.layout import FIRST, Layout
from lab.node.namespaces import INSIDE
from lab.scenarios import operator_deployment
from lab.scenarios.demo_application import DemoApplication
from lab.scenarios.departures import IMAGES
from lab.scenarios.layouts.task_layouts import layouts
from lab.scenarios.observed_app import ObservedApp, remove_all, start_all, unique_name
from lab.scenarios.stream_app import ON_DEMAND
from lab.settings import Settings
from tests.lab import on_demand
from tests.lab.node_drains import FOLLOWS, cordoned, drain, evict, nodes_of
from tests.lab.promises import SESSION_TIMEOUT_SECONDS, require_no_record_lost

pytestmark = [
    pytest.mark.proofs,
    pytest.mark.timeout(600),
    pytest.mark.skipif(INSIDE not in os.environ, reason="only the embedded lab adds a node to itself"),
]
KINDS = {"bare": "0", "standby": "1"}
"""Standbys of each."""


@pytest.fixture(scope="module")
def node(session: Session, operator: None) -> Iterator[SecondNode]:  # noqa: ARG001 (its pods must be on the first node)
    """Give a second node for all tests of this file."""
    with second_node(session, Layout(Settings.from_environment().state), images=IMAGES) as made:
        yield made


@pytest.fixture(scope="module")
def kinds(kubectl: Kubectl, bootstrap: str, node: SecondNode) -> Iterator[dict[str, ObservedApp]]:  # noqa: ARG001 (pods of both nodes)
    """Deploy both with three pods under load."""
    made = {
        kind: DemoApplication(
            unique_name(f"drains-{kind}"),
            {"STREAMS_NUM_STANDBY_REPLICAS": standbys},
            on_demand.KEYS,
            100,
            f"t-drains-{kind}",
            cpu_request="20m",
        )
        for kind, standbys in KINDS.items()
    }
    remove_all(kubectl, bootstrap, list(made.values()))
    observed = {kind: ObservedApp.of(kubectl, bootstrap, application) for kind, application in made.items()}
    start_all(dict.fromkeys(observed.values(), 3), lambda one: {**FOLLOWS, **(ON_DEMAND if _is_bare(one) else {})})
    yield observed
    remove_all(kubectl, bootstrap, list(made.values()))


def _is_bare(one: ObservedApp) -> bool:
    return one.app.application.settings["STREAMS_NUM_STANDBY_REPLICAS"] == "0"


def test_at_rest_no_pod_can_be_evicted_and_the_condition_says_why(kinds: dict[str, ObservedApp]) -> None:
    bare = kinds["bare"]
    for ordinal in range(3):
        assert "Cannot evict pod" in evict(bare, ordinal)
    condition = bare.app.condition("DisruptionAllowed")
    assert (condition["status"], condition["reason"]) == ("False", "NoDrainedNode")


@pytest.mark.parametrize("name", ["lab-2", FIRST.name])
def test_a_node_is_drained_and_its_pods_move_only_when_their_tasks_are_covered(
    kinds: dict[str, ObservedApp], kubectl: Kubectl, bootstrap: str, name: str
) -> None:
    before = {kind: (one.pods(), nodes_of(one), one.clock()) for kind, one in kinds.items()}
    print("nodes before", {kind: nodes for kind, (_, nodes, _) in before.items()})  # noqa: T201 (a figure for docs)
    bare = kinds["bare"]
    with layouts(bootstrap, bare.app.application.application_id) as seen, cordoned(kubectl, name):
        drain(kubectl, name)
        for one in kinds.values():
            one.app.wait_until_converged(3)
            assert name not in nodes_of(one).values()
    for kind, one in kinds.items():
        uids, nodes, began = before[kind]
        moved = {ordinal for ordinal, there in nodes.items() if there == name}
        assert {ordinal for ordinal, uid in one.pods().items() if uid != uids[ordinal]} == moved
        gap = one.worst_gap_since(began)
        print(kind, f"worst gap {gap:.2f} s with {len(moved)} of 3 pods moved")  # noqa: T201 (a figure for docs)
        assert gap < SESSION_TIMEOUT_SECONDS
    away = {ordinal for ordinal, there in before["bare"][1].items() if there == name}
    assert [move for move in seen.moves() if move.before in away and not move.had_state] == []


def test_while_no_operator_runs_a_drain_waits_and_ends_when_one_runs_again(
    kinds: dict[str, ObservedApp], kubectl: Kubectl, node: SecondNode
) -> None:
    bare = kinds["bare"]
    wait_until("a budget that is closed", lambda: "Cannot evict pod" in evict(bare, 0), 60)
    name = max(nodes_of(bare).values(), key=list(nodes_of(bare).values()).count)
    kubectl.run("scale", "--namespace", operator_deployment.NAMESPACE, "deployment/streamapp-operator", "--replicas=0")
    with cordoned(kubectl, name):
        kubectl.run("cordon", name)
        for ordinal in nodes_of(bare):
            assert "Cannot evict pod" in evict(bare, ordinal)
        deployment = ("--namespace", operator_deployment.NAMESPACE, "deployment/streamapp-operator")
        kubectl.run("scale", *deployment, "--replicas=2")
        drain(kubectl, name)
        bare.app.wait_until_converged(3)
    assert node.name


@pytest.mark.parametrize("kind", KINDS)
def test_no_record_was_lost(kinds: dict[str, ObservedApp], kind: str) -> None:
    require_no_record_lost(kinds[kind])
