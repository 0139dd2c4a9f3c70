"""The demo's manifests are used as they are, with names and sizes of one run put in."""

from collections.abc import Callable
from typing import Any

import jsonpatch
import pytest
import yaml

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl
from lab.clusters.ownership import LABEL, MARK
from lab.errors import LabError
from lab.scenarios import demo_application
from lab.scenarios.demo_application import MANIFESTS, DemoApplication, adapt
from lab.settings import LAB
from tests.lab_unit.stand_ins import StandIns

APPLICATION = DemoApplication("counter-7", {"EXACTLY_ONCE": "true"}, records=5000, rate=70)


def _documents(file: str) -> dict[str, dict[str, Any]]:
    return {d["kind"]: d for d in yaml.safe_load_all((MANIFESTS / file).read_text()) if d}


def _environment(container: dict[str, Any]) -> dict[str, str]:
    return {entry["name"]: entry.get("value", "") for entry in container["env"]}


def test_the_application_gets_its_own_names_settings_and_size() -> None:
    stateful_set = _documents("statefulset.yaml")["StatefulSet"]
    before = _environment(stateful_set["spec"]["template"]["spec"]["containers"][0])
    adapt(stateful_set, APPLICATION, replicas=4)
    after = _environment(stateful_set["spec"]["template"]["spec"]["containers"][0])
    assert stateful_set["spec"]["replicas"] == 4
    assert after == before | {
        "APPLICATION_ID": "counter-7",
        "INPUT_TOPIC": "counter-7-input",
        "OUTPUT_TOPIC": "counter-7-output",
        "EXACTLY_ONCE": "true",
    }


@pytest.mark.parametrize(("file", "kind", "word", "figure"), [
    ("preload.yaml", "Job", "--records", "5000"),
    ("load.yaml", "Deployment", "--rate", "70"),
])  # fmt: skip
def test_the_loads_get_their_sizes(file: str, kind: str, word: str, figure: str) -> None:
    document = _documents(file)[kind]
    adapt(document, APPLICATION, replicas=None)
    arguments = [a for c in document["spec"]["template"]["spec"]["containers"] for a in c["args"]]
    assert arguments[arguments.index(word) + 1] == figure


@pytest.mark.parametrize(
    ("file", "kind"), [("statefulset.yaml", "StatefulSet"), ("preload.yaml", "Job"), ("load.yaml", "Deployment")]
)
def test_all_pods_reach_the_brokers_of_the_deployment(file: str, kind: str) -> None:
    document = _documents(file)[kind]
    adapt(document, DemoApplication("counter-7", bootstrap="kafka.elsewhere.svc:9092", copies=3), replicas=None)
    pod = document["spec"]["template"]["spec"]
    containers = [*pod.get("initContainers", []), *pod["containers"]]
    assert {_environment(each)["BOOTSTRAP_SERVERS"] for each in containers} == {"kafka.elsewhere.svc:9092"}
    making = [each["args"] for each in containers if each.get("args", [])[:1] == ["topics"]]
    assert [arguments[-2:] for arguments in making] == ([["--replication-factor", "3"]] if kind == "Job" else [])


@pytest.mark.parametrize(
    ("file", "kind"), [("statefulset.yaml", "StatefulSet"), ("preload.yaml", "Job"), ("load.yaml", "Deployment")]
)
def test_the_application_and_its_load_agree_on_a_shape_with_a_table(file: str, kind: str) -> None:
    document = _documents(file)[kind]
    adapt(document, DemoApplication("counter-7", {"TOPOLOGY": "table", "EXACTLY_ONCE": "true"}), replicas=None)
    pod = document["spec"]["template"]["spec"]
    for container in (*pod.get("initContainers", []), *pod["containers"]):
        environment = _environment(container)
        assert (environment["TOPOLOGY"], environment["TABLE_TOPIC"]) == ("table", "counter-7-table")
        assert ("EXACTLY_ONCE" in environment) == (kind == "StatefulSet")


@pytest.mark.parametrize(("file", "kind", "commands"), [
    ("preload.yaml", "Job", {"topics": False, "preload": True}),
    ("load.yaml", "Deployment", {"steady": True}),
])  # fmt: skip
def test_quiet_partitions_are_left_out_by_what_writes_records(file: str, kind: str, commands: dict[str, bool]) -> None:
    document = _documents(file)[kind]
    adapt(document, DemoApplication("counter-7", quiet=(2, 5)), replicas=None)
    pod = document["spec"]["template"]["spec"]
    found = {
        c["args"][0]: c["args"][-2:] == ["--quiet", "2,5"] for c in (*pod.get("initContainers", []), *pod["containers"])
    }
    assert found == commands


def test_only_the_plain_counter_can_be_inferred() -> None:
    shapes = [DemoApplication("a"), *(DemoApplication("a", {"TOPOLOGY": shape}) for shape in ("counter", "stores"))]
    assert [each.is_inferable for each in shapes] == [True, True, False]


def test_a_document_without_pods_is_left_alone() -> None:
    service = _documents("statefulset.yaml")["Service"]
    before = yaml.safe_dump(service)
    adapt(service, APPLICATION, replicas=2)
    assert yaml.safe_dump(service) == before


def test_a_namespace_that_the_lab_makes_is_marked_and_the_example_is_not() -> None:
    namespace = _documents("namespace.yaml")["Namespace"]
    before = dict(namespace["metadata"]["labels"])
    assert LABEL not in before
    adapt(namespace, APPLICATION, replicas=None)
    assert namespace["metadata"]["labels"] == before | {LABEL: MARK}
    (kafka, *_) = yaml.safe_load_all((LAB / "manifests" / "kafka.yaml").read_text())
    assert kafka["metadata"]["labels"][LABEL] == MARK


@pytest.mark.parametrize(
    "deed",
    [
        lambda kubectl: demo_application.remove(kubectl, "127.0.0.1:1"),
        lambda kubectl: demo_application.preload(kubectl, APPLICATION),
    ],
    ids=["remove", "preload"],
)
def test_a_demo_namespace_of_somebody_else_is_refused_before_anything_is_written(
    stand_ins: StandIns, monkeypatch: pytest.MonkeyPatch, deed: Callable[[Kubectl], None]
) -> None:
    monkeypatch.setenv("PATH", stand_ins.path)
    stand_ins.put("kubectl", 'case "$*" in *"namespace demo "*) echo namespace/demo;; esac')
    kubectl = Kubectl(Session((), {"PATH": stand_ins.path}))
    with pytest.raises(LabError, match="namespace demo: not the lab's"):
        deed(kubectl)
    assert [call.split()[1] for call in stand_ins.calls()] == ["get", "get"]


def test_the_streamapp_of_the_example_differs_from_its_statefulset_in_nothing_but_who_scales_it() -> None:
    (stream_app,) = yaml.safe_load_all((MANIFESTS / "streamapp.yaml").read_text())
    statefulset = _documents("statefulset.yaml")["StatefulSet"]
    (container,) = statefulset["spec"]["template"]["spec"]["containers"]
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == "state"]
    container["volumeMounts"].remove(mount)
    (claim,) = statefulset["spec"]["volumeClaimTemplates"]
    spec = stream_app["spec"]
    assert spec["template"] == statefulset["spec"]["template"]
    assert spec["state"] == {"mountPath": mount["mountPath"], "volumeClaimTemplate": claim["spec"]}
    assert spec["replicas"] == statefulset["spec"]["replicas"]


def test_the_patch_gives_the_example_the_streams_protocol_the_agent_and_learners_on_demand_and_no_more() -> None:
    (before,) = yaml.safe_load_all((MANIFESTS / "streamapp.yaml").read_text())
    patch = yaml.safe_load((MANIFESTS / "streams-protocol.patch.yaml").read_text())
    after = jsonpatch.JsonPatch(patch).apply(before)
    assert after["spec"].pop("agent") == {"enabled": True}
    assert after["spec"].pop("learners") == {"source": "OnDemand"}
    (container,) = after["spec"]["template"]["spec"]["containers"]
    (earlier,) = before["spec"]["template"]["spec"]["containers"]
    variables = {entry["name"]: entry for entry in earlier["env"]}
    del variables["STREAMS_NUM_STANDBY_REPLICAS"]
    variables["STREAMS_GROUP_PROTOCOL"] = {"name": "STREAMS_GROUP_PROTOCOL", "value": "streams"}
    assert {entry["name"]: entry for entry in container["env"]} == variables
    container["env"] = earlier["env"]
    assert after == before
