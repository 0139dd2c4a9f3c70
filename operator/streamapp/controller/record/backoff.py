"""How long the writers of the flight record wait after a failure."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two tries."""


def pause_seconds(failures: int) -> float:
    """The pause after so many failures in a row: each is twice as long as the one before."""
    return min(FIRST_PAUSE * 2.0 ** min(failures - 1, 10), LONGEST_PAUSE)
