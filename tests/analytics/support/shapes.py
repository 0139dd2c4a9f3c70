"""The same record with its samples as operators up to 0.1.0 wrote them: a line for each copy, among all other lines."""

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

Line = dict[str, Any]
APART = 64
"""Numbers from one line to the next, so that there are some for each copy: more copies are in no line here."""


def one_by_one(line: Line) -> Iterator[Line]:
    """A line for each copy, with the numbers from that line's on; any other line as it is."""
    if line["kind"] != "samples":
        yield line
        return
    shared = {name: value for name, value in line.items() if name not in {"kind", "copies", "epoch", "ts"}}
    number = line["seq"]
    for copies in line["copies"]:
        same = {name: value for name, value in copies.items() if name not in {"at", "tasks", "offsets", "endOffsets"}}
        for nth, task in enumerate(copies["tasks"]):
            known = {name: copies[f"{name}s"][nth] for name in ("offset", "endOffset") if f"{name}s" in copies}
            known = {name: value for name, value in known.items() if value is not None}
            yield {**shared, "ts": copies["at"], "seq": number, "kind": "sample", "task": task, **same, **known} | {
                "epoch": line["epoch"]
            }
            number += 1
    assert number <= line["seq"] + APART


def lines_of(files: Sequence[Path]) -> list[Line]:
    """Lines in the order of their numbers, which leave room."""
    found = [json.loads(text) for path in files for text in gzip.decompress(path.read_bytes()).splitlines()]
    return [line | {"seq": line["seq"] * APART} for line in sorted(found, key=lambda line: line["seq"])]


def write(path: Path, lines: Sequence[Line]) -> Path:
    """A file of the record, as the recorder writes lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = (json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines)
    path.write_bytes(gzip.compress("".join(texts).encode()))
    return path
