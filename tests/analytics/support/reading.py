"""Tables as Python values, read without Spark: what a test compares."""

from decimal import Decimal
from pathlib import Path
from typing import Any

from streamapp.analytics.bronze.ingest import bronze
from streamapp.analytics.build import gold, silver
from streamapp.analytics.tables.store import Store

Row = tuple[Any, ...]


def store(root: Path, table: str) -> Store:
    """The layer that a table belongs to."""
    return {"b": bronze, "s": silver, "g": gold}[table[0]](root)


def files(root: Path, table: str) -> list[str]:
    """The files whose rows count."""
    of = store(root, table)
    days = of.current().tables.get(table, {})
    places = [of.folder / table / f"run={run}" / f"dt={day}" for day, runs in sorted(days.items()) for run in runs]
    return [str(file) for place in places for file in sorted(place.glob("*.parquet"))]


def records(root: Path, table: str) -> list[dict[str, Any]]:
    """The rows, each with its `dt`."""
    of = store(root, table)
    found: list[dict[str, Any]] = of.arrow(of.current(), table).to_pylist()
    return found


def plain(value: Any) -> Any:
    """A value that compares: sums in another order differ in their last digits."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, Decimal):
        return int(value)
    if isinstance(value, list | tuple):
        return tuple(plain(one) for one in value)
    if isinstance(value, dict):
        return tuple((name, plain(one)) for name, one in sorted(value.items()))
    return value


def rows(root: Path, table: str) -> list[str]:
    """All rows of a table in an order that depends on them alone."""
    told = [{name: plain(one) for name, one in row.items()} for row in records(root, table)]
    return sorted(str(sorted(row.items())) for row in told)
