"""What every application of a test was promised: of its records, and of the time that its users wait."""

from lab.scenarios.observed_app import ObservedApp

SESSION_TIMEOUT_SECONDS = 45.0
"""What users wait for at most when a member is gone and nobody says so.

How far below it a gap stays depends on the machine, and is for the benchmarks. What else is bounded in seconds is a
setting of the test itself: a lease's duration, how long a node may be away.
"""


def require_no_record_lost(one: ObservedApp) -> None:
    """Stop the load: every input has its output, and under exactly-once it has one."""
    counts = one.counts()
    assert (counts.nothing_lost, counts.undercounted) == (True, 0)
    if one.app.application.exactly_once:
        assert (counts.doubled, counts.overcounted) == (0, 0)
