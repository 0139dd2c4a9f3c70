"""Durations and times for people: two units, never negative, never "0 hours".

If the local clock is behind the cluster's, a time in the future shows as `just now`.
"""

from datetime import UTC, datetime, timedelta

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def short(duration: timedelta) -> str:
    """Write `4m10s`, `3h`, `2d5h`: the two largest units, in whole seconds."""
    left = max(0, int(duration.total_seconds()))
    for index, (unit, seconds) in enumerate(_UNITS[:-1]):
        count, rest = divmod(left, seconds)
        if count:
            smaller, length = _UNITS[index + 1]
            more = rest // length
            return f"{count}{unit}{more}{smaller}" if more else f"{count}{unit}"
    return f"{left}s"


def fine(duration: timedelta) -> str:
    """Write `640ms`, `9.6s`, `15s`: finer for shorter durations."""
    milliseconds = round(duration / timedelta(milliseconds=1))
    if 0 < milliseconds < 1_000:
        return f"{milliseconds}ms"
    return f"{round(milliseconds / 1_000, 1):g}s" if 0 < milliseconds < 10_000 else short(duration)


def ago(time: datetime, now: datetime) -> str:
    """Write `4m10s ago`, or `just now`."""
    passed = now - time
    return f"{short(passed)} ago" if passed >= timedelta(seconds=1) else "just now"


def clock(time: datetime) -> str:
    """Write `2026-11-21 12:04:10 UTC`, in the same zone for every reader."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
