"""Lets this process read objects that are nested very deep. Called by both entry scripts, before anything else.

Python reads, writes and compares nested values by recursion, and gives up below a thousand levels. The API server takes
10,000, and a StreamApp has an open pod template. So one StreamApp could end the watch of all others, and the process
with it: kopf's watch and the client read every object of a list before anybody looks at one.

The limit must not be much higher: agents, token servers and other hands write JSON, too, and what is nested deeper than
the stack has room for ends the process at once. With 41,000 levels it did; 20,000 need less than 4 MiB.
"""

import sys

MOST_LEVELS = 10_000
"""The API server refuses JSON that is nested deeper."""
CALLS = 1000
"""Of everything else: Python's default."""


def allow_deep_objects() -> None:
    """Raise the limit of recursion; the stacks of processes and threads (8 MiB) have room for so much."""
    sys.setrecursionlimit(MOST_LEVELS + CALLS)
