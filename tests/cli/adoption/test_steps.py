"""The order of the writes, in every combination of what can be there: no write comes before what makes it safe."""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from streamapp.api.names import ADOPTED_FROM, APP_LABEL
from streamapp.cli.adoption.facts import Facts
from streamapp.cli.adoption.manifest import Choices
from streamapp.cli.adoption.origin import Origin
from streamapp.cli.adoption.steps import Done, OrphanPods, Patch, Progress, Stop, Wait, next_step
from tests.cli.adopting import LABELS, NAME, a_pod, a_statefulset
from tests.cli.cluster import NAMESPACE

Json = dict[str, Any]
SERVICE: Json = {"metadata": {"name": NAME}, "spec": {"clusterIP": "None", "selector": LABELS}}
PARTS = ("recorded", "asked", "answered", "foreign", "reached", "service", "labelled", "on delete", "pods", "observed")


def streamapp(parts: frozenset[str], origin: Origin) -> Json:
    stalled = ("True", "ForeignStatefulSet" if "foreign" in parts else "InvalidSpec")
    status = {
        "observedGeneration": 2 if "answered" in parts else 1,
        "conditions": [
            {"type": "Stalled", "status": stalled[0], "reason": stalled[1]},
            {"type": "KafkaReachable", "status": "True" if "reached" in parts else "Unknown"},
        ],
    }
    annotations = {ADOPTED_FROM: origin.text} if "recorded" in parts else {}
    metadata = {"name": NAME, "uid": "app", "annotations": annotations, "generation": 2}
    return {"metadata": metadata, "spec": {"replicas": 3}, "status": status}


def facts_with(parts: frozenset[str]) -> Facts:
    """An adoption that is begun, of which these parts are done."""
    statefulset, service = a_statefulset(), {**SERVICE, "metadata": {"name": NAME}}
    statefulset["metadata"] |= {"uid": "it", "generation": 5}
    statefulset["status"] = {"observedGeneration": 5 if "observed" in parts else 4}
    origin = Origin.of(statefulset, service)
    if "labelled" in parts:
        statefulset["metadata"]["labels"] = {**LABELS, APP_LABEL: NAME}
        statefulset["spec"]["template"]["metadata"] = {"labels": {**LABELS, APP_LABEL: NAME}}
    if "on delete" in parts:
        statefulset["spec"]["updateStrategy"] = {"type": "OnDelete"}
    if "service" in parts:
        service["metadata"] = {"name": NAME, "ownerReferences": [{"uid": "app", "controller": True}]}
    pods = [a_pod(ordinal, "r") for ordinal in range(3)]
    if "pods" in parts:
        for pod in pods:
            pod["metadata"]["labels"][APP_LABEL] = NAME
    return Facts(
        namespace=NAMESPACE,
        name=NAME,
        statefulset=statefulset,
        streamapp=streamapp(parts, origin),
        pods=tuple(pods),
        claims=(),
        service=service,
        budgets=(),
        autoscalers=(),
        scaled_objects=(),
        vertical_autoscalers=(),
    )


def step_after(parts: frozenset[str]) -> Any:
    progress = Progress(asked_generation=2 if "asked" in parts else None)
    return next_step(facts_with(parts), progress, Choices())


def test_the_statefulset_lets_its_pods_go_only_when_all_of_it_is_done() -> None:
    combinations = [
        frozenset(part for part, is_there in zip(PARTS, chosen, strict=True) if is_there)
        for chosen in itertools.product([True, False], repeat=len(PARTS))
    ]
    found = [parts for parts in combinations if isinstance(step_after(parts), OrphanPods)]
    assert found == [frozenset(PARTS)]


@pytest.mark.parametrize(
    ("missing", "kind"),
    [
        ("recorded", "StreamApp"),
        ("asked", "StreamApp"),
        ("service", "Service"),
        ("labelled", "StatefulSet"),
        ("on delete", "StatefulSet"),
        ("pods", "Pod"),
    ],
)
def test_what_is_missing_is_written(missing: str, kind: str) -> None:
    step = step_after(frozenset(PARTS) - {missing})
    assert isinstance(step, Patch)
    assert step.kind == kind


@pytest.mark.parametrize(
    ("missing", "kind"), [("answered", Wait), ("reached", Wait), ("observed", Wait), ("foreign", Stop)]
)
def test_what_another_must_do_is_waited_for_or_stops_it(missing: str, kind: type) -> None:
    assert isinstance(step_after(frozenset(PARTS) - {missing}), kind)


def test_the_label_and_on_delete_come_in_one_write() -> None:
    step = step_after(frozenset(PARTS) - {"labelled", "on delete", "pods"})
    assert isinstance(step, Patch)
    labels = {"metadata": {"labels": {APP_LABEL: NAME}}}
    strategy = {"type": "OnDelete", "rollingUpdate": None}
    assert step.patch == {**labels, "spec": {"updateStrategy": strategy, "template": labels}}


def test_without_a_statefulset_the_operator_is_waited_for() -> None:
    facts = facts_with(frozenset(PARTS))
    step = next_step(replace(facts, statefulset=None), Progress(), Choices())
    assert isinstance(step, Wait)
    assert step.what == "the operator creates the StatefulSet"


def test_it_is_done_when_the_operators_statefulset_has_all_pods() -> None:
    facts = facts_with(frozenset(PARTS))
    owners = [{"kind": "StreamApp", "uid": "app", "controller": True}]
    taken = {**(facts.statefulset or {}), "metadata": {"name": NAME, "uid": "new", "ownerReferences": owners}}
    before = replace(facts, statefulset=taken)
    assert isinstance(next_step(before, Progress(), Choices()), Wait)
    of_it = {"ownerReferences": [{"uid": "new", "controller": True}]}
    pods = tuple({**pod, "metadata": {**pod["metadata"], **of_it}} for pod in facts.pods)
    after = replace(before, pods=pods)
    assert isinstance(next_step(after, Progress(), Choices()), Done)
