"""The tables of bronze and their rules follow the contract of the record; a change of the contract shows here."""

import json
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_camel

from streamapp.analytics.bronze.quality import REQUIRED, WORDS
from streamapp.analytics.tables.bronze_schemas import OWN, SCHEMAS, TABLES, VERSIONS, camel, columns

GOLDEN = Path(__file__).parent / "tables" / "bronze_schemas.json"
"""Written by `python -m tests.analytics.test_contract`; its diff is the change that users of the tables see."""


def derived() -> dict[str, Any]:
    """Columns in their order, required fields and allowed words, by table."""
    return {
        "versions": VERSIONS,
        "tables": {
            table: {field.name: field.dataType.simpleString() for field in schema} for table, schema in SCHEMAS.items()
        },
        "required": {TABLES.get(kind, kind): names for kind, names in REQUIRED.items()},
        "words": {f"{TABLES[kind]}.{name}": words for (kind, name), words in WORDS.items()},
    }


def as_text() -> str:
    return json.dumps(derived(), indent=1) + "\n"


def test_the_derived_tables_are_those_that_were_agreed() -> None:
    assert as_text() == GOLDEN.read_text()


def test_every_column_can_be_null() -> None:
    assert all(field.nullable for schema in SCHEMAS.values() for field in schema)


def test_names_in_lines_are_those_of_the_contract() -> None:
    assert {name: camel(name) for name in columns()} == {name: to_camel(name) for name in columns()}
    assert set(OWN) == set(TABLES)


if __name__ == "__main__":
    GOLDEN.write_text(as_text())
