"""Every test that the page of the design documents names exists."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "model" / "design-rows.md"
_REFERENCE = re.compile(r"`([\w/.-]+\.(?:py|java|json))(?:::(\w+))?`")
_ROWS = 17


def test_every_test_of_the_page_exists() -> None:
    missing = []
    for path, name in _REFERENCE.findall(PAGE.read_text()):
        file = ROOT / path
        if not file.is_file() or (name and not re.search(rf"\b(?:def|void) {name}\(", file.read_text())):
            missing.append(f"{path}::{name}")
    assert missing == []


def test_every_row_names_a_test() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if re.match(r"\| S\d+ \|", line)]
    assert len(rows) == _ROWS
    assert [row for row in rows if not _REFERENCE.search(row)] == []
