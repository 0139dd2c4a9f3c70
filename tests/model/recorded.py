"""A sample of answers of the Java classes, for tests without Java.

`python -m tests.model.recorded` writes it anew, after `make test PART=model` has fetched what it needs.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.model.answers import Answer
from tests.model.cases import Case
from tests.model.kinds import KINDS, STICKY, STOCK, Kind
from tests.model.reference import running

FOLDER = Path(__file__).parent / "recorded"
NUMBER = 24
LONGEST = 1_100
"""Characters of a case: small ones are readable, and differ as well."""
VERSIONS = {STOCK.name: ("3.1.2", "3.2.3", "4.2.1"), STICKY.name: ("4.2.1", "4.2.2", "4.4.0")}
"""One of each release that answers in its own way."""


def versions_of(kind: Kind) -> tuple[str, ...]:
    """The versions that are recorded."""
    return VERSIONS.get(kind.name, kind.versions)


def read(kind: Kind, version: str) -> list[tuple[Case, Answer]]:
    """The cases with their answers."""
    lines = (FOLDER / f"{kind.name}-{version}.jsonl").read_text().splitlines()
    return [(entry["case"], entry["java"]) for entry in map(json.loads, lines)]


def _sample(kind: Kind, version: str) -> Iterator[Case]:
    """Small cases; every second one is answered otherwise by another release, if there is one."""
    random = Random(f"recorded {kind.name} {version}")  # noqa: S311 - the same cases each time
    others = [other for other in versions_of(kind) if other != version]
    found = 0
    while found < NUMBER:
        case = kind.case(random)
        is_small = len(json.dumps(case)) <= LONGEST and len(case.get("clients") or case["members"]) > 1
        must_differ = bool(others) and found % 2 == 1
        if is_small and (not must_differ or _differs(kind, case, version, others)):
            found += 1
            yield case


def _differs(kind: Kind, case: Case, version: str, others: list[str]) -> bool:
    return any(kind.answer(case, version) != kind.answer(case, other) for other in others)


def write() -> None:
    """Ask the Java classes, and write their answers."""
    FOLDER.mkdir(exist_ok=True)
    for kind in KINDS:
        for version in versions_of(kind):
            with running(kind.name, kind.part, version) as reference:
                entries = [{"case": case, "java": reference.answer(case)} for case in _sample(kind, version)]
            text = "".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries)
            (FOLDER / f"{kind.name}-{version}.jsonl").write_text(text)


if __name__ == "__main__":
    write()
