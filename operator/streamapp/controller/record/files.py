"""The flight record on a disk: gzip files of JSON lines, each visible only when it is whole.

`<folder>/<UTC date>/<recorder>-<first number>.jsonl.gz`, written under a hidden name in the same folder that ends in
`.open`, and renamed when it is closed. Every write ends with a flush, so that what a process left that was killed can
be read up to its last one: `recover` makes a whole file of that. Everything here blocks and raises OSError; it belongs
into a thread of its own.
"""

import contextlib
import fcntl
import itertools
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

SUFFIX: Final = ".jsonl.gz"
OPEN: Final = ".open"
_GZIP = 31
"""zlib's word for its window with a gzip header."""
_PIECE = 16 * 1024


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

    def __init__(self, folder: Path, recorder: str, first: int, at: datetime) -> None:
        day = folder / at.astimezone(UTC).strftime("%Y-%m-%d")
        day.mkdir(parents=True, exist_ok=True)
        self.path = day / f"{recorder}-{first:012d}{SUFFIX}"
        self.hidden = hidden(self.path)
        # One that is there is this process's own, torn at its first write: what is in it comes once more.
        self.hidden.unlink(missing_ok=True)
        self._file = os.open(self.hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self._compressor = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
        self.size = 0
        self.is_torn = False
        """A partial write could not be undone: nothing more must be written."""
        with contextlib.suppress(OSError):
            # On a file system without locks other processes get none either, and leave the file alone.
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def write(self, text: bytes) -> None:
        """Append lines; if that fails, the file is unchanged, and the caller can try again."""
        before, good = self._compressor.copy(), self.size
        try:
            self._append(self._compressor.compress(text) + self._compressor.flush(zlib.Z_SYNC_FLUSH))
        except OSError:
            self._take_back(before, good)
            raise

    def finish(self) -> None:
        """Complete the file, sync it to the disk, and rename it; if that fails, the caller can try again."""
        before, good = self._compressor.copy(), self.size
        try:
            self._append(self._compressor.flush(zlib.Z_FINISH))
            os.fsync(self._file)
            self.hidden.rename(self.path)
        except OSError:
            self._take_back(before, good)
            raise
        os.close(self._file)
        with contextlib.suppress(OSError):
            _sync(self.path.parent)

    def leave(self) -> None:
        """Let go of it as it is; the next process recovers it."""
        os.close(self._file)

    def _append(self, packed: bytes) -> None:
        remaining = memoryview(packed)
        while remaining:
            remaining = remaining[os.write(self._file, remaining) :]
        self.size += len(packed)

    def _take_back(self, before: "zlib._Compress", good: int) -> None:
        """A full disk takes a part of what is written before it says so."""
        self._compressor, self.size = before, good
        try:
            os.ftruncate(self._file, good)
            os.lseek(self._file, good, os.SEEK_SET)
        except OSError:
            self.is_torn = True


def hidden(path: Path) -> Path:
    """The name under which a file is written."""
    return path.with_name(f".{path.name}{OPEN}")


def shown(path: Path) -> Path:
    """The name that a file gets, or got, when it is finished."""
    return path.with_name(path.name.removeprefix(".").removesuffix(OPEN))


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
    for path in folder.glob(f"*/.*{SUFFIX}{OPEN}"):
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
    return sum(1 for path in sorted(folder.glob(f"*/.*{SUFFIX}{OPEN}")) if _recover(path))


def whole_lines(path: Path) -> Iterator[bytes]:
    """Give every line of a file that is there in full, finished or not, each with its newline."""
    unpack, rest = zlib.decompressobj(_GZIP), b""
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            before = unpack.copy()
            try:
                text, is_torn = unpack.decompress(piece), False
            except zlib.error:
                text, is_torn = _up_to_the_fault(before, piece), True
            *lines, rest = (rest + text).split(b"\n")
            yield from (line + b"\n" for line in lines)
            if is_torn or unpack.eof:
                return


def _up_to_the_fault(unpack: "zlib._Decompress", piece: bytes) -> bytes:
    text = b""
    for number in range(len(piece)):
        try:
            text += unpack.decompress(piece[number : number + 1])
        except zlib.error:
            break
    return text


def _recover(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        final = shown(path)
        if not final.exists():
            _rewrite(path, final)
        path.unlink(missing_ok=True)
        return True
    finally:
        os.close(descriptor)


def sound_lines(path: Path) -> Iterator[bytes]:
    """Give what a recovery keeps of a file that is not finished: its whole lines, up to the first that is no JSON."""
    return itertools.takewhile(_is_json, whole_lines(path))


def _rewrite(path: Path, final: Path) -> None:
    copy, count = path.with_name(f"{path.name}.recovered"), 0
    pack = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
    with copy.open("wb") as file:
        for line in sound_lines(path):
            file.write(pack.compress(line))
            count += 1
        file.write(pack.flush(zlib.Z_FINISH))
        file.flush()
        os.fsync(file.fileno())
    if count:
        copy.rename(final)
        _sync(final.parent)
    else:
        copy.unlink()


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
