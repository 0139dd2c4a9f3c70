"""The thread that writes: on a disk that is full, read-only, gone, or that hangs."""

import contextlib
import errno
import gzip
import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lab.settings import REPOSITORY
from streamapp.controller.metrics import Metrics
from streamapp.controller.record import backoff
from streamapp.controller.record import files as record_files
from streamapp.controller.record.file_writer import RecordFiles, RecordWriter
from streamapp.controller.record.files import RecordLimits, finished
from streamapp.controller.record.queue import QueuedLine, RecordQueue

pytestmark = pytest.mark.slow  # threads and real time


def told(seq: int, dropped: int) -> QueuedLine:
    return QueuedLine(seq, json.dumps({"seq": seq, "dropped": dropped}).encode() + b"\n")


def line(seq: int, size: int = 0) -> QueuedLine:
    return QueuedLine(seq, json.dumps({"seq": seq, "text": os.urandom(size // 2).hex()}).encode() + b"\n")


class Disk:
    """A writer on a folder, with what it counts."""

    def __init__(self, folder: Path, most_bytes: int = 100_000, **changes: Any) -> None:
        self.folder = folder
        self.metrics = Metrics()
        self.queue = RecordQueue(told, most_bytes)
        given: dict[str, Any] = {"close_seconds": 60.0, "close_bytes": 50_000_000, "flush_seconds": 0.02, **changes}
        place = RecordFiles(folder=folder, recorder="pod_1", limits=RecordLimits(10**9, 10**6), **given)
        self.writer = RecordWriter(place, self.queue, self.metrics)

    def end(self) -> bool:
        self.queue.close()
        return self.writer.wait(10)

    def count(self, name: str) -> float:
        return self.metrics.registry.get_sample_value(f"streamapp_record_{name}_total", {"to": "file"}) or 0.0

    def written(self) -> list[dict[str, Any]]:
        files = sorted(path for _, _, path in finished(self.folder))
        return [json.loads(one) for path in files for one in gzip.decompress(path.read_bytes()).splitlines()]


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(backoff, "LONGEST_PAUSE", 0.1)


def until(so: Any, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not so():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.01)


def test_lines_are_split_into_files_by_size_and_nothing_is_lost(tmp_path: Path) -> None:
    disk = Disk(tmp_path, most_bytes=10**8, close_bytes=20_000)
    disk.writer.start()
    for seq in range(300):
        disk.queue.add([line(seq, 1_000)])
        time.sleep(0.001 if seq % 20 else 0.03)
    assert disk.end()
    assert [one["seq"] for one in disk.written()] == list(range(300))
    assert len(finished(tmp_path)) > 3
    firsts = [int(path.name.split("-")[1].split(".")[0]) for _, _, path in finished(tmp_path)]
    assert firsts == sorted(set(firsts))
    assert disk.count("lines") == 300


def test_a_file_is_closed_when_it_is_old_enough(tmp_path: Path) -> None:
    disk = Disk(tmp_path, close_seconds=0.2)
    disk.writer.start()
    disk.queue.add([line(0)])
    until(lambda: len(finished(tmp_path)) == 1)
    disk.queue.add([line(1)])
    until(lambda: len(finished(tmp_path)) == 2)
    assert disk.end()
    assert [one["seq"] for one in disk.written()] == [0, 1]


def test_samples_go_into_files_of_their_own_that_are_closed_with_the_others(tmp_path: Path) -> None:
    disk = Disk(tmp_path, close_bytes=20_000)
    disk.writer.start()
    for first in range(0, 60, 10):
        disk.queue.add([line(seq, 1_000)._replace(is_of_samples=seq % 10 != 9) for seq in range(first, first + 10)])
        until(lambda at=first: disk.count("lines") >= at + 10)
    until(lambda: len(finished(tmp_path)) >= 2)
    assert disk.end()
    names = [path.name for _, _, path in finished(tmp_path)]
    assert sum("-samples" in name for name in names) * 2 == len(names) > 2, "both are closed when one is due"
    assert sorted(one["seq"] for one in disk.written()) == list(range(60))
    for _, _, path in finished(tmp_path):
        numbers = [json.loads(one)["seq"] for one in gzip.decompress(path.read_bytes()).splitlines()]
        assert numbers == sorted(numbers)
        assert {number % 10 != 9 for number in numbers} == {path.name.endswith("-samples.jsonl.gz")}
        assert int(path.name.split("-")[1].split(".")[0]) == numbers[0]


def test_what_a_process_before_left_is_recovered_at_the_start(tmp_path: Path) -> None:
    file = record_files.OpenFile(tmp_path, "pod_0", 0, datetime.now(UTC))
    file.write(line(0).text)
    file.leave()
    disk = Disk(tmp_path)
    disk.writer.start()
    assert disk.end()
    assert [path.name for _, _, path in finished(tmp_path)] == ["pod_0-000000000000.jsonl.gz"]


def test_a_folder_that_is_taken_away_costs_the_open_file_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "record"
    disk = Disk(folder)
    disk.writer.start()
    disk.queue.add([line(0)])
    until(lambda: disk.count("lines") == 1)
    folder.rename(tmp_path / "elsewhere")
    assert disk.end()
    assert disk.count("errors") == 1
    again = Disk(folder)
    again.writer.start()
    again.queue.add([line(0)])
    assert again.end()
    assert [one["seq"] for one in again.written()] == [0]


def test_a_disk_that_fails_at_the_first_write_of_a_file_is_written_again_when_it_is_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> int:
        raise OSError(errno.EIO, "Input/output error")

    disk = Disk(tmp_path)
    with monkeypatch.context() as failing:
        failing.setattr("streamapp.controller.record.files.os.write", broken)
        # Nor can what was written be taken back.
        failing.setattr("streamapp.controller.record.files.os.ftruncate", broken)
        disk.writer.start()
        disk.queue.add([line(0), line(1)])
        until(lambda: disk.count("errors") >= 2)
    until(lambda: disk.count("lines") == 2)
    assert disk.end()
    assert [one["seq"] for one in disk.written()] == [0, 1]


def fill(pipe: int) -> None:
    os.set_blocking(pipe, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(pipe, bytes(65_536))
    os.set_blocking(pipe, True)


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every write to a file hangs, as one to a dead network file system does: it goes to a pipe that is full."""
    pipes, real = [], os.open

    def open_pipe(path: Any, flags: int, *rest: Any, **named: Any) -> int:
        if not str(path).endswith(".open"):
            return real(path, flags, *rest, **named)
        reading, writing = os.pipe()
        fill(writing)
        pipes.append(reading)
        return writing

    monkeypatch.setattr("streamapp.controller.record.files.os.open", open_pipe)
    yield
    for reading in pipes:
        os.close(reading)  # whoever hangs gets an error now


@pytest.mark.usefixtures("hanging")
def test_a_disk_that_hangs_holds_up_its_own_thread_alone(tmp_path: Path) -> None:
    disk = Disk(tmp_path, most_bytes=20_000)
    disk.writer.start()
    disk.queue.add([line(0)])
    time.sleep(0.2)
    slowest = 0.0
    for seq in range(1, 500):
        began = time.thread_time()
        disk.queue.add([line(seq, 500)])
        slowest = max(slowest, time.thread_time() - began)
    assert slowest < 0.05
    assert disk.queue.dropped_in_all > 400
    disk.queue.close()
    assert not disk.writer.wait(0.2), "it should hang"
    first, *rest = disk.queue.take(0)
    assert json.loads(first.text)["dropped"] == disk.queue.dropped_in_all
    assert [first.seq + 1 + index for index in range(len(rest))] == [entry.seq for entry in rest]


def test_what_waits_for_a_disk_that_cannot_be_written_is_bounded_and_what_is_lost_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "record"
    folder.write_text("a file, where a folder should be")
    disk = Disk(folder, most_bytes=5_000)
    disk.writer.start()
    for seq in range(300):
        disk.queue.add([line(seq, 100)])
        time.sleep(0.002)
    assert disk.count("errors") > 3
    waiting = sum(len(entry.text) for part in disk.writer._parts for entry in part.pending)
    assert waiting <= 6_000
    folder.unlink()
    assert disk.end()
    written, expected = disk.written(), 0
    for one in written:
        expected += one.get("dropped", 1) - 1
        assert one["seq"] == expected
        expected += 1
    assert expected == 300
    assert disk.count("dropped") == disk.queue.dropped_in_all > 100
    assert disk.count("lines") == len(written)


ON_A_SMALL_DISK = """
    import json, subprocess, sys
    from pathlib import Path
    from streamapp.controller.record import backoff
    from tests.controller.record.test_file_writer import Disk, line, until

    backoff.FIRST_PAUSE = backoff.LONGEST_PAUSE = 0.05
    mount = Path(sys.argv[1])
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount)], check=True)
    disk = Disk(mount / "record", most_bytes=3_000_000)
    disk.writer.start()
    disk.queue.add([line(0, 1_000)])
    until(lambda: disk.count("lines") == 1)
    filler = (mount / "filler").open("wb", buffering=0)
    try:
        while True:
            filler.write(bytes(4096))
    except OSError:
        filler.close()
    disk.queue.add([line(seq, 20_000) for seq in range(1, 21)])
    until(lambda: disk.count("errors") >= 3)
    full = {"lines": disk.count("lines"), "alive": disk.writer._thread.is_alive()}
    (mount / "filler").unlink()
    until(lambda: disk.count("lines") == 21)
    assert disk.end()
    print(json.dumps({**full, "seqs": [one["seq"] for one in disk.written()]}))
"""


def test_a_full_disk_loses_nothing_that_there_is_room_for_when_there_is_room_again(tmp_path: Path) -> None:
    code, environment = textwrap.dedent(ON_A_SMALL_DISK), {**os.environ}
    environment["PYTHONPATH"] = f"{REPOSITORY / 'operator'}:{REPOSITORY}"
    run = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", code, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout.splitlines()[-1])
    assert told == {"lines": 1.0, "alive": True, "seqs": list(range(21))}
