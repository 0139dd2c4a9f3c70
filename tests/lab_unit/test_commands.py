"""The command line before any cluster is asked."""

import os
import subprocess
import sys
from pathlib import Path

from lab.settings import REPOSITORY


def _lab(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "lab", *words],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_log_of_an_unknown_part_names_the_known_ones() -> None:
    ran = _lab("logs", "kubelett")
    assert ran.returncode == 1
    assert "error: log kubelett: unknown part" in ran.stderr
    assert "kubelet" in ran.stderr
    assert "supervisor" in ran.stderr


def test_a_log_of_a_lab_that_never_ran_says_so(tmp_path: Path) -> None:
    ran = _lab("logs", "etcd", STREAMAPP_LAB_STATE=str(tmp_path))
    assert ran.returncode == 1
    assert "error: log etcd: none there" in ran.stderr


def test_logs_give_as_many_lines_as_asked(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "etcd.log").write_text("one\ntwo\nthree\n")
    ran = _lab("logs", "etcd", "--lines", "2", STREAMAPP_LAB_STATE=str(tmp_path))
    assert (ran.stdout, ran.returncode) == ("two\nthree\n", 0)
    ran = _lab("logs", "etcd", "--lines", "0", STREAMAPP_LAB_STATE=str(tmp_path))
    assert (ran.stdout, ran.returncode) == ("one\ntwo\nthree\n", 0)


def test_a_wrong_word_ends_with_two() -> None:
    ran = _lab("upp")
    assert ran.returncode == 2
    assert "No such command 'upp'" in ran.stderr
