import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from lab.settings import REPOSITORY
from streamapp.api import crd
from streamapp.api.names import GROUP

Schema = dict[str, Any]

ROOT: Schema = crd.crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def nodes(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every schema within a schema, by its path."""
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")


NODES = dict(nodes(ROOT))
OURS = {path: node for path, node in NODES.items() if path.startswith((".spec", ".status"))}


def test_the_committed_definition_is_the_one_that_is_generated() -> None:
    committed = (REPOSITORY / crd.PATH).read_text()
    assert committed == crd.text(), "run `make generate`"


def test_the_file_says_what_the_definition_says() -> None:
    assert yaml.safe_load(crd.text()) == json.loads(json.dumps(crd.crd()))


def test_names_and_subresources_are_what_users_and_autoscalers_rely_on() -> None:
    spec = crd.crd()["spec"]
    assert (spec["group"], spec["scope"], spec["names"]["shortNames"], spec["names"]["categories"]) == (
        GROUP,
        "Namespaced",
        ["sapp"],
        ["streams"],
    )
    assert spec["versions"][0]["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }


def test_the_columns_are_those_of_the_documentation_and_lead_to_fields() -> None:
    columns = crd.crd()["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [column["name"] for column in columns] == [
        "Desired",
        "Current",
        "Ready",
        "Converged",
        "Held",
        "ETA",
        "Age",
        "Reason",
        "Stalled",
        "Message",
    ]
    assert [column["name"] for column in columns if column.get("priority")] == ["Reason", "Stalled", "Message"]
    paths = {column["jsonPath"] for column in columns}
    plain = {path for path in paths if "[?" not in path and not path.startswith(".metadata")}
    assert plain <= set(NODES)
    assert paths - plain == {
        '.status.conditions[?(@.type=="Converged")].status',
        '.status.conditions[?(@.type=="ScaleDownHeld")].status',
        '.status.conditions[?(@.type=="ScaleDownHeld")].reason',
        '.status.conditions[?(@.type=="Stalled")].status',
        '.status.conditions[?(@.type=="ScaleDownHeld")].message',
        ".metadata.creationTimestamp",
    }


KNOWN = {
    "type",
    "description",
    "default",
    "enum",
    "format",
    "maximum",
    "minimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "required",
    "properties",
    "items",
    "x-kubernetes-validations",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-preserve-unknown-fields",
}


@pytest.mark.parametrize("path", NODES)
def test_the_schema_is_structural(path: str) -> None:
    node = NODES[path]
    assert set(node) <= KNOWN
    assert "type" in node or node.get("x-kubernetes-int-or-string") is True
    assert set(node.get("required", ())) <= set(node.get("properties", ()))


@pytest.mark.parametrize("path", [path for path in OURS if not path.endswith("[]")])
def test_every_field_is_described(path: str) -> None:
    described = OURS[path].get("description", "")
    assert described.endswith("."), described
    assert "\n" not in described


@pytest.mark.parametrize("path", OURS)
def test_everything_has_a_maximum(path: str) -> None:
    """Without one the API server takes the worst, and the rules cost more than it allows."""
    node = OURS[path]
    kind = node.get("type", "int-or-string")
    if kind == "array":
        assert "maxItems" in node
    if kind in {"string", "int-or-string"} and "enum" not in node and node.get("format") != "date-time":
        assert "maxLength" in node
    if kind == "integer" and path.startswith(".spec"):
        assert {"minimum", "maximum"} <= set(node)


@pytest.mark.parametrize("path", [path for path, node in OURS.items() if node.get("type") == "integer"])
def test_an_integer_has_the_format_that_holds_its_maximum(path: str) -> None:
    node = OURS[path]
    assert node["format"] == ("int32" if node.get("maximum", 2**63) < 2**31 else "int64")


@pytest.mark.parametrize("path", [path for path, node in OURS.items() if "enum" in node])
def test_a_choice_is_never_empty_text(path: str) -> None:
    assert "" not in OURS[path]["enum"]


@pytest.mark.parametrize("path", OURS)
def test_an_object_whose_children_all_have_defaults_or_may_be_absent_has_an_empty_one(path: str) -> None:
    node = OURS[path]
    if not path.startswith(".spec.") or node.get("type") != "object" or "x-kubernetes-preserve-unknown-fields" in node:
        return
    defaults = any("default" in child for child in node["properties"].values())
    if defaults and not node.get("required"):
        assert node["default"] == {}


def test_there_is_no_null_anywhere() -> None:
    assert list(nulls(crd.crd())) == []


def nulls(part: Any, path: str = "") -> Iterator[str]:
    if part is None:
        yield path
    if isinstance(part, Mapping):
        for name, child in part.items():
            yield from nulls(child, f"{path}.{name}")
    if isinstance(part, list):
        for child in part:
            yield from nulls(child, f"{path}[]")


def test_lists_say_how_they_are_merged() -> None:
    lists = {path: node.get("x-kubernetes-list-type") for path, node in NODES.items() if node.get("type") == "array"}
    assert lists == {
        ".spec.template.spec.containers": "map",
        ".spec.kafka.configSecretRefs": "atomic",
        ".spec.state.volumeClaimTemplate.accessModes": "atomic",
        ".spec.agent.defaults": "atomic",
        ".status.convergence.slowest": "atomic",
        ".status.members": "atomic",
        ".status.lastSteps": "atomic",
        ".status.downtime.byCause": "atomic",
        ".status.conditions": "map",
    }


def test_only_the_template_is_open() -> None:
    opened = [path for path, node in NODES.items() if node.get("x-kubernetes-preserve-unknown-fields")]
    assert opened == [
        ".spec.template",
        ".spec.template.metadata",
        ".spec.template.spec",
        ".spec.template.spec.containers[]",
    ]


def test_what_belongs_to_later_work_is_not_there() -> None:
    words = {path.rpartition(".")[2] for path in NODES}
    assert words & {"adopt"} == set()


def test_it_is_small_enough_for_a_client_side_apply() -> None:
    assert len(json.dumps(crd.crd())) < 262_144
