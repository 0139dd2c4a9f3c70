"""Applications that stand out among their siblings: by how many times their figure is more than usual. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from streamapp.analytics.report.facts import ReportedApp

FAR: Final = 3.0
"""Times the usual, from which on a figure stands out."""
LEAST_SIBLINGS: Final = 3
"""Other applications with the figure, before anything is usual."""


@dataclass(frozen=True, slots=True)
class Excess:
    """One figure of one application that stands out."""

    figure: str
    """Key of `FIGURES`."""
    times: float
    """Over what is usual."""
    usual_s: float
    """Median of the other applications, in seconds."""


def _when(value: float | None) -> float | None:
    return value or None


FIGURES: Final[dict[str, tuple[Callable[[ReportedApp], float | None], float]]] = {
    "stood": (lambda app: _when(app.downtime.at_most_s), 10.0),
    "up": (lambda app: app.up.median_s, 30.0),
    "down": (lambda app: app.down.median_s, 30.0),
    "held": (lambda app: _when(app.held_s), 60.0),
    "gap": (lambda app: _when(app.gap_s), 5.0),
}
"""Each figure in seconds, None if unknown, with the seconds that are usual at least: less is of no matter."""


def excesses(apps: Sequence[ReportedApp]) -> dict[tuple[str, ...], dict[str, Excess]]:
    """By application and figure, the largest first."""
    found: dict[tuple[str, ...], dict[str, Excess]] = {app.key: {} for app in apps}
    for name, (figure, floor) in FIGURES.items():
        values = {app.key: value for app in apps if (value := figure(app)) is not None}
        if len(values) <= LEAST_SIBLINGS:
            continue
        ordered = sorted(values.values())
        for key, value in values.items():
            usual = _median_without(ordered, value)
            times = value / max(usual, floor)
            if times >= FAR:
                found[key][name] = Excess(name, times, usual)
    return {key: dict(sorted(of_app.items(), key=lambda item: -item[1].times)) for key, of_app in found.items()}


def _median_without(ordered: Sequence[float], value: float) -> float:
    others = [*ordered]
    others.remove(value)
    return median(others)


def ranked(apps: Sequence[ReportedApp]) -> list[ReportedApp]:
    """Those with tasks that do not run first, then by how far they stand out; the order among equals stays."""
    of = excesses(apps)

    def place(app: ReportedApp) -> tuple[bool, float]:
        return not app.downtime.open, -max((one.times for one in of[app.key].values()), default=0.0)

    return sorted(apps, key=place)
