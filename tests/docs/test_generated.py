"""The pages that are made by `docs/generate.py`: nothing of their sources is left out, and they are up to date."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
import yaml

from docs import generate
from streamapp.controller.metrics import Metrics
from streamapp.core.reasons import Reason

SCHEMA = {
    "properties": {
        "replicas": {"type": "integer", "minimum": 0, "maximum": 5, "description": "Pods of the operator."},
        "image": {
            "description": "Where it comes from.",
            "properties": {
                "tag": {"$ref": "#/$defs/text", "description": "A | B."},
                "pull": {"enum": ["Always", "Never", ""], "description": "When."},
            },
        },
        "labels": {"type": "object", "description": "On all\nobjects."},
        "hosts": {"type": "array", "items": {"type": "string"}, "description": "Who may."},
    },
    "$defs": {"text": {"type": "string", "description": "Any text."}},
}


@cache
def pages() -> dict[str, str]:
    return generate.pages()


def cells(text: str) -> list[list[str]]:
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


def test_they_are_up_to_date() -> None:
    lying_there = {name: (generate.DOCS / name).read_text() for name in pages()}
    assert lying_there == pages(), "run `make generate`"


def test_the_gate_of_a_reason_stands_first_among_its_rules_and_no_reason_is_without_a_rule() -> None:
    rows = {row[0].strip("`"): row[-1] for row in cells(pages()["reasons.md"]) if len(row) == 4}
    for reason in Reason:
        assert rows[reason.name].startswith(f"[`{reason.row.gate}`]" if reason.row.gate else "[`"), reason


def test_every_metric_that_the_operator_shows_has_a_row() -> None:
    shown = {family.name for family in Metrics().registry.collect()}
    told = {row[0].strip("`").removesuffix("_total") for row in cells(pages()["metrics.md"])}
    assert told == shown


def count(schema: Mapping[str, Any]) -> int:
    inner = schema.get("properties") or schema.get("items", {}).get("properties") or {}
    return sum(1 + count(child) for child in inner.values())


def test_every_field_of_the_resource_has_a_row_with_its_meaning() -> None:
    definition = yaml.safe_load(generate.DEFINITION.read_text())
    properties = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]

    rows = cells(pages()["resource.md"])
    headings = pages()["resource.md"].count("\n### ")
    assert len(rows) + headings == count(properties["spec"]) + count(properties["status"])
    assert [row for row in rows if not row[3]] == []


def test_values_are_told_with_type_default_and_meaning() -> None:
    defaults = {"replicas": 2, "image": {"tag": "", "pull": "Always"}, "labels": {}, "hosts": ["a"]}
    assert cells(generate.values(SCHEMA, defaults)) == [
        ["`replicas`", "integer, 0 to 5", "`2`", "Pods of the operator."],
        ["`image.tag`", "string", "empty", "A \\| B."],
        ["`image.pull`", "`Always` or `Never` or empty", "`Always`", "When."],
        ["`labels`", "object", "`{}`", "On all objects."],
        ["`hosts`", "list of string", '`["a"]`', "Who may."],
    ]


@pytest.mark.parametrize(
    ("schema", "defaults", "why"),
    [
        (SCHEMA, {"image": {"digest": ""}}, r"values\.yaml has image\.digest, values\.schema\.json has not"),
        ({"properties": {"it": {"type": "string"}}}, {}, "describes it by nothing"),
    ],
    ids=["default without schema", "no description"],
)
def test_a_value_that_cannot_be_told_is_an_error(schema: generate.Schema, defaults: generate.Schema, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        generate.values(schema, defaults)
