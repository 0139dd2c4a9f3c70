"""Settings that all tests share: how hard Hypothesis tries, by `HYPOTHESIS_PROFILE`; and that Ctrl-C means something.

`quick` (default) is for every run and draws the same examples each time: a change is judged by what it changed, not by
luck. `thorough` draws others each time, for a night (`make test-laws`); what it finds becomes an `@example`.
"""

import os
import signal

from hypothesis import HealthCheck, settings

_SLOW_DATA = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "quick", max_examples=60, deadline=None, suppress_health_check=_SLOW_DATA, derandomize=True, database=None
)
settings.register_profile(
    "thorough", max_examples=1000, deadline=None, suppress_health_check=_SLOW_DATA, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_configure() -> None:
    """Heed Ctrl-C, and let the processes of the tests heed it.

    A shell that starts a command in the background has it ignore Ctrl-C, and all processes below inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
