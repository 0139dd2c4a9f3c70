"""Every table of gold equals, row by row, what DuckDB makes of the same bronze in other words."""

from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from streamapp.analytics.tables.derived_schemas import GOLD, KEY
from tests.analytics.conftest import Whole
from tests.analytics.support.oracle import recompute
from tests.analytics.support.reading import plain, records

pytestmark = [pytest.mark.analytics, pytest.mark.timeout(900)]
EPOCH = date(1970, 1, 1)


def comparable(row: dict[str, Any]) -> str:
    """A row as text: what is null is left out, sums are rounded; half a microsecond is rounded up by both engines."""
    values = {name: plain(round(value + 1e-9, 6) if isinstance(value, float) else value) for name, value in row.items()}
    told = {name: plain(dict(value)) if isinstance(value, list) else value for name, value in values.items()}
    return str(sorted((name, value) for name, value in told.items() if value is not None))


def gold_rows(root: Path, table: str) -> list[str]:
    """The pipeline's rows, named as the oracle's are."""
    found = []
    for row in records(root, table):
        key = "/".join(row[name] for name in KEY)
        rest = {name: value for name, value in row.items() if name not in {*KEY, "dt"}}
        if isinstance(rest.get("phase_share"), list):
            rest["phase_share"] = {name: round(share, 6) for name, share in rest["phase_share"]}
        if isinstance(rest.get("by_cause"), list):
            rest["by_cause"] = {name: round(seconds, 6) for name, seconds in rest["by_cause"]}
        found.append(comparable({**rest, "k": key, "d": (date.fromisoformat(row["dt"]) - EPOCH).days}))
    return sorted(found)


def oracle_rows(rows: list[dict[str, Any]]) -> list[str]:
    for row in rows:
        if "phase_share" in row:
            row["phase_share"] = {name: round(share, 6) for name, share in dict(row["phase_share"]).items()}
        if "by_cause" in row:
            row["by_cause"] = {name: round(seconds, 6) for name, seconds in dict(row["by_cause"]).items()}
    return sorted(comparable(row) for row in rows)


def test_every_table_of_gold_equals_the_oracles(whole: Whole) -> None:
    wanted = recompute(whole.root)
    assert set(wanted) == set(GOLD)
    assert all(wanted.values())
    different = {}
    for table, rows in wanted.items():
        found, told = Counter(gold_rows(whole.root, table)), Counter(oracle_rows(rows))
        if found != told:
            different[table] = {"only Spark": sorted(found - told), "only DuckDB": sorted(told - found)}
    assert different == {}
