"""What a report is made of: the rows of the newest versions of silver and gold, and what else the manifests tell.

Reads Parquet files by Arrow; no Spark runs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version as installed
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from streamapp.analytics.bronze.ingest import bronze
from streamapp.analytics.build import DEFINITIONS, WHOLE, gold, silver
from streamapp.analytics.errors import AnalyticsError
from streamapp.analytics.report.rows import AppRows, ByApp, Key, Row, by_app
from streamapp.analytics.report.timeline.strip import task_stays
from streamapp.analytics.tables.bronze_schemas import QUARANTINE
from streamapp.analytics.tables.derived_schemas import GOLD
from streamapp.analytics.tables.store import Spans, Store, Version, stale_days

OF_SILVER: Final = (
    "s_seen",
    "s_config",
    "s_decision_interval",
    "s_scale_episode",
    "s_downtime",
    "s_outage",
    "s_hold_interval",
    "s_learner_stint",
    "s_assignment_interval",
    "s_autoscaler_interval",
    "s_pod_interval",
    "s_rebalance",
)
OF_GOLD: Final = tuple(GOLD)
STAYS: Final = "task_stays"
"""Beside the tables: which process ran which task, made of layouts."""
WIDE: Final = {"blocking", "holders"}
"""Columns that no figure of the report needs."""


@dataclass(frozen=True, slots=True)
class Tables:
    """What was read."""

    rows: Mapping[str, ByApp]
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
    damaged: tuple[str, ...] = ()
    """Files of the record that could be read in part only, of all days, with what is wrong."""
    is_mixed: bool = False
    """Whether silver was built from other lines than gold."""
    dropped: int = 0
    """Lines that recorders say they lost on these days."""
    missing: int = 0
    """Numbers of lines, of all days, between those that bronze has read."""
    versions: Mapping[str, str] = field(default_factory=dict)

    def of(self, key: Key) -> AppRows:
        """The rows of an application."""
        return AppRows({table: rows.of(key) for table, rows in self.rows.items()})


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
    every = _days(of_silver)
    chosen = every[-days:]
    # Learned from all days, and kept under the day of its last stint.
    of_days = {**dict.fromkeys((*OF_SILVER, *OF_GOLD), chosen), "g_restore_profile": None}
    rows = {table: by_app(_columns(silver(root), of_silver, table, of_days[table])) for table in OF_SILVER}
    rows |= {table: by_app(_columns(gold(root), of_gold, table, of_days[table])) for table in OF_GOLD}
    # Kept under the day since when it holds, which may be long before.
    rows["s_config"] = by_app(_in_force(_columns(silver(root), of_silver, "s_config"), chosen))
    rows[STAYS] = by_app(task_stays(silver(root), of_silver, chosen))
    recorders: list[Row] = _columns(bronze(root), of_bronze, "b_recorder", chosen).to_pylist()
    return Tables(
        rows=rows,
        days=tuple(chosen),
        days_left_out=len(every) - len(chosen),
        bad_lines=of_bronze.count(QUARANTINE),
        lines=sum(of_bronze.count(table) for table in of_bronze.tables),
        unbuilt=len(stale_days(of_bronze.days(QUARANTINE), of_gold, of_bronze.kept_from)),
        damaged=tuple(of_bronze.damaged.values()),
        is_mixed=of_silver.built_from != of_gold.built_from,
        dropped=sum(row["dropped"] or 0 for row in recorders),
        missing=missing(of_bronze.recorders),
        versions={
            "streamapp-analytics": installed("streamapp-operator"),
            "definitions": str(of_gold.definitions),
            "tables": f"bronze {of_bronze.number}, silver {of_silver.number}, gold {of_gold.number}",
            "operator": _operators(recorders),
        },
    )


def _operators(recorders: Iterable[Row]) -> str:
    """The versions of the operators that wrote the record."""
    return ", ".join(sorted({row["operator_version"] for row in recorders if row["operator_version"]})) or "unknown"


def missing(read: Spans) -> int:
    """How many numbers are missing between the first and the last one read of each recorder.

    What a recorder wrote before the first that was read is not counted: who begins to read late has none of it.
    """
    return sum(later[0] - earlier[1] - 1 for spans in read.values() for earlier, later in pairwise(spans))


def _days(of_silver: Version) -> list[str]:
    return sorted({day for table, of_table in of_silver.tables.items() if table not in WHOLE for day in of_table})


def _require(root: Path, of_bronze: Version, of_gold: Version) -> None:
    if not of_gold.number:
        step = "build" if of_bronze.number else "ingest RECORD"
        why = "nothing was built yet" if of_bronze.number else "there are no tables in it"
        raise AnalyticsError(str(root), why, f"run `streamapp-analytics {step} --root {root}` first")
    if of_gold.definitions != DEFINITIONS:
        why = f"its figures follow definitions {of_gold.definitions}, this program knows {DEFINITIONS}"
        raise AnalyticsError(str(root), why, f"run `streamapp-analytics build --root {root}` first")


def _in_force(configs: pa.Table, days: list[str]) -> pa.Table:
    """Those that hold at some time of these days."""
    if not days or not len(configs):
        return configs.slice(0, 0)
    first = datetime.fromisoformat(days[0]).replace(tzinfo=UTC)
    is_later = pc.or_kleene(pc.is_null(configs["valid_to"]), pc.greater(configs["valid_to"], pa.scalar(first)))
    return configs.filter(
        pc.and_(pc.less_equal(configs["dt"].cast(pa.string()), days[-1]), pc.fill_null(is_later, False))
    )


def _columns(store: Store, version: Version, table: str, days: list[str] | None = None) -> pa.Table:
    """The rows of some days, or of all."""
    live = {day: runs for day, runs in version.tables.get(table, {}).items() if days is None or day in days}
    return store.arrow(replace(version, tables={table: live}), table, but=WIDE)


def millis(time: datetime) -> int:
    """Milliseconds since 1970, as charts want them."""
    return int(time.timestamp() * 1000)


def shown(time: datetime | None, *, seconds: bool = True) -> str:
    """A time for people, in UTC."""
    if time is None:
        return "unknown"
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M")
