"""Packs files into archives that are the same bytes wherever and whenever they are packed.

Called by everything in `release` that makes an archive of its own. Names are sorted, owners are 0, and all times are
that of the commit.
"""

import gzip
import hashlib
import tarfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

PROGRAM = 0o755
PLAIN = 0o644


def digest(path: Path) -> str:
    """Give the SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(content: bytes) -> str:
    """Give the SHA-256 of bytes in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def tar(target: Path, files: Mapping[str, Path | bytes], epoch: int) -> None:
    """Write a tar of files by their names in it; a file that its owner may execute stays executable."""
    with target.open("wb") as file, tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        _fill(archive, files, epoch)


def tar_gz(target: Path, files: Mapping[str, Path | bytes], epoch: int) -> None:
    """Write a compressed tar; see `tar`."""
    # Without a name and with a fixed time in the head of the compressed stream.
    with (
        target.open("wb") as file,
        gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        _fill(archive, files, epoch)


def _fill(archive: tarfile.TarFile, files: Mapping[str, Path | bytes], epoch: int) -> None:
    for name, content in sorted(files.items()):
        entry = tarfile.TarInfo(name)
        entry.mtime = epoch
        if isinstance(content, bytes):
            entry.mode, entry.size = PLAIN, len(content)
            archive.addfile(entry, BytesIO(content))
            continue
        entry.mode = PROGRAM if content.stat().st_mode & 0o100 else PLAIN
        entry.size = content.stat().st_size
        with content.open("rb") as file:
            archive.addfile(entry, file)
