"""Advice about the size of volumes: those that are full, or will be soon. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date
from math import ceil
from statistics import linear_regression, median
from typing import Final

from streamapp.analytics.report.advice.facts import Facts
from streamapp.analytics.report.advice.model import Advice, Effect
from streamapp.analytics.report.amounts import share, size
from streamapp.analytics.report.rows import Row

GIB: Final = 2**30
FULL_SHARE: Final = 0.8
"""Of a volume, that is in use, from which on it is too small."""
ROOM: Final = 1.5
"""What a volume should have, as a multiple of what is in use."""
SOON_DAYS: Final = 30
"""Within which a volume that grows must not be full."""
LEAST_DAYS: Final = 7
"""Days of a volume, before its growth is believed."""


def volume_size(facts: Facts) -> Iterator[Advice]:
    """A larger size for all volumes, where one is nearly full, or will be at the growth that was seen."""
    by_volume: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(facts.rows["g_volume_daily"], key=lambda row: row["dt"]):
        if row["free_bytes"] is not None and row["requested_bytes"]:
            by_volume[row["volume"]].append(row)
    tight = {name: days for name, days in by_volume.items() if _is_tight(days)}
    if not tight:
        return
    fullest = max(tight, key=lambda name: (_in_use(tight[name]) / _size(tight[name]), name))
    present, used = _size(tight[fullest]), _in_use(tight[fullest])
    proposed = max(ceil(ROOM * _in_use_soon(days) / GIB) for days in tight.values())
    free = sorted(proposed - _in_use(days) / GIB for days in tight.values())
    growth = _growth(tight[fullest])
    grows = "" if growth is None else f", and grew by {size(max(growth, 0.0))} a day"
    yield Advice(
        knob="size of the volumes",
        current=size(present),
        proposed=f"{proposed} GiB",
        evidence=f"{len(tight)} of {len(by_volume)} volumes are nearly full or will be within {SOON_DAYS} days; "
        f"of {fullest} {share(used / present)} is in use{grows}",
        days=facts.days,
        n=sum(map(len, tight.values())),
        effect=Effect(free[0], median(free), free[-1], "GiB free on such a volume"),
        vetoes=(
            f"all {len(by_volume)} volumes of the application become larger, and none can be made smaller",
            "the storage class must allow expansion",
            *(() if growth is not None else (f"its growth is not known: fewer than {LEAST_DAYS} days",)),
        ),
        patch={"spec": {"state": {"volumeClaimTemplate": {"resources": {"requests": {"storage": f"{proposed}Gi"}}}}}},
        object="StreamApp",
        name=facts.name,
    )


def _size(days: Sequence[Row]) -> int:
    found: int = days[-1]["requested_bytes"]
    return found


def _in_use(days: Sequence[Row]) -> float:
    """By whatever lies there: not by the state alone."""
    newest = days[-1]
    return float(max(newest["requested_bytes"] - newest["free_bytes"], newest["state_bytes"]))


def _growth(days: Sequence[Row]) -> float | None:
    """Bytes of state a day; None if too few days are known."""
    if len(days) < LEAST_DAYS:
        return None
    numbers = [date.fromisoformat(row["dt"]).toordinal() for row in days]
    return linear_regression(numbers, [row["state_bytes"] for row in days]).slope


def _in_use_soon(days: Sequence[Row]) -> float:
    return _in_use(days) + SOON_DAYS * max(_growth(days) or 0.0, 0.0)


def _is_tight(days: Sequence[Row]) -> bool:
    return _in_use(days) >= FULL_SHARE * _size(days) or _in_use_soon(days) >= _size(days)
