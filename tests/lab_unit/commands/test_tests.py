"""`lab test`: whose lab it takes down, and where its tests refuse to run."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from lab.clusters.cluster import SESSION, Session
from lab.commands import tests
from lab.errors import LabError
from lab.settings import REPOSITORY

BROKEN = LabError("broker: not ready", "it does not start", "read its log")
UP_ALREADY = LabError("lab: up already", "its lock is held", "use it")


class Recorder:
    """A cluster that writes down what is asked of it: a real one that fails to come up would take minutes."""

    name = "recorder"

    def __init__(self, failure: LabError | None, *, there_before: bool) -> None:
        self.asked: list[str] = []
        self._failure = failure
        self._is_up = there_before

    def build(self) -> None:
        self.asked.append("build")

    def up(self) -> None:
        self.asked.append("up")
        if self._failure:
            raise self._failure
        self._is_up = True

    def ensure_up(self) -> None:
        self.asked.append("ensure_up")
        self._is_up = True

    def down(self) -> None:
        self.asked.append("down")

    @contextmanager
    def session(self) -> Iterator[Session]:
        if not self._is_up:
            raise LabError("lab: not up", "nothing holds its lock", "start it")
        yield Session((), dict(os.environ))

    def skipped(self) -> Sequence[str]:
        return ()


def _test(monkeypatch: pytest.MonkeyPatch, cluster: Recorder, *words: str) -> tuple[int, BaseException | None]:
    monkeypatch.setattr(tests, "chosen", lambda _: cluster)
    # pytest's own version in place of tests: quick, and it ends with 0.
    ran = CliRunner().invoke(tests.test, [*words, "--version"])
    return ran.exit_code, ran.exception


def test_a_lab_that_does_not_come_up_is_taken_down(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Recorder(BROKEN, there_before=False)
    assert _test(monkeypatch, cluster) == (1, BROKEN)
    assert cluster.asked == ["up", "down"]


@pytest.mark.parametrize(
    ("failure", "there_before"),
    [(UP_ALREADY, True), (UP_ALREADY, False), (LabError("memory: too little", "1 GiB", "end others"), True)],
)
def test_a_lab_that_was_there_before_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, failure: LabError, there_before: bool
) -> None:
    cluster = Recorder(failure, there_before=there_before)
    assert _test(monkeypatch, cluster) == (1, failure)
    assert cluster.asked == ["up"]


def test_a_lab_that_came_up_is_taken_down_after_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Recorder(None, there_before=False)
    assert _test(monkeypatch, cluster)[0] == 0
    assert cluster.asked == ["up", "down"]


def test_a_lab_that_is_kept_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Recorder(None, there_before=True)
    assert _test(monkeypatch, cluster, "--keep")[0] == 0
    assert cluster.asked == ["ensure_up"]


@pytest.mark.parametrize("session", [{}, {SESSION: "/another/kubeconfig"}])
def test_lab_tests_refuse_a_cluster_that_no_session_led_to(session: dict[str, str]) -> None:
    # Nobody answers at either address: whoever gets past the check fails there.
    addresses = {"KAFKA_BOOTSTRAP": "127.0.0.1:1", "KUBECONFIG": "/nonexistent"}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "lab", "tests/lab/test_20_broker.py"],
        cwd=REPOSITORY,
        env=os.environ | addresses | session,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "python -m lab test --keep FILE" in ran.stdout
    assert "passed" not in ran.stdout
    assert "127.0.0.1:1" not in ran.stdout
