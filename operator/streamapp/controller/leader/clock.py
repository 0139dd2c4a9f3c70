"""The clock by which a judgement grows old: nobody sets it, and it goes on while the machine sleeps.

Used by the gathering and the applier, for both ends of one age.
"""

import time


def seconds_since_boot() -> float:
    """Give the seconds since the machine was started, those in which it was suspended included.

    `time.monotonic` leaves those out on Linux: a judgement made before a suspension would pass for new after it.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
