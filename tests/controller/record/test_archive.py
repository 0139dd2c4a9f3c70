"""What the operator hands out of its flight record: every whole line, those of open files too, as files of gzip."""

import gzip
import io
import os
import subprocess
import sys
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lab.settings import REPOSITORY
from streamapp.controller.record import archive as record_archive
from streamapp.controller.record.archive import FOLDER, archive, main
from streamapp.controller.record.files import OpenFile

AT = datetime(2026, 11, 21, 23, 59, tzinfo=UTC)
FINISHED, OPEN = "2026-11-21/pod_1-000000000000.jsonl.gz", "2026-11-21/pod_1-000000000002.jsonl.gz"


def lines(*numbers: int) -> bytes:
    return b"".join(b'{"seq": %d}\n' % number for number in numbers)


def record(folder: Path) -> OpenFile:
    """A finished file, and one that is being written, with a torn line at its end."""
    first = OpenFile(folder, "pod_1", 0, AT)
    first.write(lines(0, 1))
    first.finish()
    second = OpenFile(folder, "pod_1", 2, AT)
    second.write(lines(2, 3))
    second.write(b'{"seq": 4, "torn')
    return second


def unpacked(packed: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        found = {}
        for entry in tar:
            file = tar.extractfile(entry)
            assert file is not None
            found[entry.name] = gzip.decompress(file.read())
        return found


def test_open_files_are_in_it_with_their_whole_lines_under_the_name_they_will_get(tmp_path: Path) -> None:
    file = record(tmp_path)
    out = io.BytesIO()
    assert archive(tmp_path, out) == 2
    assert unpacked(out.getvalue()) == {FINISHED: lines(0, 1), OPEN: lines(2, 3)}
    assert file.hidden.exists()
    file.leave()


def test_a_file_that_is_finished_in_this_moment_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = OpenFile(tmp_path, "pod_1", 2, AT)
    file.write(lines(2))
    seen = [(0.0, file.hidden)]
    file.finish()
    monkeypatch.setattr(record_archive, "every_file", lambda _: seen)
    out = io.BytesIO()
    assert archive(tmp_path, out) == 1
    assert unpacked(out.getvalue()) == {OPEN: lines(2)}


def test_it_runs_as_a_program_as_people_are_told_to(tmp_path: Path) -> None:
    record(tmp_path).leave()
    command = [sys.executable, "-m", "streamapp.controller.record.archive"]
    environment = {**os.environ, FOLDER: str(tmp_path), "PYTHONPATH": str(REPOSITORY / "operator")}
    ran = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert set(unpacked(ran.stdout)) == {FINISHED, OPEN}


def test_a_replica_that_never_led_gives_an_empty_one(tmp_path: Path) -> None:
    out = io.BytesIO()
    assert main({FOLDER: str(tmp_path)}, out) == 0
    assert unpacked(out.getvalue()) == {}


def test_an_operator_without_a_record_says_what_to_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert main({}, io.BytesIO()) == 1
    assert "record.enabled" in capsys.readouterr().err
