"""Settings that all tests share: how hard Hypothesis tries, how long a test may take, and that Ctrl-C means something.

`HYPOTHESIS_PROFILE`: `quick` (default) is for every run and draws the same examples each time: a change is judged by
what it changed, not by luck. `thorough` draws others each time (`make test PART=laws`); what it finds becomes an
`@example`.
"""

import gc
import os
import signal

import pytest
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


COLLECTED = pytest.StashKey[list[tuple[str, frozenset[str]]]]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep file and marks of each test, before those that are not asked for are left out."""
    config.stash[COLLECTED] = [
        (item.path.relative_to(config.rootpath).as_posix(), frozenset(mark.name for mark in item.iter_markers()))
        for item in items
    ]


def pytest_collection_finish() -> None:
    """Leave out of the search for garbage what thousands of collected tests are made of: it took a seventh of all time.

    What comes to life later is searched less often, and still soon enough to keep a process small.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


@pytest.fixture
def collected(request: pytest.FixtureRequest) -> list[tuple[str, frozenset[str]]]:
    """Give the file and the marks of each test that is there, also of those that this run leaves out."""
    return request.config.stash[COLLECTED]
