"""Files of the flight record: visible only when whole, whatever happens to the process or the disk."""

import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import zlib
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lab.settings import REPOSITORY
from streamapp.controller.record.files import (
    OpenFile,
    RecordLimits,
    every_file,
    finished,
    hidden,
    keep_within,
    recover,
    whole_lines,
)

AT = datetime(2026, 11, 21, 23, 59, tzinfo=UTC)


def line(number: int) -> bytes:
    return json.dumps({"seq": number, "text": "x" * (number % 50)}).encode() + b"\n"


def left_file(folder: Path, lines: int, each: int = 5) -> Path:
    """A file as a process leaves it that is killed."""
    file = OpenFile(folder, "pod_1", 0, AT)
    for first in range(0, lines, each):
        file.write(b"".join(map(line, range(first, first + each))))
    file.leave()
    return file.hidden


def test_a_file_is_shown_when_it_is_whole_in_the_folder_of_its_day(tmp_path: Path) -> None:
    file = OpenFile(tmp_path, "pod_1", 7, AT)
    file.write(line(7) + line(8))
    assert finished(tmp_path) == []
    assert file.hidden.read_bytes() == line(7) + line(8)
    assert list(whole_lines(file.hidden)) == [line(7), line(8)]
    file.finish()
    path = tmp_path / "2026-11-21" / "pod_1-000000000007.jsonl.gz"
    assert [found for _, _, found in finished(tmp_path)] == [path]
    assert gzip.decompress(path.read_bytes()) == line(7) + line(8)
    assert [one.name for one in path.parent.iterdir()] == [path.name]


@given(st.integers(0, 40), st.integers(0, 600), st.booleans())
def test_of_a_file_that_was_left_every_whole_line_is_recovered(lines: int, cut: int, is_torn: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = left_file(folder, lines)
        whole = path.read_bytes()
        path.write_bytes(whole[: max(0, len(whole) - cut)])
        expected = list(whole_lines(path))
        assert cut or len(expected) == -(-lines // 5) * 5
        assert expected == [line(number) for number in range(len(expected))]
        if is_torn:  # what a power failure leaves behind the last block that reached the disk
            path.write_bytes(path.read_bytes() + bytes(20))
        assert recover(folder) == 1
        found = b"".join(gzip.decompress(file.read_bytes()) for _, _, file in finished(folder)).splitlines(
            keepends=True
        )
        assert found[: len(expected)] == expected
        assert is_torn or len(found) == len(expected)
        assert all(isinstance(json.loads(text), dict) for text in found)
        assert not path.exists()
        assert recover(folder) == 0


def test_a_file_that_its_process_still_writes_is_left_alone(tmp_path: Path) -> None:
    file = OpenFile(tmp_path, "pod_1", 0, AT)
    file.write(line(0))
    assert recover(tmp_path) == 0
    file.write(line(1))
    file.finish()
    assert gzip.decompress(file.path.read_bytes()) == line(0) + line(1)


def test_a_file_that_was_recovered_already_is_not_written_again(tmp_path: Path) -> None:
    path = left_file(tmp_path, 5)
    bytes_left = path.read_bytes()
    recover(tmp_path)
    [(_, _, final)] = finished(tmp_path)
    before = final.stat().st_ino
    path.write_bytes(bytes_left)  # the process that recovered it was killed before it removed this
    recover(tmp_path)
    assert final.stat().st_ino == before
    assert not path.exists()


WRITES = range(1, 56)
"""Each call that changes the disk while three files are written, and some that are none any more."""

KILLED = """
    import os, signal, sys
    from pathlib import Path
    from datetime import datetime, UTC
    from streamapp.controller.record.files import OpenFile
    from tests.controller.record.test_files import WRITES, line

    def dying(real, calls, fatal):
        def call(*arguments, **named):
            calls.append(real)
            if len(calls) == fatal:
                if real.__name__ == "write":
                    real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **named)
        return call

    def write_and_die(folder, fatal):
        calls, number = [], 0
        for name in ("open", "write", "fsync", "close", "rename", "unlink"):
            setattr(os, name, dying(getattr(os, name), calls, fatal))
        for _ in range(3):
            file = OpenFile(folder, "pod_1", number, datetime(2026, 11, 21, tzinfo=UTC))
            for _ in range(2):
                file.write(b"".join(map(line, range(number, number + 5))))
                number += 5
                with open(folder / "progress", "w") as progress:
                    progress.write(str(number))
            file.finish()
        os._exit(0)

    for fatal in WRITES:
        folder = Path(sys.argv[1], str(fatal))
        folder.mkdir()
        child = os.fork()
        if child == 0:
            write_and_die(folder, fatal)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        (folder / "ended").write_text(str(ended))
"""


def test_a_process_killed_at_any_write_leaves_only_whole_files_to_see(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{REPOSITORY / 'operator'}:{REPOSITORY}"}
    code = textwrap.dedent(KILLED)
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=environment, check=True)
    ended = [int((tmp_path / str(fatal) / "ended").read_text()) for fatal in WRITES]
    assert set(ended) == {-signal.SIGKILL, 0}, "every write was one to die at, and the last ones were none"
    for fatal in WRITES:
        folder = tmp_path / str(fatal)
        progress = folder / "progress"
        written = int(progress.read_text()) if progress.exists() else 0
        for _, _, path in finished(folder):
            assert gzip.decompress(path.read_bytes()).count(b"\n") == 10, f"{fatal}: a visible file is not whole"
        recover(folder)
        text = b"".join(gzip.decompress(path.read_bytes()) for path in sorted(folder.glob("*/*.jsonl.gz")))
        numbers = [json.loads(one)["seq"] for one in text.splitlines()]
        assert numbers == list(range(len(numbers))), f"{fatal}: lines are lost or doubled"
        assert len(numbers) >= written
        assert [path for path in folder.rglob("*") if path.name.startswith(".")] == []


def test_the_oldest_files_go_first_and_folders_with_them(tmp_path: Path) -> None:
    for number in range(4):
        file = OpenFile(tmp_path, "pod_1", number, AT.replace(day=18 + number))
        file.write(os.urandom(1_000).hex().encode() + b"\n")
        file.finish()
        os.utime(file.path, (1_000 * number, 1_000 * number))
    size = finished(tmp_path)[0][1]
    kept = keep_within(tmp_path, RecordLimits(3 * size + 100, 1e6), now=3_000, room_for=50)
    assert (kept.removed, kept.oldest_seconds) == (1, 2_000)
    assert not (tmp_path / "2026-11-18").exists()
    kept = keep_within(tmp_path, RecordLimits(3 * size + 100, 1_500), now=3_000)
    assert (kept.removed, kept.oldest_seconds) == (1, 1_000)
    kept = keep_within(tmp_path, RecordLimits(0, 1e6), now=3_000)
    assert (kept.total_bytes, kept.oldest_seconds, kept.removed) == (0, 0, 2)
    assert hidden(Path("a/b.jsonl.gz")) == Path("a/.b.jsonl.open")


def test_a_file_that_an_older_operator_left_is_recovered_though_it_is_compressed(tmp_path: Path) -> None:
    pack = zlib.compressobj(6, zlib.DEFLATED, 31)
    flushed = pack.compress(line(0) + line(1)) + pack.flush(zlib.Z_SYNC_FLUSH)
    torn = pack.compress(line(2)) + pack.flush(zlib.Z_SYNC_FLUSH)
    day = tmp_path / "2026-11-21"
    day.mkdir()
    (day / ".pod_1-000000000000.jsonl.gz.open").write_bytes(flushed + torn[:-6])
    assert recover(tmp_path) == 1
    [(_, _, path)] = finished(tmp_path)
    assert path.name == "pod_1-000000000000.jsonl.gz"
    assert gzip.decompress(path.read_bytes()) == line(0) + line(1)
    assert [one.name for one in day.iterdir()] == [path.name]


def test_a_file_that_is_finished_in_this_moment_is_there_once(tmp_path: Path) -> None:
    file = OpenFile(tmp_path, "pod_1", 0, AT)
    file.write(line(0))
    left = file.hidden.read_bytes()
    file.finish()
    file.hidden.write_bytes(left)  # it is removed after the other one is there
    assert [path for _, path in every_file(tmp_path)] == [file.path]
