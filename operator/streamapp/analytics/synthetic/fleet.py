"""The made-up fleet behind `streamapp-analytics generate`: who scales when, and what is true of it.

What gold must find again is planted here and told by `Truth`: rates of restoring, an autoscaler that flaps, a sick
volume, a skewed application. Everything follows from the seed.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

ACCEPTABLE_LAG: Final = 10_000
DAY: Final = 86_400.0
SICK_SHARE: Final = 0.125
"""Part of the usual rate that a sick volume gives."""
SUBTOPOLOGIES: Final = 2
FLAP_SECONDS: Final = (480.0, 60.0)
"""How long a flapping autoscaler keeps the desired replicas, in turn: long enough to converge, and not."""
FLAP_SIZE: Final = 2
VOLUME_BYTES: Final = 10 * 2**30
"""What each claim asks for."""
STATE_SHARE: Final = 0.3
"""Part of a volume that a state takes."""
FULL_SHARE: Final = 0.92
"""Part of the first volume of the skewed application that its state takes: its first pod has most of the tasks."""
FLAPS_A_DAY: Final = 6

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Fleet:
    """What is to be made up."""

    apps: int = 4
    days: int = 1
    tasks: int = 12
    """Of each application, stateful all of them."""
    pods: int = 4
    seed: int = 1
    start: datetime = datetime(2026, 11, 1, tzinfo=UTC)
    heartbeat_seconds: float = 300.0
    look_seconds: float = 10.0
    file_seconds: float = 300.0
    bug: bool = False
    """Plant the bug of a recorder that writes −1 for a position it does not know."""


@dataclass(frozen=True, slots=True)
class SyntheticApp:
    """One application."""

    index: int
    name: str
    uid: str
    tasks: tuple[str, ...]
    append: Floats
    """Slots a second that are written to the changelogs of each task, with as many pods as at the beginning."""
    rate: Floats
    """Slots a second that a copy of each task restores on a sound volume."""
    processes: tuple[str, ...]
    """Process ID of each ordinal that ever is."""
    flaps: bool
    skewed: bool
    sick_ordinal: int | None
    wants_fewer: bool
    """Its autoscaler wants fewer pods than its minimum, whenever it is there."""
    events: tuple[tuple[float, int, int], ...]
    """Seconds since the start, replicas before and after."""

    def load(self, at: float) -> float:
        """Slots written a second, as a multiple of `append`: pods follow the load, but of a skewed application.

        There the busiest pod is the limit, and another pod takes nothing from it.
        """
        if self.skewed or not self.events:
            return 1.0
        replicas = [self.events[0][1], *(after for begins, _, after in self.events if begins <= at)]
        return replicas[-1] / replicas[0]

    def written(self, at: Floats) -> Floats:
        """Seconds of `append` that were written by a time: the load over time, summed up."""
        edges = np.array([0.0, *(begins for begins, *_ in self.events)])
        loads = np.array([self.load(edge) for edge in edges])
        sums = np.concatenate(([0.0], np.cumsum(loads[:-1] * np.diff(edges))))
        since = np.searchsorted(edges, at, side="right") - 1
        return np.asarray(sums[since] + loads[since] * (at - edges[since]), dtype=np.float64)

    def state_bytes(self, ordinal: int) -> int:
        """What lies on the volume of a pod."""
        share = FULL_SHARE if self.skewed and ordinal == 0 else STATE_SHARE + 0.01 * ordinal
        return int(share * VOLUME_BYTES)

    def speed(self, task: int, ordinal: int) -> float:
        """Slots a second at which a copy restores there."""
        return float(self.rate[task]) * (SICK_SHARE if ordinal == self.sick_ordinal else 1.0)

    def owners(self, pods: int) -> NDArray[np.int64]:
        """The ordinal that runs each task when so many pods are there."""
        spread = np.arange(len(self.tasks)) % pods
        if self.skewed and pods > 1:
            most = (2 * len(self.tasks)) // 3
            spread = np.where(np.arange(len(self.tasks)) < most, 0, 1 + np.arange(len(self.tasks)) % (pods - 1))
        return spread.astype(np.int64)


@dataclass(frozen=True, slots=True)
class Truth:
    """What gold must find."""

    rates: dict[str, dict[str, float]] = field(default_factory=dict)
    """Slots a second by application and subtopology, on sound volumes."""
    sick_volume: tuple[str, str] = ("", "")
    """Application and volume."""
    flapping: str = ""
    flap_pairs_a_day: int = FLAPS_A_DAY
    wasted_a_day: int = FLAPS_A_DAY // 2
    skewed: str = ""
    max_share: float = 0.0
    """Part of the skewed application's tasks that its first pod runs. No raise raises its throughput."""
    full_volume: str = ""
    """The first volume of the skewed application."""
    wants_fewer: str = ""
    """Its autoscaler is at its minimum most of the time, and wants fewer pods then."""


def volume(app: SyntheticApp, ordinal: int) -> str:
    """Name of the claim of a pod."""
    return f"state-{app.name}-{ordinal}"


def _uuid(rng: Generator) -> str:
    return str(UUID(bytes=rng.bytes(16), version=4))


def _events(rng: Generator, fleet: Fleet, *, flaps: bool) -> tuple[tuple[float, int, int], ...]:
    """A pair of growth and removal every six hours; a flapping one takes back each growth of two within minutes."""
    found = []
    for day in range(fleet.days):
        if flaps:
            for flap in range(FLAPS_A_DAY):
                at = day * DAY + 3600.0 * (2 + 3 * flap) + rng.uniform(0, 300)
                found.append((at, fleet.pods, fleet.pods + FLAP_SIZE))
                found.append((at + FLAP_SECONDS[flap % 2], fleet.pods + FLAP_SIZE, fleet.pods))
            continue
        for quarter in range(4):
            at = day * DAY + quarter * DAY / 4 + rng.uniform(600, 7200)
            found.append((at, fleet.pods, fleet.pods + 1))
            found.append((at + rng.uniform(7200, 10800), fleet.pods + 1, fleet.pods))
    return tuple(found)


def make_apps(fleet: Fleet) -> list[SyntheticApp]:
    """The applications: the first flaps, the second has a sick volume, the third is skewed.

    The autoscaler of the fourth wants fewer pods; the others are sound.
    """
    found = []
    for index in range(fleet.apps):
        rng = np.random.default_rng([fleet.seed, index])
        names = tuple(f"{n % SUBTOPOLOGIES}_{n // SUBTOPOLOGIES}" for n in range(fleet.tasks))
        rates = rng.uniform(20_000, 80_000, SUBTOPOLOGIES)
        flaps = index == 0
        found.append(
            SyntheticApp(
                index=index,
                name=f"app-{index:03d}",
                uid=_uuid(rng),
                tasks=names,
                append=rng.uniform(200, 1000, fleet.tasks),
                rate=rates[np.arange(fleet.tasks) % SUBTOPOLOGIES],
                processes=tuple(_uuid(rng) for _ in range(fleet.pods + FLAP_SIZE + 1)),
                flaps=flaps,
                skewed=index == 2,
                # The top ordinal: it comes and goes with each step, so that copies are restored on it.
                sick_ordinal=fleet.pods if index == 1 else None,
                wants_fewer=index == 3,
                events=_events(rng, fleet, flaps=flaps),
            )
        )
    return found


def truth(fleet: Fleet, apps: list[SyntheticApp]) -> Truth:
    """What is true of them."""
    rates = {app.name: {str(sub): float(app.rate[sub]) for sub in range(SUBTOPOLOGIES)} for app in apps}
    sick = next((app for app in apps if app.sick_ordinal is not None), None)
    skewed = next((app for app in apps if app.skewed), None)
    return Truth(
        rates=rates,
        sick_volume=(sick.name, volume(sick, fleet.pods)) if sick else ("", ""),
        flapping=next((app.name for app in apps if app.flaps), ""),
        skewed=skewed.name if skewed else "",
        full_volume=volume(skewed, 0) if skewed else "",
        wants_fewer=next((app.name for app in apps if app.wants_fewer), ""),
        max_share=float(np.mean(skewed.owners(fleet.pods) == 0)) if skewed else 0.0,
    )
