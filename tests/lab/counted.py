"""What every application of a test was promised of its records."""

from lab.scenarios.observed_app import ObservedApp


def require_no_record_lost(one: ObservedApp) -> None:
    """Stop the load: every input has its output, and under exactly-once it has one."""
    counts = one.counts()
    assert (counts.nothing_lost, counts.undercounted) == (True, 0)
    if one.app.application.exactly_once:
        assert (counts.doubled, counts.overcounted) == (0, 0)
