"""The columns of bronze: those of `streamapp.flightrecord.schema`, one table for each kind of line.

One kind has several rows a line: of `samples` each copy is a row of the table of `sample`.

A column has the name of the model's field; `camel` gives the name of that field in a line. Counts, tasks and offsets
are 64 bits wide, times are microseconds in UTC. Every column can be null: a line leaves out what is unknown.
"""

import re
from collections.abc import Mapping
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from streamapp.flightrecord.contract import Line, Part, Time
from streamapp.flightrecord.schema import Blocker, Holder, Record

VERSIONS: Final[tuple[int, ...]] = get_args(Line.model_fields["v"].annotation)
"""Versions of the contract that the pipeline reads."""
KIND: Final = "kind"
MODELS: Final[Mapping[str, type[Line]]] = {
    model.model_fields[KIND].default: model for model in get_args(get_args(Record)[0])
}
"""The model of each kind of line."""
SAMPLE: Final = "sample"
SAMPLES: Final = "samples"
"""The kind whose lines are rows of the table of `SAMPLE`, one for each copy."""

TEXT, LONG, DOUBLE, FLAG, TIME = StringType(), LongType(), DoubleType(), BooleanType(), TimestampType()
TEXTS = ArrayType(TEXT)
EXTRA: Final = "extra"
"""Column of fields that are not in the contract: their JSON by their name."""
FIRST: Final = "is_first"
"""Column of samples: whether it is the first of its line, so that lines can be counted; null where a line has one."""
_SIMPLE: Final[Mapping[Any, DataType]] = {str: TEXT, int: LONG, float: DOUBLE, bool: FLAG, get_args(Time)[0]: TIME}


def _spark_type(annotation: Any) -> DataType:
    if annotation in _SIMPLE:
        return _SIMPLE[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in {Annotated, tuple}:
        inner = _spark_type(arguments[0])
        return ArrayType(inner) if origin is tuple else inner
    if origin in {Union, UnionType}:
        (present,) = (option for option in arguments if option is not type(None))
        return _spark_type(present)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return TEXT
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return StructType(list(_columns_of(annotation)))
    # What is left is a Literal.
    return _SIMPLE[type(arguments[0])]


def _columns_of(model: type[Part]) -> tuple[StructField, ...]:
    return tuple(StructField(name, _spark_type(field.annotation)) for name, field in model.model_fields.items())


def own_fields(kind: str) -> dict[str, Any]:
    """The model's fields of a kind, without those of every line."""
    fields = MODELS[kind].model_fields
    return {name: field for name, field in fields.items() if name not in {KIND, *Line.model_fields}}


BLOCKER, HOLDER = StructType(list(_columns_of(Blocker))), StructType(list(_columns_of(Holder)))
LINE: Final = _columns_of(Line)
FIELDS: Final[dict[str, tuple[StructField, ...]]] = {
    kind: tuple(StructField(name, _spark_type(field.annotation)) for name, field in own_fields(kind).items())
    for kind in MODELS
}
"""Fields of each kind beside those of every line."""
OWN: Final = {kind: fields for kind, fields in FIELDS.items() if kind != SAMPLES}
"""Columns of each kind that has a table."""
TABLES: Final = {kind: "b_" + re.sub("([A-Z])", r"_\1", kind).lower() for kind in OWN}
"""The table of each kind."""

QUARANTINE: Final = "b_quarantine"
QUARANTINE_SCHEMA = StructType(
    [StructField("raw", TEXT), StructField("rule", TEXT), StructField("file", TEXT), StructField("line", LONG)]
)


def camel(name: str) -> str:
    """The name of a column's field in a line."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def table_schema(kind: str) -> StructType:
    """All columns of a kind's table."""
    more = [StructField(FIRST, FLAG)] if kind == SAMPLE else []
    return StructType([*LINE, *OWN[kind], StructField(EXTRA, MapType(TEXT, TEXT)), *more])


SCHEMAS: Final = {table: table_schema(kind) for kind, table in TABLES.items()} | {QUARANTINE: QUARANTINE_SCHEMA}


def columns() -> dict[str, DataType]:
    """Every column of any kind, `kind` included; a name that several kinds use has one type.

    Raises:
        TypeError: two kinds use one name for different types.
    """
    types: dict[str, DataType] = {field.name: field.dataType for field in LINE} | {KIND: TEXT}
    for fields in OWN.values():
        for field in fields:
            if types.setdefault(field.name, field.dataType) != field.dataType:
                msg = f"column {field.name} has two types"
                raise TypeError(msg)
    return types


def in_line(type_: DataType) -> DataType:
    """The type as a line has it: its nested fields in camel case."""
    if isinstance(type_, ArrayType):
        return ArrayType(in_line(type_.elementType))
    if isinstance(type_, StructType):
        return StructType([StructField(camel(field.name), in_line(field.dataType)) for field in type_])
    return type_
