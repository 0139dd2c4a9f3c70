"""The flight record on a disk: plain lines of JSON while a file is written, and gzip files that are visible when whole.

`<folder>/<UTC date>/<recorder>-<first number>.jsonl.gz`, and beside it one with `-samples` before the suffix. A file is
written as plain text under a hidden name that ends in `.open`: what a process left that was killed has every line up to
its last write. When a file is closed, it is compressed under another hidden name, synced and renamed; `recover` does
that for what was left. Everything here blocks and raises OSError; it belongs into a thread of its own.
"""

import contextlib
import fcntl
import gzip
import itertools
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

SUFFIX: Final = ".jsonl.gz"
OPEN: Final = ".open"
SAMPLES: Final = "-samples"
"""Before the suffix of a file that has samples alone."""
_DRAFT = ".draft"
_PACKED = ".gz"
_GZIP = 31
"""zlib's word for its window with a gzip header."""
_PIECE = 256 * 1024


@dataclass(frozen=True, slots=True)
class RecordLimits:
    """Limits on the finished files."""

    total_bytes: int
    age_seconds: float


@dataclass(frozen=True, slots=True)
class CleanupResult:
    """What is there after the oldest were removed."""

    total_bytes: int
    oldest_seconds: float
    """Age of the oldest file; 0 where there is none."""
    removed: int


class OpenFile:
    """A file that is being written; held by a lock, so that no other process recovers it."""

    def __init__(self, folder: Path, recorder: str, first: int, at: datetime, part: str = "") -> None:
        day = folder / at.astimezone(UTC).strftime("%Y-%m-%d")
        day.mkdir(parents=True, exist_ok=True)
        self.path = day / f"{recorder}-{first:012d}{part}{SUFFIX}"
        self.hidden = hidden(self.path)
        # One that is there is this process's own, torn at its first write: what is in it comes once more.
        self.hidden.unlink(missing_ok=True)
        self._file = os.open(self.hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self.size = 0
        """Bytes of lines."""
        self.is_torn = False
        """A partial write could not be undone: nothing more must be written."""
        with contextlib.suppress(OSError):
            # On a file system without locks other processes get none either, and leave the file alone.
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def write(self, text: bytes) -> None:
        """Append lines; if that fails, the file is unchanged, and the caller can try again."""
        try:
            _write(self._file, text)
        except OSError:
            self._take_back()
            raise
        self.size += len(text)

    def finish(self) -> None:
        """Compress the file, sync it to the disk, and rename it; if that fails, the caller can try again."""
        _compress(_pieces(self.hidden), self.path)
        self.hidden.unlink(missing_ok=True)
        os.close(self._file)

    def leave(self) -> None:
        """Let go of it as it is; the next process recovers it."""
        os.close(self._file)

    def _take_back(self) -> None:
        """A full disk takes a part of what is written before it says so."""
        try:
            os.ftruncate(self._file, self.size)
            os.lseek(self._file, self.size, os.SEEK_SET)
        except OSError:
            self.is_torn = True


def _write(descriptor: int, content: bytes) -> None:
    remaining = memoryview(content)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _compress(pieces: Iterable[bytes], final: Path) -> None:
    """Make a gzip file that is visible when it is whole and on the disk."""
    draft, pack = final.with_name(f".{final.name}{_DRAFT}"), zlib.compressobj(6, zlib.DEFLATED, _GZIP)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        try:
            for piece in pieces:
                _write(descriptor, pack.compress(piece))
            _write(descriptor, pack.flush(zlib.Z_FINISH))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        draft.rename(final)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
    with contextlib.suppress(OSError):
        _sync(final.parent)


def hidden(path: Path) -> Path:
    """The name under which a file is written."""
    return path.with_name(f".{path.name.removesuffix(_PACKED)}{OPEN}")


def shown(path: Path) -> Path:
    """The name that a file gets, or got, when it is finished."""
    plain = path.name.removeprefix(".").removesuffix(OPEN)
    # At first operators compressed a file while they wrote it.
    return path.with_name(plain if plain.endswith(_PACKED) else f"{plain}{_PACKED}")


def is_of_samples(path: Path) -> bool:
    """Whether a file has samples alone, finished or not."""
    return shown(path).name.endswith(f"{SAMPLES}{SUFFIX}")


def finished(folder: Path) -> list[tuple[float, int, Path]]:
    """Every whole file, oldest first: when it was finished (seconds since 1970), its bytes, its path."""
    files = []
    for path in folder.glob(f"*/*{SUFFIX}"):
        if not path.name.startswith("."):
            try:
                status = path.stat()
            except FileNotFoundError:
                continue  # removed meanwhile
            files.append((status.st_mtime, status.st_size, path))
    return sorted(files)


def every_file(folder: Path) -> list[tuple[float, Path]]:
    """Every file there is, those that are being written too, oldest first: when it was last written, and its path."""
    files = [(at, path) for at, _, path in finished(folder)]
    whole = {path for _, path in files}
    for path in _left(folder):
        if shown(path) not in whole:  # else it is removed in this moment
            with contextlib.suppress(FileNotFoundError):
                files.append((path.stat().st_mtime, path))
    return sorted(files)


def keep_within(folder: Path, limits: RecordLimits, now: float, room_for: int = 0) -> CleanupResult:
    """Remove the oldest whole files until the limits hold, with so many bytes left for the file that is open."""
    files = finished(folder)
    total, removed = sum(size for _, size, _ in files), 0
    while files and (total + room_for > limits.total_bytes or now - files[0][0] > limits.age_seconds):
        _, size, path = files.pop(0)
        path.unlink(missing_ok=True)
        total, removed = total - size, removed + 1
        with contextlib.suppress(OSError):
            path.parent.rmdir()  # which does nothing where anything is left in it
    return CleanupResult(total, max(0.0, now - files[0][0]) if files else 0.0, removed)


def recover(folder: Path) -> int:
    """Make whole files of those that processes before this one left; give how many there were.

    A file that its process still holds is left alone. What was written after the last flush is lost, and what was
    torn; a file without a single whole line is removed.
    """
    return sum(1 for path in _left(folder) if _recover(path))


def _left(folder: Path) -> list[Path]:
    """Files that are being written, or were."""
    return sorted(folder.glob(f"*/.*{OPEN}"))


def whole_lines(path: Path) -> Iterator[bytes]:
    """Give every line of a file that is there in full, finished or not, each with its newline."""
    is_packed = path.name.removesuffix(OPEN).endswith(_PACKED)
    # What cannot be unpacked was torn when it was written.
    torn = contextlib.suppress(EOFError, zlib.error, gzip.BadGzipFile)
    with gzip.open(path) if is_packed else path.open("rb") as file, torn:
        for line in file:
            if line.endswith(b"\n"):
                yield line


def _recover(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        final, lines = shown(path), sound_lines(path)
        first = None if final.exists() else next(lines, None)
        if first is not None:
            _compress(itertools.chain([first], lines), final)
        path.unlink(missing_ok=True)
        return True
    finally:
        os.close(descriptor)


def sound_lines(path: Path) -> Iterator[bytes]:
    """Give what a recovery keeps of a file that is not finished: its whole lines, up to the first that is no JSON."""
    return itertools.takewhile(_is_json, whole_lines(path))


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _sync(folder: Path) -> None:
    """See that a new name in a folder outlives a power failure."""
    opened = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
