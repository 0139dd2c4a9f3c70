"""Runs one test of the project against the product without some of its safeguards, in a process of its own.

A fork and not a new interpreter: what is imported already need not be imported again, which is most of the time that a
unit test takes. The child takes the safeguards away, runs pytest on that one test, and ends with what came of it.
"""

import gc
import os
from collections.abc import Sequence
from contextlib import suppress
from enum import IntEnum
from pathlib import Path

import pytest

from tests.prove.shell_safeguards import Safeguard, without

ROOT = Path(__file__).parents[2]
DEADLINE_SECONDS = 120
"""Of one test. One that takes longer shows nothing: the machine may be busy."""
OPTIONS = (
    *(f"--rootdir={ROOT}", "--quiet", f"--timeout={DEADLINE_SECONDS}", "-m", ""),
    "--assert=plain",  # the hook that rewrites assertions cannot be put in twice
    *("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:randomly", "-p", "no:xdist"),
)


class Outcome(IntEnum):
    """What came of one test."""

    PASSED = 0
    FAILED = 1
    """In the test itself, and not before it."""
    DID_NOT_RUN = 2
    """There is no such test, or there are several, or pytest could not begin it, or it met its deadline."""


class _Calls:
    """What pytest reports of the tests that it ran; a plugin."""

    def __init__(self) -> None:
        self.outcomes: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what came of the test itself."""
        if report.when == "call":
            is_late = "from pytest-timeout" in report.longreprtext
            self.outcomes.append("late" if is_late else report.outcome)


def outcome_of(test: str, dropped: Sequence[Safeguard] = (), output: str = os.devnull) -> Outcome:
    """Run a test, by its node ID, on the product without these safeguards.

    Args:
        test: The node ID.
        dropped: Which safeguards the product lacks.
        output: The file for what pytest prints.
    """
    gc.collect()
    gc.freeze()  # or the child would complain of what its parent has left open
    child = os.fork()
    if child == 0:
        code: int = Outcome.DID_NOT_RUN
        try:
            code = _run(test, dropped, output)
        finally:
            os._exit(code)  # whatever happened: the child must never go on with the session of its parent
    gc.unfreeze()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Outcome(code) if code in set(Outcome) else Outcome.DID_NOT_RUN


def _run(test: str, dropped: Sequence[Safeguard], output: str) -> Outcome:
    """In the child: nothing that it says reaches the test session around it."""
    written = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(written, stream)
    os.environ.pop("PYTEST_ADDOPTS", None)
    os.chdir(ROOT)
    calls = _Calls()
    # A test that failed half-way leaves connections open, of which pytest complains at its end.
    with without(*dropped), suppress(ExceptionGroup):
        pytest.main([*OPTIONS, test], plugins=[calls])
    only = calls.outcomes[0] if len(calls.outcomes) == 1 else ""
    return {"passed": Outcome.PASSED, "failed": Outcome.FAILED}.get(only, Outcome.DID_NOT_RUN)
