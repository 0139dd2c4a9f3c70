"""Which process ran which task, over time: the layouts of silver, task by task, as columns.

A layout names all tasks of all processes, which is most of what silver weighs: it is taken apart day by day, and only
for the last days.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamapp.analytics.tables.derived_schemas import KEY
from streamapp.analytics.tables.store import Store, Version

LAYOUTS: Final = "s_layout_interval"
DAYS: Final = 7
"""Last days of which a strip is drawn."""
COLUMNS: Final = (*KEY, "task", "process_id", "ordinal", "t_start", "t_end")


def task_stays(silver: Store, version: Version, days: Sequence[str]) -> pa.Table:
    """One row for each time that a process ran a task without a break: `COLUMNS`, of the last days."""
    parts = [_day(silver, version, day) for day in days[-DAYS:] if day in version.tables.get(LAYOUTS, {})]
    if not parts:
        return pa.table({name: [] for name in COLUMNS})
    return _joined(pa.concat_tables(parts, promote_options="permissive"))


def _day(silver: Store, version: Version, day: str) -> pa.Table:
    runs = version.tables[LAYOUTS][day]
    names = {*KEY, "t_start", "t_end", "holders"}
    but = [name for name in silver.schemas[LAYOUTS].names if name not in names]
    layouts = silver.arrow(replace(version, tables={LAYOUTS: {day: runs}}), LAYOUTS, but=but)
    return _joined(_flat(layouts))


def _flat(layouts: pa.Table) -> pa.Table:
    """A row for each task of each process of each layout."""
    holders = layouts["holders"].combine_chunks()
    members, of_layout = holders.flatten(), pc.list_parent_indices(holders)
    active = pc.struct_field(members, "active")
    of_member = pc.list_parent_indices(active)
    layout = of_layout.take(of_member)
    columns = {name: layouts[name].take(layout) for name in (*KEY, "t_start", "t_end")}
    columns |= {name: pc.struct_field(members, name).take(of_member) for name in ("process_id", "ordinal")}
    return pa.table({**columns, "task": active.flatten()}).select(COLUMNS)


def _joined(rows: pa.Table) -> pa.Table:
    """Rows of one task and process that meet, as one."""
    if not len(rows):
        return rows
    texts = [name for name in COLUMNS if name not in {"ordinal", "t_start", "t_end"}]
    plain = pa.table(
        {name: rows[name].cast(pa.string()) if name in texts else rows[name].combine_chunks() for name in COLUMNS}
    )
    plain = plain.sort_by([(name, "ascending") for name in (*KEY, "task", "t_start")])
    codes = [plain[name].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False) for name in texts]
    same = np.logical_and.reduce([code[1:] == code[:-1] for code in codes])
    starts, ends = (plain[name].cast(pa.int64()).to_numpy() for name in ("t_start", "t_end"))
    first = np.concatenate(([True], ~(same & (starts[1:] == ends[:-1]))))
    last = np.concatenate((first[1:], [True]))
    found = plain.filter(pa.array(first))
    return found.set_column(COLUMNS.index("t_end"), "t_end", plain["t_end"].filter(pa.array(last)))
