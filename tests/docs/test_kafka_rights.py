"""docs/kafka-rights.md against the requests that the operator sends."""

import ast
import re
from pathlib import Path

from lab.settings import REPOSITORY

PAGE = (REPOSITORY / "docs" / "kafka-rights.md").read_text()
SOURCES = REPOSITORY / "operator" / "streamapp" / "kafka"
FREE = {"ApiVersions", "SaslHandshake", "SaslAuthenticate"}
"""What every client sends, and no broker asks a right for."""
OF_PRODUCER = {"Produce"}
"""What librdkafka sends with `Producer.produce`; it has no request classes."""


def sent(source: Path) -> set[str]:
    return {
        name.name.removesuffix("Request")
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.ImportFrom) and re.fullmatch(r"kio\.schema\..+\.request", node.module or "")
        for name in node.names
        if name.name.endswith("Request")
    }


def test_every_request_has_a_row_and_every_row_a_request() -> None:
    rows = [line.split("|") for line in PAGE.splitlines() if line.startswith("| `")]
    told = {word for row in rows for word in re.findall(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)*\b", row[3])}
    assert "produce(" in (SOURCES / "producer" / "__main__.py").read_text()
    assert told == set().union(*map(sent, SOURCES.rglob("*.py"))) - FREE | OF_PRODUCER
