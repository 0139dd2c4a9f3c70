"""Which days are to be built again because the configuration is another one, besides those whose lines changed.

Called by `build`. The first configuration that is known of an application holds for the time before it too, so that one
which comes late reaches back to the first line of it.
"""

from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamapp.analytics.tables.derived_schemas import KEY

App = tuple[str, ...]
"""The values of `KEY`."""


class Limit(NamedTuple):
    """What of an application's configuration other tables are computed with; times as text that sorts."""

    app: App
    start: str
    end: str | None
    lag: int | None
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """The configuration before a build, and after, of the applications of which it is not the same."""

    before: frozenset[Limit]
    after: frozenset[Limit]
    known: frozenset[App]
    """Applications with lines from before the first day that changed."""


def limits_in(config: DataFrame, apps: DataFrame) -> frozenset[Limit]:
    """Read `s_config`, of some applications."""
    # As text: Python would give times in the zone of this machine.
    times = [F.date_format(name, "yyyy-MM-dd HH:mm:ss.SSSSSS").alias(name) for name in ("valid_from", "valid_to")]
    rows = config.join(apps, [*KEY], "left_semi").select(*KEY, *times, "lag_limit", "stateful_tasks").collect()
    return frozenset(
        Limit(tuple(row[name] for name in KEY), row["valid_from"], row["valid_to"], row[-2], tuple(row[-1] or ()))
        for row in rows
    )


def differing(before: DataFrame, after: DataFrame) -> DataFrame:
    """The applications whose configuration is another one in one `s_config` than in the other.

    What stays the same reaches nowhere, and is most of a fleet's history: it never comes to the driver.
    """
    digests = [
        config.groupBy(*KEY).agg(
            F.count(F.lit(1)).alias("n"),
            F.bit_xor(F.xxhash64("valid_from", "valid_to", "lag_limit", "stateful_tasks")).alias("digest"),
        )
        for config in (before, after)
    ]
    alone = digests[0].unionByName(digests[1]).groupBy(*KEY, "n", "digest").agg(F.count(F.lit(1)).alias("times"))
    return alone.where("times = 1").select(*KEY).distinct()


def known_before(seen: DataFrame, day: str) -> frozenset[App]:
    """Applications that `s_seen` has on days before this one."""
    return frozenset(tuple(row) for row in seen.where(F.col("dt") < day).select(*KEY).distinct().collect())


def reached(changed: set[str], days: set[str], limits: Limits) -> set[str]:
    """The days to be built: with another configuration the later ones too, and all if it reaches further back.

    Args:
        changed: days with other lines; at least one.
        days: all there are.
        limits: the configuration.
    """
    if limits.before == limits.after:
        return changed
    first = min(changed)
    if _earlier(limits.before, limits.known, first) == _earlier(limits.after, limits.known, first):
        return {day for day in days if day >= first}
    return days


def _earlier(rows: frozenset[Limit], known: frozenset[App], first: str) -> set[Limit]:
    """What holds before the first changed day, as far as it reaches up to it."""
    starts: dict[App, str] = {}
    for row in rows:
        starts[row.app] = min(row.start, starts.get(row.app, row.start))
    found = set()
    for row in rows:
        start = "" if row.app in known and row.start == starts[row.app] else row.start
        if start[:10] < first:
            end = row.end if row.end is not None and row.end[:10] < first else None
            found.add(row._replace(start=start, end=end))
    return found
