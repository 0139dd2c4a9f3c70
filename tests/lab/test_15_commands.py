"""The command line as a person uses it inside the lab."""

import subprocess
import sys

import pytest

from lab.clusters.cluster import Session
from lab.node.namespaces import INSIDE
from lab.settings import REPOSITORY

pytestmark = [pytest.mark.lab]


def _lab(session: Session, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "lab", *words],
        cwd=REPOSITORY,
        env=session.environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_exec_gives_the_commands_own_output_and_exit_code(session: Session) -> None:
    ran = _lab(session, "exec", "--", "sh", "-c", "echo $KAFKA_BOOTSTRAP; exit 7")
    assert (ran.stdout.strip(), ran.returncode) == (session.environment["KAFKA_BOOTSTRAP"], 7)


def test_gaps_of_a_topic_that_is_not_there_name_it(session: Session) -> None:
    ran = _lab(session, "gaps", "--input", "no-such-topic", "--output", "no-such-either")
    assert ran.returncode == 1
    assert "no-such-topic" in ran.stderr
    assert "next:" in ran.stderr


def test_the_lab_cannot_be_stopped_from_inside(session: Session) -> None:
    if INSIDE not in session.environment:
        pytest.skip("only the embedded lab has an inside")
    ran = _lab(session, "down")
    assert ran.returncode == 1
    assert "lab: this shell is inside it" in ran.stderr
