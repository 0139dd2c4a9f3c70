"""What a report is made of: the rows of the newest versions of silver and gold, and what else the manifests tell.

Reads Parquet files by Arrow; no Spark runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version as installed
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from streamapp.analytics.bronze.ingest import bronze
from streamapp.analytics.build import DEFINITIONS, WHOLE, gold, silver
from streamapp.analytics.errors import AnalyticsError
from streamapp.analytics.tables.bronze_schemas import QUARANTINE
from streamapp.analytics.tables.derived_schemas import GOLD, KEY
from streamapp.analytics.tables.store import Spans, Store, Version, stale_days

Row = Mapping[str, Any]
Key = tuple[str, ...]
"""An application: cluster, namespace, app, uid."""

OF_SILVER: Final = (
    "s_seen",
    "s_config",
    "s_decision_interval",
    "s_scale_episode",
    "s_downtime",
    "s_hold_interval",
    "s_learner_stint",
    "s_assignment_interval",
    "s_rebalance",
)
OF_GOLD: Final = tuple(table for table in GOLD if table != "g_lag_hourly")
"""Lag by hour is too much for a page, and the only table of gold that a report leaves out."""
WIDE: Final = {"blocking", "holders", "kll"}
"""Columns that no figure of the report needs."""


@dataclass(frozen=True, slots=True)
class Tables:
    """What was read."""

    rows: Mapping[str, list[Row]]
    """By table."""
    days: tuple[str, ...]
    """UTC days that are in the report."""
    days_left_out: int = 0
    """Older days of which there are figures too."""
    bad_lines: int = 0
    """In the quarantine of bronze, of all days."""
    lines: int = 0
    """In bronze, of all days."""
    unbuilt: int = 0
    """Days of bronze that silver and gold do not know yet, or know otherwise."""
    dropped: int = 0
    """Lines that recorders say they lost on these days."""
    missing: int = 0
    """Numbers of lines, of all days, between those that bronze has read."""
    versions: Mapping[str, str] = field(default_factory=dict)

    def of(self, table: str) -> dict[Key, list[Row]]:
        """The rows of a table by application."""
        by_app: dict[Key, list[Row]] = {}
        for row in self.rows.get(table, []):
            by_app.setdefault(tuple(row[name] or "" for name in KEY), []).append(row)
        return by_app


def read_tables(root: Path, days: int) -> Tables:
    """Read the last days of which there are figures.

    Args:
        root: folder of the tables.
        days: how many, at most.

    Raises:
        AnalyticsError: there are no tables, or they follow other definitions.
    """
    of_bronze, of_silver, of_gold = (store(root).current() for store in (bronze, silver, gold))
    _require(root, of_bronze, of_gold)
    every = sorted({day for table, of_table in of_silver.tables.items() if table not in WHOLE for day in of_table})
    chosen = every[-days:]
    rows = {table: _rows(silver(root), of_silver, table, chosen) for table in OF_SILVER}
    rows |= {table: _rows(gold(root), of_gold, table, chosen) for table in OF_GOLD}
    # Kept under the day since when it holds, which may be long before.
    rows["s_config"] = _in_force(_rows(silver(root), of_silver, "s_config"), chosen)
    # Learned from all days, and kept under the day of its last stint.
    rows["g_restore_profile"] = _rows(gold(root), of_gold, "g_restore_profile")
    recorders = _rows(bronze(root), of_bronze, "b_recorder", chosen)
    return Tables(
        rows=rows,
        days=tuple(chosen),
        days_left_out=len(every) - len(chosen),
        bad_lines=of_bronze.count(QUARANTINE),
        lines=sum(of_bronze.count(table) for table in of_bronze.tables),
        unbuilt=len(stale_days(of_bronze.days(QUARANTINE), of_gold, of_bronze.kept_from)),
        dropped=sum(row["dropped"] or 0 for row in recorders),
        missing=missing(of_bronze.recorders),
        versions={
            "streamapp-analytics": installed("streamapp-operator"),
            "definitions": str(of_gold.definitions),
            "tables": f"bronze {of_bronze.number}, silver {of_silver.number}, gold {of_gold.number}",
            "operator": ", ".join(sorted({row["operator_version"] for row in recorders if row["operator_version"]}))
            or "unknown",
        },
    )


def missing(read: Spans) -> int:
    """How many numbers are missing between the first and the last one read of each recorder.

    What a recorder wrote before the first that was read is not counted: who begins to read late has none of it.
    """
    return sum(later[0] - earlier[1] - 1 for spans in read.values() for earlier, later in pairwise(spans))


def _require(root: Path, of_bronze: Version, of_gold: Version) -> None:
    if not of_gold.number:
        step = "build" if of_bronze.number else "ingest RECORD"
        why = "nothing was built yet" if of_bronze.number else "there are no tables in it"
        raise AnalyticsError(str(root), why, f"run `streamapp-analytics {step} --root {root}` first")
    if of_gold.definitions != DEFINITIONS:
        why = f"its figures follow definitions {of_gold.definitions}, this program knows {DEFINITIONS}"
        raise AnalyticsError(str(root), why, f"run `streamapp-analytics build --root {root}` first")


def _in_force(configs: list[Row], days: list[str]) -> list[Row]:
    """Those that hold at some time of these days."""
    if not days:
        return []
    first = datetime.fromisoformat(days[0]).replace(tzinfo=UTC)
    return [row for row in configs if row["dt"] <= days[-1] and (row["valid_to"] is None or row["valid_to"] > first)]


def _rows(store: Store, version: Version, table: str, days: list[str] | None = None) -> list[Row]:
    """The rows of some days, or of all."""
    live = {day: runs for day, runs in version.tables.get(table, {}).items() if days is None or day in days}
    columns = store.arrow(replace(version, tables={table: live}), table)
    rows: list[Row] = columns.drop_columns([name for name in columns.column_names if name in WIDE]).to_pylist()
    return rows


def millis(time: datetime) -> int:
    """Milliseconds since 1970, as charts want them."""
    return int(time.timestamp() * 1000)


def shown(time: datetime | None, *, seconds: bool = True) -> str:
    """A time for people, in UTC."""
    if time is None:
        return "unknown"
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M")
