"""The rows of one application at a time: a month of a fleet is gigabytes as Python values, and megabytes as columns."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamapp.analytics.tables.derived_schemas import KEY

Row = Mapping[str, Any]
Key = tuple[str, ...]
"""An application: cluster, namespace, app, uid."""
_BETWEEN: Final = "\x00"
"""Stands in no name."""


@dataclass(frozen=True, slots=True)
class ByApp:
    """A table, its rows in the order of applications."""

    table: pa.Table
    spans: Mapping[Key, tuple[int, int]]
    """The first row of each application, and how many it has."""

    def of(self, key: Key) -> pa.Table:
        """The rows of an application."""
        first, count = self.spans.get(key, (0, 0))
        return self.table.slice(first, count)


@dataclass(frozen=True, slots=True)
class AppRows(Mapping[str, Sequence[Row]]):
    """The rows of an application by table: they become Python values each time they are asked for, and are not kept."""

    tables: Mapping[str, pa.Table]

    def __getitem__(self, table: str) -> list[Row]:
        rows: list[Row] = self.tables[table].to_pylist()
        return rows

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def has(self, table: str) -> bool:
        """Whether there is a row, without making values of any."""
        return bool(len(self.tables[table]))


def by_app(table: pa.Table) -> ByApp:
    """Sort a table by application."""
    if not len(table):
        return ByApp(table, {})
    names = [pc.fill_null(table[name].cast(pa.string()), "") for name in KEY]
    keys = pc.binary_join_element_wise(*names, _BETWEEN).combine_chunks().dictionary_encode()
    order = np.argsort(keys.indices.to_numpy(), kind="stable")
    numbers = keys.indices.to_numpy()[order]
    starts = np.concatenate(([0], np.flatnonzero(np.diff(numbers)) + 1, [len(numbers)]))
    apps = [tuple(keys.dictionary[int(numbers[at])].as_py().split(_BETWEEN)) for at in starts[:-1]]
    spans = {app: (int(first), int(end - first)) for app, first, end in zip(apps, starts[:-1], starts[1:], strict=True)}
    return ByApp(table.unify_dictionaries().take(pa.array(order)), spans)
