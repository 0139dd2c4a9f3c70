"""A test begins once more only if something did not appear in time; a promise that is broken never does."""

import subprocess
import sys
from pathlib import Path

import pytest

from lab.settings import REPOSITORY
from tests.parts.stages import NOT_IN_TIME

TEST = """
from lab.errors import LabError

tries = []

def test_it():
    tries.append(1)
    if len(tries) == 1:
        {fails}
"""


@pytest.mark.parametrize(
    ("fails", "outcome"),
    [
        (
            "raise LabError('demo: 3 granted: not within 30 s', 'it did not become true', 'look')",
            "1 passed, 1 rerun in",
        ),
        ("raise LabError('topic it: cannot be read', 'no broker', 'look')", "1 failed in"),
        ("assert 'lost' == 'nothing lost: not within 30 s'", "1 failed in"),
    ],
    ids=["did not appear", "another error", "a promise"],
)
def test_only_what_did_not_appear_in_time_is_waited_for_once_more(tmp_path: Path, fails: str, outcome: str) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(TEST.format(fails=fails))
    command = (sys.executable, "-m", "pytest", "-q", "--reruns=1", f"--only-rerun={NOT_IN_TIME}", "-m", "", "-c")
    ran = subprocess.run(
        (*command, "/dev/null", "--rootdir", str(tmp_path), "-p", "no:cacheprovider", str(file)),
        cwd=REPOSITORY, env={"PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert outcome in ran.stdout, ran.stdout + ran.stderr
