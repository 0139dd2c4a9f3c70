"""The figures of the proofs are of a tree that is not much smaller than the one of now."""

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from unittest.mock import patch

from tests.prove import figures
from tests.prove.judge_raises import During
from tests.prove.sweep import Report

MOST_GROWTH = 1.1
"""With more scenes, reasons or mutants than this share of those that were played, sweeps have to be recorded anew."""


def test_what_was_recorded_is_not_outgrown() -> None:
    now = asdict(figures.tree())
    grown = {
        (name, what): (count, now[what])
        for name, record in figures.read().items()
        for what, count in record.get("tree", {}).items()
        if now[what] > MOST_GROWTH * count
    }
    assert grown == {}, "record them again: python -m tests.prove --record NAME"


def test_what_a_sweep_gave_is_recorded_and_shown(tmp_path: Path) -> None:
    report = Report(visited=Counter({"guarantee 1": 3, "reason Covered": 2, "reason Steady": 2}))
    report.raises[During.DEATH] = [0.1, 0.2, 2.0]
    report.rows["wish"].runs = 4
    kept = tmp_path / "figures.json"
    with patch.object(figures, "FIGURES", kept), patch.object(figures, "_commit", lambda: "0a1b2c3d"):
        figures.write("sweep", figures.sweep_of(report, seed=7, seconds=12.4))
        figures.write("second judge", figures.examined(5, 200, 0, 60.2, 900, 7200.0))
        shown = "\n".join(figures.page())
    assert json.loads(kept.read_text())["sweep"]["commit"] == "0a1b2c3d"
    assert f"| Reasons visited | 2 of {figures.tree().reasons} |" in shown
    assert f"| {During.DEATH.value} | 3 | 0.20 s | 2.00 s | 2.00 s |" in shown
    assert "| Stories in which a guarantee was at stake | 1: 3 |" in shown
    assert "| Steps, virtual time | 900, 7,200 s |" in shown
    assert "Covered" not in shown.split("No story visited:")[1].split()
