"""`make demo`, played as a user plays it, with less state: it ends well, and its figures are those that it promises."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.clusters.cluster import Session
from lab.clusters.kubectl import Kubectl
from lab.commands.demo import PLAIN
from lab.scenarios import demo_application, operator_deployment
from lab.scenarios.record import report
from lab.settings import REPOSITORY
from tests.lab.promises import SESSION_TIMEOUT_SECONDS

pytestmark = [pytest.mark.proofs, pytest.mark.timeout(1500)]

RECORDS = 50_000
HELD = ("on demand", "standby")
NAMESPACES = ("demo", "demo-standby", "demo-plain")


@dataclass(frozen=True)
class Played:
    """One run of the command."""

    code: int
    said: str
    figures: dict[str, Any]
    """What `--json` wrote."""
    page: Path
    """Where the report is."""


@pytest.fixture(scope="module")
def played(
    session: Session, kubectl: Kubectl, bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Played]:
    place, was_there = tmp_path_factory.mktemp("demo"), operator_deployment.is_there(kubectl)
    options = ("--records", str(RECORDS), "--json", str(place / "figures.json"), "--report", str(place / "report"))
    environment = dict(session.environment)
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    ran = subprocess.run(
        [*session.prefix, sys.executable, "-m", "lab", "demo", *options],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    figures = place / "figures.json"
    read = json.loads(figures.read_text()) if figures.exists() else {}
    yield Played(ran.returncode, ran.stdout + ran.stderr, read, place / "report" / "report.html")
    demo_application.remove(kubectl, bootstrap, *NAMESPACES)
    operator_deployment.remove(kubectl)
    if was_there:
        operator_deployment.deploy(kubectl)


def test_it_ends_well_and_shows_all_three_side_by_side(played: Played) -> None:
    assert played.code == 0, played.said[-4000:]
    assert [title for title in (*HELD, PLAIN) if title not in played.said] == []
    assert "what each step cost" in played.said
    assert "make lab-down" in played.said


def worst_moved(scale_in: dict[str, Any]) -> float:
    """The longest gap of a partition that moved, in seconds."""
    moved = set(map(int, scale_in["moved"]))
    gaps = [row["gap_s"] for row in scale_in["during"]["partitions"] if row["partition"] in moved]
    assert gaps
    assert None not in gaps
    return float(max(gaps))


def test_users_of_the_plain_one_wait_for_the_session_timeout_and_the_others_do_not(played: Played) -> None:
    assert worst_moved(played.figures["plain"]["scale_in"]) > SESSION_TIMEOUT_SECONDS
    gaps = {title: worst_moved(played.figures["held"][title]["scale_in"]) for title in HELD}
    print(f"worst gaps: {gaps}")  # noqa: T201 (figures for the reader)
    assert max(gaps.values()) < SESSION_TIMEOUT_SECONDS


def test_no_record_is_lost(played: Played) -> None:
    counts = {title: one["counts"] for title, one in played.figures["held"].items()}
    counts[PLAIN] = played.figures["plain"]["counts"]
    assert {title: one["verdict"] for title, one in counts.items()} == dict.fromkeys((*HELD, PLAIN), "kept")


def test_the_report_has_both_applications(played: Played) -> None:
    if lacking := report.missing():
        assert f"no report: {lacking}" in played.said
        return
    page = played.page.read_text()
    assert [namespace for namespace in ("demo", "demo-standby") if namespace not in page] == []
