"""How long rows are kept: removes old days from a layer's newest version, and their files a day later.

Called by the command line after a build; needs no Spark. Days are counted back from the newest one in bronze, not from
today, so that an old record is not lost for being old. What a later build needs stays: days that silver or gold were
not built from as they are now, and the few lines that say what has been in force or desired since.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from streamapp.analytics.bronze.ingest import bronze
from streamapp.analytics.build import WHOLE, gold, silver
from streamapp.analytics.tables.bronze_schemas import QUARANTINE
from streamapp.analytics.tables.store import Store, Version, stale_days

NEEDED: Final = frozenset({"b_config", "b_recorder", "b_scale", *WHOLE})
"""Tables of some lines a month, of which the newest row may be older than any limit and still be in force."""


@dataclass(frozen=True, slots=True)
class Keep:
    """For how many days rows are kept; 0 is for ever."""

    bronze: int = 30
    silver: int = 400
    gold: int = 0

    def __post_init__(self) -> None:
        """Refuse to keep what is made of something for a shorter time: it would be made again and again.

        Raises:
            ValueError: a layer is kept for longer than the next one.
        """
        bounds = [days or 10**9 for days in (self.bronze, self.silver, self.gold)]
        if bounds != sorted(bounds):
            msg = "bronze cannot be kept for longer than silver, nor silver for longer than gold"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed."""

    first_days: tuple[str, str, str]
    """First day that bronze, silver and gold keep; empty where all are kept."""
    days: tuple[int, int, int]
    """Days that went, of each."""
    waits_for: Path | None = None
    """Of a run that works, or was killed less than a day ago: nothing is removed meanwhile."""


def remove_old(root: Path, keep: Keep) -> Removed:
    """Remove what is older than is to be kept.

    Raises:
        AnalyticsError: another run finished meanwhile; what was removed by then stays so.
    """
    stores = (bronze(root), silver(root), gold(root))
    versions = tuple(store.current() for store in stores)
    working = next((found for store in stores if (found := store.works_on()) is not None), None)
    days = versions[0].days(QUARANTINE)
    if working is not None or not days:
        return Removed(_firsts(versions), (0, 0, 0), working)
    unbuilt = {day for made in versions[1:] for day in stale_days(days, made, versions[0].kept_from)}
    firsts = first_days(keep, max(days), unbuilt)
    done = [_cut(*one) for one in zip(stores, versions, firsts, strict=True)]
    if done[2] != versions[2]:
        stores[2].publish(done[2])
    counts = [len(_days(old) - _days(new)) for old, new in zip(versions, done, strict=True)]
    return Removed(_firsts(tuple(done)), (counts[0], counts[1], counts[2]))


def first_days(keep: Keep, newest: str, unbuilt: Collection[str]) -> tuple[str, str, str]:
    """The first day that bronze, silver and gold have to keep; empty where all are kept.

    Args:
        keep: for how long.
        newest: the newest day in bronze.
        unbuilt: days of bronze that silver or gold were not built from as they are now.
    """
    of_bronze = min({_back(newest, keep.bronze), *unbuilt})
    of_silver = min(of_bronze, _back(newest, keep.silver))
    return of_bronze, of_silver, min(of_silver, _back(newest, keep.gold))


def _back(newest: str, count: int) -> str:
    """The first of so many days; empty where there is no limit."""
    return (date.fromisoformat(newest) - timedelta(days=count - 1)).isoformat() if count else ""


def _cut(store: Store, version: Version, first: str) -> Version:
    """Commit a version without the days before the first one, if there are any."""
    first = max(first, version.kept_from)
    cut = version.only(lambda table, day: day >= first or table in NEEDED)
    if cut == version:
        return version
    built_from = {day: runs for day, runs in version.built_from.items() if day >= first}
    return store.commit(replace(cut, kept_from=first, built_from=built_from))


def _days(version: Version) -> set[str]:
    return {day for table, days in version.tables.items() if table not in NEEDED for day in days}


def _firsts(versions: tuple[Version, ...]) -> tuple[str, str, str]:
    return (versions[0].kept_from, versions[1].kept_from, versions[2].kept_from)
