"""Bronze has a column for everything that the contract has, and its rules say what the contract says."""

import types
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
from pydantic import AwareDatetime, BaseModel
from pydantic.alias_generators import to_camel
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from streamapp.analytics.bronze.quality import REQUIRED, WORDS
from streamapp.analytics.tables.bronze_schemas import LINE, OWN, SCHEMAS, TABLES, VERSIONS, camel, columns
from streamapp.flightrecord.schema import VERSION, Line, Record

MODELS: dict[str, type[Line]] = {one.model_fields["kind"].default: one for one in get_args(get_args(Record)[0])}
SIMPLE = {int: LongType(), float: DoubleType(), str: StringType(), bool: BooleanType(), datetime: TimestampType()}


def spark_type(told: Any) -> DataType:
    """The column that holds a field of such a type."""
    if get_origin(told) is Annotated:
        return spark_type(get_args(told)[0])
    if get_origin(told) in {Union, types.UnionType}:
        return spark_type(next(one for one in get_args(told) if one is not type(None)))
    if get_origin(told) is tuple:
        return ArrayType(spark_type(get_args(told)[0]))
    if isinstance(told, type) and issubclass(told, Enum):
        return StringType()
    if isinstance(told, type) and issubclass(told, BaseModel):
        shape = StructType()
        for name, field in told.model_fields.items():
            shape.add(name, spark_type(field.annotation))
        return shape
    return SIMPLE[datetime if told is AwareDatetime else told if told in SIMPLE else type(get_args(told)[0])]


def own(kind: str) -> dict[str, Any]:
    return {
        name: field for name, field in MODELS[kind].model_fields.items() if name not in {*Line.model_fields, "kind"}
    }


def test_there_is_a_table_for_each_kind_of_line() -> None:
    assert set(TABLES) == set(OWN) == set(MODELS)
    assert (VERSION,) == VERSIONS


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_a_kind_has_a_column_of_the_right_type_for_each_field(kind: str) -> None:
    wanted = {name: spark_type(field.annotation) for name, field in own(kind).items()}
    assert {field.name: field.dataType for field in OWN[kind]} == wanted
    assert {field.name: field.dataType for field in LINE} == {
        name: spark_type(field.annotation) for name, field in Line.model_fields.items()
    }
    assert SCHEMAS[TABLES[kind]].names == [*Line.model_fields, *own(kind), "extra"]


@pytest.mark.parametrize("kind", sorted(MODELS))
def test_a_line_must_have_the_fields_that_the_contract_asks_for(kind: str) -> None:
    assert set(REQUIRED[kind]) == {name for name, field in own(kind).items() if field.is_required()}


def test_words_are_those_of_the_contract() -> None:
    wanted = {}
    for kind in MODELS:
        for name, field in own(kind).items():
            options = [one for one in (field.annotation, *get_args(field.annotation)) if isinstance(one, type)]
            for option in options:
                if issubclass(option, Enum):
                    wanted[kind, name] = tuple(str(word.value) for word in option)
    assert wanted == WORDS


def test_names_in_lines_are_those_of_the_contract() -> None:
    assert {name: camel(name) for name in columns()} == {name: to_camel(name) for name in columns()}
