"""Each metric, label and condition that a rule or a panel names is one that a real operator's process shows.

Without Prometheus, which takes minutes to build: the process is real, and its page is read as Prometheus reads it.
"""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from streamapp.controller.metrics import Metrics
from tests.alerts.expressions import Selector, groupings, labels_in_legend, labels_in_summary, selectors
from tests.alerts.proofs import PROOFS
from tests.alerts.stage import a_stage
from tests.chart.test_files import ALERTS, DASHBOARD

OF_A_TARGET = frozenset({"namespace", "job", "pod", "container", "endpoint", "instance"})
"""Labels that the Prometheus operator gives to what a PodMonitor selects."""
TARGETS: list[dict[str, Any]] = [target for panel in DASHBOARD["panels"] for target in panel["targets"]]
EXPRESSIONS = [one["expr"] for one in (*ALERTS, *TARGETS)]


def test_every_alert_has_a_fault_that_fires_it() -> None:
    assert {name: len(proofs) > 0 for name, proofs in PROOFS.items()} == {one["alert"]: True for one in ALERTS}


@pytest.mark.chart
def test_every_metric_label_and_condition_that_is_named_is_shown_by_a_real_process(tmp_path: Path) -> None:
    families = {family.name: family for family in text_string_to_metric_families(asyncio.run(page(tmp_path)))}
    found = [selector for expression in EXPRESSIONS for selector in selectors(expression)]
    own = [selector for selector in found if selector.metric.startswith("streamapp_")]
    assert len(own) > 30
    assert [wrong for selector in own for wrong in misfits(selector, families)] == []


async def page(folder: Path) -> str:
    """Give `/metrics` of a process whose application is well."""
    async with a_stage(folder, "one") as stage, aiohttp.ClientSession() as client:
        answer = await client.get(f"http://127.0.0.1:{stage.ports['one']}/metrics")
        return await answer.text()


def misfits(selector: Selector, families: Mapping[str, Metric]) -> Iterator[str]:
    """What a selector names that is not on the page."""
    family = next((families[name] for name in _families_of(selector.metric) if name in families), None)
    if family is None:
        yield f"{selector.metric} is not shown"
        return
    labels = declared(family.name) | OF_A_TARGET | {"le"}
    samples = [sample.labels for sample in family.samples]
    for label, operator, value in selector.matchers:
        if label not in labels:
            yield f"{selector.metric} has no label {label}"
        elif operator == "=" and family.name == "streamapp_condition" and all(one[label] != value for one in samples):
            yield f"{selector.metric} has no {label} {value}"


def _families_of(metric: str) -> tuple[str, ...]:
    endings = ("_total", "_bucket", "_sum", "_count")
    return (metric, *(metric.removesuffix(ending) for ending in endings if metric.endswith(ending)))


def declared(family: str) -> frozenset[str]:
    """The labels of a metric, which a page does not show before there is a series."""
    own = (one for one in vars(Metrics()).values() if getattr(one, "_name", "") == family)
    return frozenset(label for one in own for label in one._labelnames)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_groups_by_labels_that_its_metrics_have(expression: str) -> None:
    names = [selector.metric for selector in selectors(expression)]
    own = [declared(name) for metric in names for name in _families_of(metric)]
    assert groupings(expression) <= OF_A_TARGET.union({"le"}, *own)


@pytest.mark.parametrize(("expression", "labels"), [
    *((one["expr"], labels_in_summary(one["annotations"]["summary"])) for one in ALERTS),
    *((one["expr"], labels_in_legend(one["legendFormat"])) for one in TARGETS),
])  # fmt: skip
def test_a_text_names_only_labels_that_the_expression_leaves(expression: str, labels: frozenset[str]) -> None:
    names = [selector.metric for selector in selectors(expression)]
    own = OF_A_TARGET.union(*(declared(name) for metric in names for name in _families_of(metric)), {"cronjob"})
    left = groupings(expression) or own
    assert labels <= left
