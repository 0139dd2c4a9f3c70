"""The StreamApp resource on a real API server: what it refuses and says, fills in, keeps, prints and scales."""

import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from lab.clusters.kubectl import Kubectl, wait_until
from lab.errors import LabError
from lab.settings import REPOSITORY
from streamapp.api import crd
from streamapp.api.objects import manifests
from streamapp.api.validation.parse import StreamApp, parse
from streamapp.core.facts.ids import Ordinal
from streamapp.core.facts.workload import Budget
from tests.conformance import kstatus
from tests.mistakes import Wrong
from tests.statuses import held_status
from tests.streamapps import ABSENT, ALLOWED_CHANGES, FORBIDDEN_CHANGES, WRONG, changed, written

pytestmark = [pytest.mark.lab]

Json = dict[str, Any]


@pytest.fixture(scope="module")
def resource(kubectl: Kubectl) -> str:
    """Give the API server the committed definition."""
    kubectl.run("apply", "--server-side", "--force-conflicts", f"--filename={REPOSITORY / crd.PATH}")
    kubectl.run("wait", "--for=condition=Established", "crd/streamapps.streamapp.dev", "--timeout=30s")
    return "streamapps.streamapp.dev"


@pytest.fixture(scope="module")
def place(kubectl: Kubectl, resource: str) -> Iterator[str]:
    """Give a namespace for everything in this file, under a name that no earlier run can have left behind."""
    assert resource
    name = f"t-streamapps-{uuid.uuid4().hex[:6]}"
    kubectl.run("create", "namespace", name)
    yield name
    kubectl.run("delete", "namespace", name, "--wait=false")


@pytest.fixture
def sound(kubectl: Kubectl, place: str) -> Iterator[Json]:
    """Give a sound object as it is stored, of whatever version."""
    kept = send(kubectl, "create", place, written(), "--output=json")
    del kept["metadata"]["resourceVersion"]
    yield kept
    kubectl.run("delete", "streamapp", "wordcount", "--namespace", place)


def send(kubectl: Kubectl, verb: str, place: str, whole: Json, *more: str) -> Json:
    text = kubectl.run(verb, "--namespace", place, "--filename=-", *more, stdin=json.dumps(whole))
    return dict(json.loads(text)) if "--output=json" in more else {}


def refusal(kubectl: Kubectl, verb: str, place: str, whole: Json) -> str:
    with pytest.raises(LabError) as refused:
        send(kubectl, verb, place, whole, "--dry-run=server")
    return refused.value.why


def expected(wrong: Wrong) -> str:
    """A pattern for what the API server says: the field, some words of its own, then our sentence."""
    if wrong.server_says is not None:
        return re.escape(wrong.server_says)
    if wrong.says.startswith("metadata.name"):
        return re.escape(wrong.says)
    field, _, sentence = re.sub(r", not ('.*'|-?\d+)$", "", wrong.says).partition(" ")
    return f"{re.escape(field)}: Invalid value: .*{re.escape(sentence)}"


REFUSED = {name: wrong for name, wrong in WRONG.items() if wrong.server_says != ""}
LET_PASS = {name: wrong for name, wrong in WRONG.items() if wrong.server_says == ""}


@pytest.mark.parametrize("wrong", REFUSED.values(), ids=REFUSED)
def test_a_wrong_object_is_refused_in_the_words_of_the_operator(kubectl: Kubectl, place: str, wrong: Wrong) -> None:
    told = refusal(kubectl, "create", place, changed(written(name=wrong.name), wrong.changes))
    assert re.search(expected(wrong), told), told
    assert "rule evaluation error" not in told


@pytest.mark.parametrize("wrong", LET_PASS.values(), ids=LET_PASS)
def test_what_the_schema_cannot_see_passes_and_is_left_to_the_operator(
    kubectl: Kubectl, place: str, wrong: Wrong
) -> None:
    kept = send(kubectl, "create", place, changed(written(), wrong.changes), "--dry-run=server", "--output=json")
    assert str(wrong.says) == getattr(parse(kept), "sentence", None)


@pytest.mark.parametrize("wrong", FORBIDDEN_CHANGES.values(), ids=FORBIDDEN_CHANGES)
def test_what_must_stay_as_it_is_stays(kubectl: Kubectl, place: str, sound: Json, wrong: Wrong) -> None:
    told = refusal(kubectl, "replace", place, changed(sound, wrong.changes))
    assert re.search(expected(wrong), told), told
    assert "rule evaluation error" not in told


def test_state_is_not_added_either(kubectl: Kubectl, place: str) -> None:
    kept = send(kubectl, "create", place, changed(written(name="stateless"), {"spec.state": ABSENT}), "--output=json")
    told = refusal(kubectl, "replace", place, changed(kept, {"spec.state": written()["spec"]["state"]}))
    assert re.search(expected(FORBIDDEN_CHANGES["state taken away"]), told), told


@pytest.mark.parametrize("changes", ALLOWED_CHANGES.values(), ids=ALLOWED_CHANGES)
def test_everything_else_may_change(kubectl: Kubectl, place: str, sound: Json, changes: Json) -> None:
    send(kubectl, "replace", place, changed(sound, changes), "--dry-run=server")


def test_the_api_server_fills_in_what_the_operator_would(sound: Json) -> None:
    found = parse(sound)
    assert isinstance(found, StreamApp), found.sentence
    assert sound["spec"] == found.spec.model_dump(mode="json", by_alias=True, exclude_none=True)


def test_replicas_that_are_left_out_are_one_so_that_autoscalers_can_read_them(kubectl: Kubectl, place: str) -> None:
    send(kubectl, "create", place, changed(written(name="unsized"), {"spec.replicas": ABSENT}))
    assert scale(kubectl, place, "unsized")["spec"] == {"replicas": 1}


def scale(kubectl: Kubectl, place: str, name: str) -> Json:
    path = f"/apis/streamapp.dev/v1alpha1/namespaces/{place}/streamapps/{name}/scale"
    return dict(json.loads(kubectl.run("get", f"--raw={path}")))


def test_a_misspelt_field_is_refused_by_kubectl_and_pruned_for_others(
    kubectl: Kubectl, place: str, sound: Json
) -> None:
    misspelt = changed(sound, {"spec.scaleDown.timeOut": "2h"})
    assert 'unknown field "spec.scaleDown.timeOut"' in refusal(kubectl, "replace", place, misspelt)
    kept = send(kubectl, "replace", place, misspelt, "--validate=ignore", "--dry-run=server", "--output=json")
    assert kept["spec"] == sound["spec"]


def test_a_template_keeps_fields_that_the_schema_does_not_know(kubectl: Kubectl, place: str, sound: Json) -> None:
    fields = {
        "spec.template.spec.ofTomorrow": {"deep": [1, {"er": True}]},
        "spec.template.spec.containers.0.ofTomorrow": "kept",
        "spec.template.metadata.annotations": {"a": "b"},
    }
    kept = send(kubectl, "replace", place, changed(sound, fields), "--dry-run=server", "--output=json")
    assert kept["spec"] == changed(sound, fields)["spec"]


def test_scaling_goes_through_the_rules_of_the_resource(kubectl: Kubectl, place: str, sound: Json) -> None:
    name = sound["metadata"]["name"]
    kubectl.run("scale", "sapp", name, "--replicas=5", "--namespace", place)
    assert scale(kubectl, place, name)["spec"] == {"replicas": 5}
    with pytest.raises(LabError) as refused:
        kubectl.run("scale", "sapp", name, "--replicas=0", "--namespace", place)
    assert "must be at least 1 unless scaleDown.allowZero is true" in refused.value.why
    assert scale(kubectl, place, name)["spec"] == {"replicas": 5}


def answer(kubectl: Kubectl, place: str, status: Json) -> Json:
    """Write a status as the operator does, and give the resource back."""
    whole = {
        "apiVersion": "streamapp.dev/v1alpha1",
        "kind": "StreamApp",
        "metadata": {"name": "wordcount"},
        "status": status,
    }
    arguments = ("--server-side", "--subresource=status", "--field-manager=streamapp-operator", "--output=json")
    return send(kubectl, "apply", place, whole, *arguments)


def test_a_status_stays_as_the_operator_wrote_it_and_shows_what_it_should(
    kubectl: Kubectl, place: str, sound: Json
) -> None:
    status = held_status(generation=sound["metadata"]["generation"])
    assert answer(kubectl, place, status)["status"] == status
    assert scale(kubectl, place, "wordcount")["status"] == {"replicas": 3, "selector": "streamapp.dev/app=wordcount"}
    header, row = kubectl.run("get", "sapp", "wordcount", "--namespace", place).splitlines()
    assert header.split() == ["NAME", "DESIRED", "CURRENT", "READY", "CONVERGED", "HELD", "ETA", "AGE"]
    assert row.split()[:-1] == ["wordcount", "3", "3", "3", "False", "True"]
    in_category = kubectl.run("get", "streams", "--namespace", place, "--output=name").split()
    assert "streamapp.streamapp.dev/wordcount" in in_category
    assert kstatus(status, sound["metadata"]["generation"]) == "Current"
    # `kubectl wait` is what Helm and people use.
    kubectl.run("wait", "--for=condition=ScaleDownHeld", "sapp/wordcount", "--namespace", place, "--timeout=1s")
    # What is no longer in the status is taken away.
    del status["scaleDown"]
    assert answer(kubectl, place, status)["status"] == status


def test_a_change_of_the_spec_leaves_the_status_alone_and_counts_a_generation(
    kubectl: Kubectl, place: str, sound: Json
) -> None:
    status = held_status(generation=1)
    answer(kubectl, place, status)
    kubectl.run("scale", "sapp", "wordcount", "--replicas=4", "--namespace", place)
    kept = kubectl.json("get", "sapp", "wordcount", "--namespace", place)
    assert (kept["metadata"]["generation"], kept["status"]) == (sound["metadata"]["generation"] + 1, status)


def test_every_field_is_explained(kubectl: Kubectl, resource: str) -> None:
    assert resource
    explained = kubectl.run("explain", "sapp.spec.scaleDown.onTimeout")
    assert "GiveUp: cancel the scale-down until the spec changes." in " ".join(explained.split())


INSTALLATION = manifests.Installation(name="lab", seed_image="localhost/streamapp/seed:lab")


def test_a_restricted_namespace_takes_everything_a_streamapp_becomes(kubectl: Kubectl, place: str, sound: Json) -> None:
    kubectl.run("label", "namespace", place, "pod-security.kubernetes.io/enforce=restricted", "--overwrite")
    found = parse(sound)
    assert isinstance(found, StreamApp), found.sentence
    assert found.spec.state is not None
    whole = manifests.with_replicas(manifests.statefulset(found, INSTALLATION), 2)
    budgets = [
        manifests.disruption_budget(found, INSTALLATION),
        manifests.disruption_budget(found, INSTALLATION, allows=Budget.CLOSED),
        manifests.disruption_budget(found, INSTALLATION, allows=Budget.OPEN_FOR_ONE, evictable=Ordinal(1), lease=3),
    ]
    for made in (manifests.service(found, INSTALLATION), *budgets, whole):
        kept = send(kubectl, "apply", place, made, "--server-side", "--output=json")
        again = send(kubectl, "apply", place, made, "--server-side", "--output=json")
        assert again["spec"] == kept["spec"]
    assert kept["spec"]["template"]["spec"]["initContainers"] == whole["spec"]["template"]["spec"]["initContainers"]
    assert manifests.is_ours(found, INSTALLATION, kept)
    assert manifests.template_is_written(found, INSTALLATION, kept)

    def pods() -> list[str]:
        listed = kubectl.json("get", "pods", f"--selector=streamapp.dev/app={found.metadata.name}", "-n", place)
        return sorted(pod["metadata"]["name"] for pod in listed["items"])

    # Pod security is asked when pods are made.
    wait_until("two pods", lambda: pods() == ["wordcount-0", "wordcount-1"], 30)
