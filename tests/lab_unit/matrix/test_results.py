"""One line a trial: what was measured, what was not, and why."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from rich.console import Console

from lab.matrix.cells import Cell, Launcher
from lab.matrix.results import markdown, row, table
from lab.matrix.trial_result import Drain, Gaps, RuntimeInfo, TrialResult, Verdict
from streamapp.core.facts.agent_reports import AsideKind

CELL = Cell(Launcher.SPRING_BOOT, "4.2.1", "4.1.1")
FOUND = RuntimeInfo("17.0.15", "4.2.1", "org.example.Launcher$FatLoader", "dev.example.LearnerTaskAssignor", "")
DRAIN = Drain(
    moved=2,
    learned_after=1.28,
    drained_after=3.24,
    triggered_rebalances=2,
    stopped_after=1.1,
    exit_code=143,
    left=True,
    moved_at_stop=0,
    rounds=({"moved": 0},),
    gaps=Gaps(quiet=0.21, moved=0.504, others=0.19, stop=None, drain_by_partition={0: 0.504}),
    lost=0,
    doubled=0,
)
DRAINED = TrialResult(CELL, Verdict.DRAINED, FOUND, DRAIN)


def test_a_drain_with_all_its_figures() -> None:
    assert row(DRAINED) == (
        *("Spring Boot fat jar 4.1.1", "4.2.1", "17.0.15", "FatLoader", "LearnerTaskAssignor", "3.2", "0.50"),
        "unknown",
        "2 tasks, learned in 1.3 s, 2 rebalances; others 0.19 s, quiet 0.21 s; by JDK_JAVA_OPTIONS",
    )


@pytest.mark.parametrize(
    ("changed", "note"),
    [
        (replace(DRAIN, lost=3), "3 inputs LOST; 2 tasks"),
        (replace(DRAIN, doubled=4), "; 4 doubled; "),
        (replace(DRAIN, moved_at_stop=1), "; 1 tasks moved at the stop; "),
        (replace(DRAIN, left=False), "; stayed in the group when it closed; "),
        (replace(DRAIN, exit_code=1), "; exit code 1; "),
        (replace(DRAIN, gaps=replace(DRAIN.gaps, others=None, quiet=None)), "; others unknown, quiet unknown; "),
    ],
)
def test_what_should_not_be_is_noted(changed: Drain, note: str) -> None:
    assert note in row(replace(DRAINED, drain=changed))[-1]


def test_what_the_agent_does_not_do_is_noted_beside_a_drain() -> None:
    found = replace(FOUND, asides=("leave: no such method",))
    assert "; aside: leave: no such method; " in row(replace(DRAINED, runtime=found))[-1]


def test_a_failure_before_anything_was_found_says_why_on_one_line() -> None:
    failed = row(TrialResult(CELL, Verdict.FAILED, note="Maven failed:\n    no such jar"))
    assert failed[2:] == (
        *("17", "–", "–", "–", "–", "–"),
        "failed: Maven failed: no such jar; by JDK_JAVA_OPTIONS",
    )


def test_stepping_aside_is_said_once() -> None:
    why = "OwnAssignor: it has its own"
    found = replace(FOUND, assignor="", loader="", aside=why, asides=(f"assignor: {why}",))
    aside = TrialResult(replace(CELL, aside=AsideKind.OWN_ASSIGNOR), Verdict.STEPPED_ASIDE, found, note=why)
    assert row(aside)[3:5] == ("unknown", "none")
    assert row(aside)[-1] == f"stepped aside: {why}; by JDK_JAVA_OPTIONS"


def test_markdown_has_a_line_a_cell_with_bars_escaped_and_the_sum() -> None:
    failed = TrialResult(CELL, Verdict.FAILED, note="a | b")
    lines = markdown([DRAINED, failed], datetime(2026, 1, 2, 3, 4, tzinfo=UTC), 150_000, 240).splitlines()
    assert lines[0] == "### Run of 2026-01-02 03:04 UTC"
    assert [line.replace("\\|", "").count("|") for line in lines if line.startswith("|")] == [10] * 4
    assert "failed: a \\| b" in lines[7]
    assert lines[-1] == "1 drained, 0 stepped aside, 1 failed."


def test_the_terminal_shows_the_same_words() -> None:
    shown = Console(width=200, file=io.StringIO(), record=True)
    shown.print(table([DRAINED, TrialResult(CELL, Verdict.FAILED, note="no broker")]))
    text = " ".join(shown.export_text().split())
    assert all(cell in text for cell in row(DRAINED))
    assert f"2. {CELL.name}: failed: no broker" in text


def test_json_says_what_was_expected_and_found() -> None:
    content = json.loads(json.dumps(DRAINED.to_json()))
    assert (content["expected"], content["verdict"]) == ("drained", "drained")
    assert content["found"]["loader"] == FOUND.loader
    assert content["drain"]["gaps"]["drain_by_partition"] == {"0": 0.504}
    assert TrialResult(replace(CELL, aside=AsideKind.OLDER_STREAMS), Verdict.FAILED).to_json()["expected"] == (
        "aside: OlderStreams"
    )
