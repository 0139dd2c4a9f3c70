"""What became of an application, asked over HTTP."""

import asyncio
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from streamapp.controller.http import routes
from streamapp.controller.http.routes import of_history, serve_people
from streamapp.controller.record import reader
from streamapp.controller.record.files import SAMPLES, OpenFile, every_file
from streamapp.controller.record.reader import RecordHistory
from streamapp.kube.client.kinds import Key

START = datetime(2026, 11, 21, 12, tzinfo=UTC)


def line(seq: int, kind: str, app: str = "orders", **fields: Any) -> bytes:
    at = (START + timedelta(seconds=seq)).isoformat().replace("+00:00", "Z")
    given = {"v": 1, "cluster": "", "namespace": "shop", "app": app, "ts": at, "seq": seq, "kind": kind, **fields}
    return json.dumps(given, separators=(",", ":")).encode() + b"\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A finished file, and one that is being written."""
    first = OpenFile(tmp_path, "pod_1", 0, START)
    first.write(line(0, "scale", newReplicas=4) + line(1, "sample") + line(2, "scale", app="others"))
    first.write(b"".join(line(seq, "decision", verdict="Hold", reason="Stabilizing") for seq in (3, 4, 5)))
    first.finish()
    os.utime(first.path, (START.timestamp() + 5, START.timestamp() + 5))
    second = OpenFile(tmp_path, "pod_1", 6, START)
    second.write(line(6, "step", step="GrantReplicas") + line(7, "stepClosed"))
    second.leave()
    os.utime(second.hidden, (START.timestamp() + 9, START.timestamp() + 9))
    return tmp_path


def test_files_of_samples_are_not_opened(folder: Path) -> None:
    samples = OpenFile(folder, "pod_1", 8, START, SAMPLES)
    samples.write(line(8, "scale"))  # which is never in one
    samples.leave()
    lines, is_whole = reader.notable(every_file(folder), Key("shop", "orders"), START)
    assert ([one["seq"] for one in lines], is_whole) == ([0, 3, 6, 7], True)


async def asked(found: RecordHistory, path: str) -> tuple[int, Any]:
    runner = await serve_people(of_history(found), 0)
    try:
        port = runner.addresses[0][1]
        async with ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
            is_json = answer.content_type == "application/json"
            return answer.status, json.loads(await answer.text()) if is_json else await answer.text()
    finally:
        await runner.cleanup()


PATH = "/v1/apps/shop/orders/history"


def told(found: Any) -> list[tuple[int, str]]:
    return [(one["seq"], one["kind"]) for one in found["lines"]]


def test_what_is_worth_telling_is_told_in_order_the_open_file_too(folder: Path) -> None:
    status, found = asyncio.run(asked(RecordHistory(folder, lambda: True), PATH))
    assert status == 200
    assert told(found) == [(0, "scale"), (3, "decision"), (6, "step"), (7, "stepClosed")]
    assert found["isWhole"] is True
    assert found["beginsAt"] == json.loads(line(0, "scale"))["ts"]


def test_a_record_without_a_line_begins_nowhere(tmp_path: Path) -> None:
    _, found = asyncio.run(asked(RecordHistory(tmp_path, lambda: True), PATH))
    assert "beginsAt" not in found


def test_a_hold_that_stands_for_hours_leaves_room_for_what_began_it(tmp_path: Path) -> None:
    for number in range(3):
        file, first = OpenFile(tmp_path, "pod_1", 1000 * number, START), 1000 * number
        file.write(line(first, "scale", newReplicas=4) if not number else b"")
        held = (line(first + seq, "decision", verdict="Hold", holdId="h-1") for seq in range(1, 1000))
        file.write(b"".join(held))
        file.finish()
        os.utime(file.path, (START.timestamp() + first, START.timestamp() + first))
    status, found = asyncio.run(asked(RecordHistory(tmp_path, lambda: True), PATH))
    assert (status, found["isWhole"]) == (200, True)
    assert told(found) == [(0, "scale"), (1, "decision")]


def test_what_was_before_is_left_out(folder: Path) -> None:
    _, found = asyncio.run(asked(RecordHistory(folder, lambda: True), f"{PATH}?since=2026-11-21T12:00:06Z"))
    assert told(found) == [(6, "step"), (7, "stepClosed")]


def test_an_answer_is_refused_while_too_many_are_on_their_way(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "MOST_AT_ONCE", 0)
    assert asyncio.run(asked(RecordHistory(folder, lambda: True), PATH))[0] == 503


def test_an_answer_is_bounded_and_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MOST_LINES", 3)
    lines, is_whole = reader.notable(every_file(folder), Key("shop", "orders"), START)
    assert [one["seq"] for one in lines] == [3, 6, 7]
    assert not is_whole


@pytest.mark.parametrize(
    ("leads", "has_folder", "query", "status", "text"),
    [
        (False, True, "", 503, "this replica of the operator does not lead: ask the holder of the Lease"),
        (True, False, "", 404, "no flight record is kept: STREAMAPP_RECORD_FOLDER names no folder"),
        (True, True, "?since=noon", 400, "since='noon' is no time: give it like 2026-11-21T12:00:00Z"),
        (
            *(True, True, "?since=2026-11-21T12:00:00", 400),
            "since='2026-11-21T12:00:00' is no time: give it like 2026-11-21T12:00:00Z",
        ),
    ],
)
def test_whoever_cannot_be_answered_is_told_why(
    folder: Path, leads: bool, has_folder: bool, query: str, status: int, text: str
) -> None:
    found = RecordHistory(folder if has_folder else None, lambda: leads)
    assert asyncio.run(asked(found, PATH + query)) == (status, text)


def test_a_disk_that_does_not_answer_costs_the_reader_seconds_and_nobody_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "PATIENCE_SECONDS", 0.1)
    path = folder / "2026-11-21" / "fifo-0.jsonl.gz"
    os.mkfifo(path)  # opening it for reading hangs until somebody writes

    async def run() -> None:
        found = RecordHistory(folder, lambda: True)
        key = Key("shop", "orders")
        first = await found.about(key, "")
        assert (first.status, first.body) == (503, "the disk of the flight record has not answered for 0.1 s")
        second = await found.about(key, "")
        assert second.status == 503
        assert "or its disk does not answer" in second.body
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        path.unlink()
        for _ in range(100):
            await asyncio.sleep(0.02)
            third = await found.about(key, "")
            if third.status == 200:
                return
        raise AssertionError(third)

    asyncio.run(run())
