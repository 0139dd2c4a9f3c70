"""`disown`: the way back, from an adopted StatefulSet and from one that is adopted by half."""

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from streamapp.api.names import APP_LABEL, HOLD_RECORD, LEASE, POD_NAME_LABEL
from streamapp.cli.commands import adoption
from tests.cli.adopting import LABELS, NAME, World, a_statefulset
from tests.cli.cluster import NAMESPACE, Cluster
from tests.cli.conftest import Ran, Run

Json = dict[str, Any]
ADOPT = ("adopt", f"statefulset/{NAME}", "--yes")
DISOWN = ("disown", NAME, "--yes")
WRITES = [
    ("PATCH", "streamapps"),
    ("DELETE", "statefulsets"),
    ("POST", "statefulsets"),
    ("PATCH", "services"),
    ("PATCH", "poddisruptionbudgets"),
    *[("PATCH", "pods")] * 3,
    ("DELETE", "streamapps"),
]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adoption, "LOOK_AGAIN_SECONDS", 0.002)


@pytest.fixture
def adopted(cluster: Cluster, run: Run) -> World:
    """Give a StatefulSet that is adopted; its writes are forgotten."""
    world = World(cluster).start()
    assert run(*ADOPT).code == 0
    cluster.do(lambda server: server.writes.clear())
    return world


def is_free(world: World) -> None:
    """The StatefulSet is a plain one, and nothing is the operator's any more."""
    assert not world.has("streamapps")
    statefulset = world.get("statefulsets")
    assert statefulset["metadata"].get("ownerReferences") in (None, [])
    assert statefulset["spec"]["selector"] == {"matchLabels": LABELS}
    assert (statefulset["spec"]["replicas"], statefulset["spec"]["serviceName"]) == (3, NAME)
    uid = statefulset["metadata"]["uid"]
    for name, pod in world.pods().items():
        assert world.owners("pods", name) == [("StatefulSet", uid)]
        assert APP_LABEL not in pod["metadata"]["labels"]
    service = world.get("services")
    assert (service["spec"]["selector"], world.owners("services")) == (LABELS, [])


def codes(ran: Ran) -> set[str]:
    return {one["code"] for one in ran.document["findings"] if one["severity"] == "error"}


def test_it_gives_the_statefulset_back_without_a_new_pod(adopted: World, run: Run) -> None:
    before = adopted.uids()
    ran = run(*DISOWN)
    assert ran.code == 0, ran.err
    assert "StatefulSet demo/counter belongs to no StreamApp. 3 pods run on, 0 restarted meanwhile." in ran.out
    assert adopted.uids() == before
    is_free(adopted)
    assert adopted.cluster.written == WRITES
    made = adopted.get("statefulsets")["spec"]
    assert made["updateStrategy"] == {"type": "OnDelete"}
    assert made["template"] == a_statefulset()["spec"]["template"]
    assert made["volumeClaimTemplates"] == a_statefulset()["spec"]["volumeClaimTemplates"]
    budget = adopted.get("poddisruptionbudgets")
    assert budget["spec"] == {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}}


def test_the_budget_has_all_pods_again_where_the_operator_had_left_one_out(adopted: World, run: Run) -> None:
    budget = adopted.get("poddisruptionbudgets")
    left_out = {"key": POD_NAME_LABEL, "operator": "NotIn", "values": [f"{NAME}-2"]}
    spec = {"maxUnavailable": 0, "selector": {**budget["spec"]["selector"], "matchExpressions": [left_out]}}
    metadata = {**budget["metadata"], "annotations": {LEASE: "7"}}
    adopted.cluster.do(lambda server: server.put("poddisruptionbudgets", {"metadata": metadata, "spec": spec}))
    assert run(*DISOWN).code == 0
    free = adopted.get("poddisruptionbudgets")
    assert free["spec"] == {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}}
    assert LEASE not in free["metadata"].get("annotations", {})


def test_a_dry_run_prints_the_statefulset_and_writes_nothing(adopted: World, run: Run) -> None:
    ran = run("disown", NAME, "--dry-run")
    assert (ran.code, adopted.cluster.written) == (0, [])
    made = yaml.safe_load(ran.out)
    assert (made["kind"], made["spec"]["replicas"], made["spec"]["selector"]) == (
        "StatefulSet",
        3,
        {"matchLabels": LABELS},
    )


@pytest.mark.parametrize("fault", ["before", "after"])
@pytest.mark.parametrize("number", range(1, len(WRITES) + 1))
def test_a_run_that_is_cut_off_at_any_write_is_continued_by_the_next(
    adopted: World, run: Run, number: int, fault: str
) -> None:
    before, faults = adopted.uids(), iter([None] * (number - 1) + [fault])
    adopted.cluster.do(lambda server: setattr(server, "fault", lambda _: next(faults, None)))
    first = run(*DISOWN)
    assert first.code == (0 if WRITES[number - 1][0] == "DELETE" else 1)
    if first.code:
        second = run(*DISOWN)
        assert second.code == 0, second.err
    assert adopted.uids() == before
    is_free(adopted)


@pytest.mark.parametrize("number", range(2, 8))
def test_an_adoption_that_is_given_up_half_way_leaves_the_statefulset_as_it_was(
    cluster: Cluster, run: Run, number: int
) -> None:
    world = World(cluster).start()
    before, was = world.uids(), world.get("statefulsets")
    faults = iter([None] * (number - 1) + ["busy"])
    cluster.do(lambda server: setattr(server, "fault", lambda _: next(faults, None)))
    assert run(*ADOPT).code == 1
    cluster.do(lambda server: setattr(server, "fault", lambda _: None))
    ran = run(*DISOWN)
    assert ran.code == 0, ran.err
    is_free(world)
    now = world.get("statefulsets")
    assert (now["metadata"]["uid"], world.uids()) == (was["metadata"]["uid"], before)
    assert now["spec"] == was["spec"]


def test_a_strategy_that_would_restart_a_pod_is_not_given_back(cluster: Cluster, run: Run) -> None:
    world = World(cluster).start()
    faults = iter([None] * 6 + ["busy"])
    cluster.do(lambda server: setattr(server, "fault", lambda _: next(faults, None)))
    assert run(*ADOPT).code == 1
    pod = world.get("pods", "counter-1")
    labels = {**pod["metadata"]["labels"], "controller-revision-hash": "made-anew-meanwhile"}
    world.put("pods", {**pod, "metadata": {**pod["metadata"], "labels": labels}})
    assert run(*DISOWN).code == 0
    is_free(world)
    assert world.get("statefulsets")["spec"]["updateStrategy"]["type"] == "OnDelete"


AUTOSCALER = {
    "metadata": {"name": "words"},
    "spec": {"scaleTargetRef": {"apiVersion": "streamapp.dev/v1alpha1", "kind": "StreamApp", "name": NAME}},
}


@pytest.mark.parametrize("code", ["StepOpen", "ReplicasDiffer", "PodsUnwell", "AutoscalerWaits", "ClaimsOwned"])
def test_what_stands_in_the_way_is_named_and_nothing_is_written(adopted: World, run: Run, code: str) -> None:
    statefulset, app, pod = adopted.get("statefulsets"), adopted.get("streamapps"), adopted.get("pods", "counter-2")
    match code:
        case "StepOpen":
            metadata = {**statefulset["metadata"], "annotations": {HOLD_RECORD: "{}"}}
            adopted.put("statefulsets", {**statefulset, "metadata": metadata})
        case "ReplicasDiffer":
            adopted.put("streamapps", {**app, "spec": {**app["spec"], "replicas": 2}})
        case "PodsUnwell":
            adopted.put("pods", {**pod, "status": {}})
        case "AutoscalerWaits":
            adopted.put("horizontalpodautoscalers", AUTOSCALER)
        case _:
            retention = {"whenScaled": "Delete", "whenDeleted": "Retain"}
            spec = {**statefulset["spec"], "persistentVolumeClaimRetentionPolicy": retention}
            adopted.put("statefulsets", {**statefulset, "spec": spec})
    assert codes(run("disown", NAME, "--dry-run", "-o", "json")) == {code}
    assert (run(*DISOWN).code, adopted.cluster.written) == (1, [])


def test_an_operator_that_does_not_answer_holds_it_unless_the_user_says_that_none_runs(
    adopted: World, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(0.0, 10.0)
    monkeypatch.setattr(adoption, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    adopted.operator_runs = False
    ran = run(*DISOWN)
    assert ran.code == 1
    assert "until the operator knows that it is paused" in ran.err
    assert adopted.has("streamapps")
    assert run(*DISOWN, "--despite-operator").code == 0
    is_free(adopted)


def test_a_streamapp_that_was_never_adopted_becomes_a_statefulset_with_its_own_labels(adopted: World, run: Run) -> None:
    app = adopted.get("streamapps")
    spec = {**app["spec"], "template": {"spec": app["spec"]["template"]["spec"]}}
    adopted.put("streamapps", {**app, "metadata": {**app["metadata"], "annotations": {}}, "spec": spec})
    assert run(*DISOWN).code == 0
    made = adopted.get("statefulsets")["spec"]
    wanted = {"app.kubernetes.io/name": NAME}
    assert (made["selector"], made["template"]["metadata"]["labels"]) == ({"matchLabels": wanted}, wanted)
    assert made["podManagementPolicy"] == "Parallel"
    assert adopted.get("services")["spec"]["selector"] == wanted


def test_one_that_is_free_can_be_adopted_again(adopted: World, run: Run) -> None:
    before = adopted.uids()
    assert run(*DISOWN).code == 0
    adopted.cluster.do(lambda server: server.remove("poddisruptionbudgets", NAMESPACE, NAME))
    assert run(*ADOPT).code == 0
    assert adopted.uids() == before


def test_what_is_no_streamapp_is_refused(adopted: World, run: Run) -> None:
    ran = run("disown", "other", "--yes")
    assert (ran.code, "StreamApp demo/other" in ran.err, adopted.cluster.written) == (1, True, [])
