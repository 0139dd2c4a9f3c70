"""The manifests of a run and the lines of its meter."""

from typing import Any

import pytest

from streamapp.api.validation.parse import StreamApp, parse
from streamapp.cli.conformance import manifests
from streamapp.cli.conformance.manifests import RUN_LABEL, Setup
from streamapp.cli.conformance.waits import Wait, read_waits, worst_seconds

PLAIN = Setup(name="conformance-1", namespace="n", image="i:1", bootstrap_servers="b:9092")
SECURE = Setup(
    name="conformance-1", namespace="n", image="i:1", bootstrap_servers="b:9093", secret="kafka", storage_class="fast"
)
PODS = (manifests.preload_pod, manifests.load_pod, manifests.meter_pod, manifests.remove_pod)

Json = dict[str, Any]


@pytest.mark.parametrize("make", PODS)
@pytest.mark.parametrize("setup", [PLAIN, SECURE])
def test_every_pod_is_restricted_and_carries_the_run(make: Any, setup: Setup) -> None:
    pod: Json = make(setup)
    spec = pod["spec"]
    assert pod["metadata"]["labels"] == {RUN_LABEL: setup.name}
    assert (spec["automountServiceAccountToken"], spec["securityContext"]["runAsNonRoot"]) == (False, True)
    for container in (*spec.get("initContainers", ()), *spec["containers"]):
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert ("--command-config" in container["args"]) == bool(setup.secret)
        assert {mount["name"] for mount in container["volumeMounts"]} <= {one["name"] for one in spec["volumes"]}


@pytest.mark.parametrize("setup", [PLAIN, SECURE])
def test_the_streamapp_is_one_that_the_operator_serves(setup: Setup) -> None:
    made = manifests.streamapp(setup)
    made["metadata"] |= {"uid": "u", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
    assert isinstance(parse(made), StreamApp)


def test_the_secret_and_the_storage_class_reach_operator_application_and_volumes() -> None:
    spec = manifests.streamapp(SECURE)["spec"]
    assert spec["kafka"]["configSecretRefs"] == [{"name": "kafka"}]
    assert spec["state"]["volumeClaimTemplate"]["storageClassName"] == "fast"
    env = spec["template"]["spec"]["containers"][0]["env"]
    sources = {one["name"]: one["valueFrom"]["secretKeyRef"] for one in env if "valueFrom" in one}
    assert sources["STREAMS_SASL_JAAS_CONFIG"] == {"name": "kafka", "key": "sasl.jaas.config", "optional": True}
    assert "valueFrom" not in str(manifests.streamapp(PLAIN))


LINES = b"""steady: warning
{"clockMs":1000,"endedMs":9000,"openMs":0,"answered":5,"passed":0}
{"clockMs":2000,"endedMs":40,"openMs":10,"answered":9,"passed":1}
{"clockMs":3000,"endedMs":0,"openMs":700,"answered":9,"passed":1}
{"clockMs":40"""


def test_lines_that_are_no_measurement_are_left_out() -> None:
    assert read_waits(LINES)[1:] == (Wait(2000, 40, 10, 9, 1), Wait(3000, 0, 700, 9, 1))
    assert len(read_waits(LINES)) == 3


def test_the_worst_wait_is_of_the_window_and_counts_one_that_is_open() -> None:
    waits = read_waits(LINES)
    assert (worst_seconds(waits, 1000), worst_seconds(waits, 0), worst_seconds(waits, 3000)) == (0.7, 9.0, None)
