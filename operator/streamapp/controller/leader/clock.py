"""The clock that measures the age of a decision: it cannot be set, and it continues while the machine sleeps.

Used by `reconcile.gather` and `reconcile.apply`, for both ends of an age.
"""

import time


def seconds_since_boot() -> float:
    """Give the seconds since the machine was started, those in which it was suspended included.

    `time.monotonic` leaves those out on Linux: a judgement made before a suspension would pass for new after it.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
