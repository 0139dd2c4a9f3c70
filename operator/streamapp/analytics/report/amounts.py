"""Figures as text for people; an unknown figure is `unknown`, never a number."""

from typing import Final

UNKNOWN: Final = "unknown"


def duration(seconds: float | None) -> str:
    """As in `0.45 s`, `58 s`, `7 min 3 s`, `3 h 5 min`, `2.5 d`."""
    if seconds is None:
        return UNKNOWN
    if seconds < 10:
        return f"{seconds:.2g} s" if seconds else "0 s"
    if round(seconds) < 120:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 120:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{seconds / 86400:.1f} d"


def gap(seconds: float | None, error: float | None) -> str:
    """A gap as a range: at most so many seconds, at least the error less."""
    if seconds is None:
        return UNKNOWN
    least = 0.0 if error is None else max(0.0, seconds - error)
    longest, shortest = duration(seconds), duration(least)
    if shortest == longest:
        return longest
    return f"{shortest} to {longest}" if least >= 0.05 else f"at most {longest}"


def count(number: float | None) -> str:
    """A whole number, in groups of three."""
    return UNKNOWN if number is None else f"{number:,.0f}"


def rate(slots: float | None) -> str:
    """Slots a second, three digits."""
    return UNKNOWN if slots is None else f"{float(f'{slots:.3g}'):,.0f}"


def ratio(value: float | None) -> str:
    """Two digits after the point."""
    return UNKNOWN if value is None else f"{value:.2f}"


def share(value: float | None) -> str:
    """Percent."""
    return UNKNOWN if value is None else f"{value:.0%}".replace("%", " %")


def hours(value: float | None) -> str:
    """Hours, one digit after the point; small ones with more."""
    return UNKNOWN if value is None else (f"{value:.1f}" if value >= 1 or not value else f"{value:.2g}")


def size(value: float | None) -> str:
    """Bytes, as in `512 MiB`, `1.5 GiB`."""
    if value is None:
        return UNKNOWN
    for name, unit_of in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value >= unit_of:
            return f"{value / unit_of:.3g} {name}"
    return f"{value:.0f} B"


def answer(value: bool | None) -> str:
    """Yes or no."""
    return UNKNOWN if value is None else "yes" if value else "no"


def unit(longest: float) -> tuple[str, float]:
    """The unit for an axis up to so many seconds, and the seconds of that unit."""
    return ("h", 3600.0) if longest >= 3 * 3600 else ("min", 60.0) if longest >= 180 else ("s", 1.0)
