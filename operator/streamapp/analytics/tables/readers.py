"""How other programs read the newest version of a layer: its files, and the statements that name them.

Called by the command line; needs no Spark. A glob over a layer's folder would count rows of older runs too.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from streamapp.analytics.errors import AnalyticsError
from streamapp.analytics.tables.store import Store, Version

Files = Mapping[str, Sequence[Path]]
"""The files of each table, by day; each day is the name of the folder, as `dt=<day>`."""
_TRINO: Final[Mapping[type[DataType], str]] = {
    StringType: "varchar",
    LongType: "bigint",
    DoubleType: "double",
    BooleanType: "boolean",
    TimestampType: "timestamp(6) with time zone",
}


_VIEW: Final = (
    "CREATE OR REPLACE VIEW {} AS SELECT * EXCLUDE (run) "
    "FROM read_parquet([{}], hive_partitioning = true, hive_types_autocast = false);"
)


def live_files(store: Store) -> Files:
    """The files of the newest version.

    Raises:
        AnalyticsError: there is none.
    """
    version = store.current()
    if not version.number:
        step = f"run `streamapp-analytics run RECORD --root {store.root}` first"
        raise AnalyticsError(str(store.folder), "there are no tables in it", step)
    return {table: _files(store, version, table) for table in sorted(version.tables)}


def _files(store: Store, version: Version, table: str) -> list[Path]:
    places = [
        store.folder / table / f"run={run}" / f"dt={day}"
        for day, runs in sorted(version.tables[table].items())
        for run in runs
    ]
    return [file for place in places for file in sorted(place.glob("*.parquet"))]


def as_json(store: Store) -> str:
    """The files by table; `dt` of a row is the day in the name of its folder."""
    return json.dumps({table: [str(file) for file in files] for table, files in live_files(store).items()}, indent=1)


def as_duckdb(store: Store) -> str:
    """A view for each table that has rows."""
    views = []
    for table, files in live_files(store).items():
        names = ", ".join(_quoted(str(file)) for file in files)
        if files:
            views.append(_VIEW.format(table, names))
    return "\n".join(views)


def as_trino(store: Store) -> str:
    """External tables of Trino's Hive connector, over the folder `current`, which only gold has."""
    live_files(store)
    made = []
    for table, schema in sorted(store.schemas.items()):
        columns = ", ".join(f'"{field.name}" {_trino(field.dataType)}' for field in schema)
        place = _quoted(f"file://{(store.folder / 'current' / table).absolute()}")
        made.append(
            f'CREATE TABLE {table} ({columns}, "dt" varchar) '
            f"WITH (format = 'PARQUET', partitioned_by = ARRAY['dt'], external_location = {place});\n"
            f"CALL system.sync_partition_metadata(CURRENT_SCHEMA, '{table}', 'FULL');"
        )
    return "\n".join(made)


def as_pyarrow(store: Store) -> str:
    """Statements of Python: a table for each one that has rows; `to_pandas()` makes a frame of it."""
    lines = ["import pyarrow.dataset as ds", ""]
    for table, files in live_files(store).items():
        if files:
            named = ", ".join(repr(str(file)) for file in files)
            lines.append(f"{table} = ds.dataset([{named}], partitioning='hive').to_table()")
    return "\n".join(lines)


FORMATS: Final[Mapping[str, Callable[[Store], str]]] = {
    "json": as_json,
    "duckdb": as_duckdb,
    "trino": as_trino,
    "pyarrow": as_pyarrow,
}


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _trino(type_: DataType) -> str:
    if isinstance(type_, ArrayType):
        return f"array({_trino(type_.elementType)})"
    if isinstance(type_, MapType):
        return f"map({_trino(type_.keyType)}, {_trino(type_.valueType)})"
    if isinstance(type_, StructType):
        return "row(" + ", ".join(f'"{field.name}" {_trino(field.dataType)}' for field in type_) + ")"
    return _TRINO[type(type_)]
