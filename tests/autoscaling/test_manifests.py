"""The manifests of `examples/autoscaling`, in their structure: what an API server knows of them is tried in the lab."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from lab.settings import REPOSITORY

Json = dict[str, Any]
FOLDER = REPOSITORY / "examples" / "autoscaling"
COUNTER = REPOSITORY / "examples" / "counter" / "kubernetes" / "streamapp.yaml"
PARTITIONS = 6
FILES = sorted(path.name for path in FOLDER.glob("*.yaml"))


def read(name: str) -> Json:
    (found,) = yaml.safe_load_all((FOLDER / name).read_text())
    assert isinstance(found, dict)
    return found


SCALERS = [name for name in FILES if "scaleTargetRef" in read(name).get("spec", {})]
AUTOSCALERS = [name for name in SCALERS if read(name)["kind"] == "HorizontalPodAutoscaler"]
OF_KEDA = [name for name in SCALERS if read(name)["kind"] == "ScaledObject"]


def example() -> Json:
    found: Json = yaml.safe_load(COUNTER.read_text())
    return found


def test_each_way_of_the_page_has_its_manifest_and_each_manifest_its_place_on_the_page() -> None:
    page = (REPOSITORY / "docs" / "autoscaling.md").read_text()
    assert sorted(set(re.findall(r"\.\./examples/autoscaling/([a-z-]+\.yaml)", page))) == FILES


@pytest.mark.parametrize("name", SCALERS)
def test_it_aims_at_the_streamapp_of_the_example(name: str) -> None:
    found, app = read(name), example()
    assert found["spec"]["scaleTargetRef"] == {
        "apiVersion": app["apiVersion"],
        "kind": app["kind"],
        "name": app["metadata"]["name"],
    }
    assert found["metadata"]["namespace"] == app["metadata"]["namespace"]


@pytest.mark.parametrize("name", SCALERS)
def test_it_keeps_two_pods_and_wishes_for_no_more_than_there_are_tasks(name: str) -> None:
    spec = read(name)["spec"]
    least, most = ("minReplicas", "maxReplicas") if name in AUTOSCALERS else ("minReplicaCount", "maxReplicaCount")
    assert (spec[least], spec[most]) == (2, PARTITIONS)


def test_the_container_whose_time_counts_is_the_applications() -> None:
    (metric,) = read("cpu.yaml")["spec"]["metrics"]
    (container,) = example()["spec"]["template"]["spec"]["containers"]
    assert metric["containerResource"]["container"] == container["name"]
    assert "cpu" in container["resources"]["requests"]


def test_processor_time_has_the_narrow_tolerance_both_ways() -> None:
    behavior = read("cpu.yaml")["spec"]["behavior"]
    assert [behavior[way]["tolerance"] for way in ("scaleUp", "scaleDown")] == ["0.02", "0.02"]


def lags() -> Iterator[tuple[str, str, str]]:
    """File, how the lag is compared, and of what it is."""
    spec = read("lag-prometheus-adapter.yaml")["spec"]
    (metric,) = (one["external"] for one in spec["metrics"])
    yield "adapter", metric["target"]["type"], str(metric["metric"]["selector"]["matchLabels"])
    for name in OF_KEDA:
        for trigger in read(name)["spec"]["triggers"]:
            yield name, trigger["metricType"], str(trigger["metadata"])


def test_lag_is_compared_by_average_and_is_that_of_the_source_topic_alone() -> None:
    found = list(lags())
    assert len(found) == 3
    assert [compared for _, compared, _ in found] == ["AverageValue"] * 3
    assert [name for name, _, of in found if "counter-input" not in of] == []


def test_the_adapters_rule_gives_the_metric_that_the_autoscaler_asks_for() -> None:
    (rule,) = read("prometheus-adapter-values.yaml")["rules"]["external"]
    (metric,) = read("lag-prometheus-adapter.yaml")["spec"]["metrics"]
    wanted = metric["external"]["metric"]
    assert rule["name"]["as"] == wanted["name"]
    assert [label for label in wanted["selector"]["matchLabels"] if f'{label}!=""' not in rule["seriesQuery"]] == []


@pytest.mark.parametrize("name", OF_KEDA)
def test_keda_takes_numbers_as_text(name: str) -> None:
    for trigger in read(name)["spec"]["triggers"]:
        assert {type(value) for value in trigger["metadata"].values()} == {str}
