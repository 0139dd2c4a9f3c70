"""A what-if as a table for people: what was seen first, then the present settings computed, then other ones. Pure."""

from collections.abc import Callable
from typing import Final

from streamapp.analytics.report.amounts import count, duration, hours
from streamapp.analytics.report.whatif.facts import Stood
from streamapp.analytics.report.whatif.outcome import Range, WhatIf

LABEL: Final = "Arithmetic over what was seen, not a prediction: load and traffic stay as they were."
HEADINGS: Final = ("settings", "pod-hours", "held", "tasks stood", "raises", "removals")


def compared(found: WhatIf) -> list[tuple[str, ...]]:
    """The cells under `HEADINGS`."""
    seen = found.seen
    first = ("seen", hours(seen.pod_h), duration(seen.held_s), _stood(seen.stood))
    rows: list[tuple[str, ...]] = [(*first, count(seen.raises), count(seen.removals))]
    for one in (found.present, *found.others):
        title = "as it was, computed" if one is found.present else one.title
        pods, held = _range(one.pod_h, hours), _range(one.held_s, duration)
        rows.append((title, pods, held, _stood(one.stood), count(one.raises), count(one.removals)))
    return rows


def calibration(found: WhatIf) -> str:
    """How far the computed figures of the present settings are from what was seen, as a sentence."""
    known = (("pod-hours", found.pod_error), ("time held", found.held_error))
    parts = [f"{_off(error)} of the {what}" for what, error in known if error is not None]
    return f"Error of the present settings: {' and '.join(parts) or 'unknown'}."


def _off(error: float) -> str:
    return f"{error:+.1%}".replace("%", " %") if abs(error) >= 0.0005 else "0 %"


def _range(value: Range, to_text: Callable[[float | None], str]) -> str:
    words = [to_text(one) for one in (value.low, value.mid, value.high)]
    return words[1] if words[0] == words[2] else f"{words[1]} ({words[0]} to {words[2]})"


def _stood(stood: Stood) -> str:
    """A range of task-seconds."""
    least, most = duration(stood.least), duration(stood.most)
    return most if least == most else f"{least} to {most}"
