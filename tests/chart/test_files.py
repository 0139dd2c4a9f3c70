"""The files of the chart, without Helm: generated ones are up to date, and they agree with the product and the docs."""

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml

from charts import generate
from lab.settings import REPOSITORY
from streamapp.controller.metrics import Metrics
from streamapp.controller.settings import Settings

CHART = REPOSITORY / "charts" / "streamapp-operator"
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
ALERTS: list[dict[str, Any]] = [
    alert
    for name in ("alerts.yaml", "analytics-alerts.yaml")
    for alert in yaml.safe_load((CHART / "files" / name).read_text())
]
DASHBOARD: dict[str, Any] = json.loads((CHART / "files" / "dashboard.json").read_text())


def test_the_generated_files_are_up_to_date() -> None:
    pages = generate.pages()
    lying_there = {name: (CHART / name).read_text() for name in pages}
    assert lying_there == pages, "run `uv run python charts/generate.py`"


def test_chart_and_product_are_of_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    product = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
    assert (chart["version"], chart["appVersion"]) == (product, product)


def test_no_default_names_an_image_that_the_project_has_not_published() -> None:
    named = {name: image for name, image in VALUES["images"].items() if name != "pullPolicy"}
    assert named.pop("registry") == ""
    assert set(map(str, named.values())) == {str({"repository": "", "tag": "", "digest": ""})}
    assert (Settings().seed_image, Settings().agent_image) == ("", "")
    assert "images" not in (CHART / "Chart.yaml").read_text()


def test_no_default_leads_to_a_place_on_the_network_that_the_project_does_not_own() -> None:
    assert "://" not in (CHART / "values.yaml").read_text()


def groups(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema that has properties, by its path."""
    if "properties" in schema:
        yield path, schema
        for name, child in schema["properties"].items():
            yield from groups(child, f"{path}.{name}")


def test_the_defaults_are_valid() -> None:
    jsonschema.validate(VALUES, SCHEMA)


@pytest.mark.parametrize(("path", "group"), list(groups(SCHEMA)), ids=[path for path, _ in groups(SCHEMA)])
def test_every_value_is_described_and_no_other_is_taken(path: str, group: dict[str, Any]) -> None:
    assert group["additionalProperties"] is False, path
    assert [name for name, child in group["properties"].items() if not child.get("description", "").endswith(".")] == []


def names_of(values: dict[str, Any], schema: dict[str, Any], path: str = "") -> set[str]:
    """Paths of all defaults, as deep as the schema names fields."""
    found = set()
    for name, value in values.items():
        child = schema["properties"][name]
        found |= names_of(value, child, f"{path}{name}.") if "properties" in child and value else {f"{path}{name}"}
    return found


def test_every_value_has_a_default_but_settings_whose_defaults_are_the_products() -> None:
    everything = {
        f"{path}.{name}".removeprefix(".")
        for path, group in groups(SCHEMA)
        for name, child in group["properties"].items()
        if "properties" not in child or name == "settings"
    }
    optional = {f"settings.{name}" for name in SCHEMA["properties"]["settings"]["properties"]}
    assert everything - names_of(VALUES, SCHEMA) == optional | {"global"}


def test_every_setting_of_the_operator_is_a_value() -> None:
    snake = {re.sub(r"([A-Z])", r"_\1", name).lower() for name in SCHEMA["properties"]["settings"]["properties"]}
    own_values = {
        *("namespaces", "instance", "installation", "log_level", "lease_namespace", "lease_name"),
        *("seed_image", "agent_image", "agent_key_file"),
        *("cluster_name", "record_bytes", "record_age_seconds", "record_close_seconds", "record_close_bytes"),
        *("record_bootstrap", "record_topic", "allowed_brokers", "application_ids", "restores_per_cluster"),
        *("watch_nodes", "node_taints"),
        "metrics_tls_folder",
    }
    fixed = {"port", "metrics_port", "api_port", "record_folder", "record_config_folder", "insight_file"}
    assert snake | own_values | fixed == set(Settings.__slots__)


def test_the_defaults_that_are_told_are_those_of_the_operator() -> None:
    for name, child in SCHEMA["properties"]["settings"]["properties"].items():
        default = getattr(Settings(), re.sub(r"([A-Z])", r"_\1", name).lower())
        told = f"({default})" if isinstance(default, int) else f"({default:g})"
        assert told in child["description"], name


METRIC = re.compile(r"\bstreamapp_\w+")


def served() -> set[str]:
    """Every name that Prometheus sees."""
    names = set()
    for family in Metrics().registry.collect():
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}[family.type]
        names |= {family.name + suffix for suffix in suffixes}
    return names


def asked_for() -> set[str]:
    """Every name in rules and dashboard."""
    texts = [alert["expr"] for alert in ALERTS]
    texts += [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    texts += [each["definition"] for each in DASHBOARD["templating"]["list"] if "definition" in each]
    return {name for text in texts for name in METRIC.findall(text)}


def test_every_metric_of_rules_and_dashboard_exists() -> None:
    asked = asked_for()
    assert len(asked) > 10
    assert asked - served() == set()


def anchors() -> set[str]:
    """Of every heading of the page with the runbooks, as a web page makes them."""
    headings = re.findall(r"^#+ (.+)$", (REPOSITORY / "docs" / "operations.md").read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_every_alert_has_a_runbook_that_is_written(alert: dict[str, Any]) -> None:
    base, _, anchor = alert["annotations"]["runbook_url"].partition("#")
    assert base == "RUNBOOK"
    assert anchor in anchors()
    assert set(alert) == {"alert", "expr", "for", "labels", "annotations"}
    assert alert["labels"]["severity"] in {"warning", "critical"}
    assert alert["annotations"]["summary"].endswith(".")


def test_every_runbook_has_an_alert() -> None:
    page = (REPOSITORY / "docs" / "operations.md").read_text()
    section = page.split("\n## Alerts\n")[1].split("\n## ")[0]
    assert re.findall(r"^### (\w+)$", section, re.MULTILINE) == [alert["alert"] for alert in ALERTS]


def test_panels_have_places_of_their_own() -> None:
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in DASHBOARD["panels"]]
    assert len(set(places)) == len(places) == len({panel["id"] for panel in DASHBOARD["panels"]})
