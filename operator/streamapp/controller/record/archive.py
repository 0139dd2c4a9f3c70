"""Exports the flight record: a tar of all files on standard output.

`python3 -m streamapp.controller.record.archive`, run in a pod of the operator. The tar has the finished files as they
are, and every whole line of a file that is being written, under the file's final name. A later export has that file
complete, and the pipeline takes each line once.
"""

import contextlib
import gzip
import os
import sys
import tarfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from streamapp.controller.record.files import OPEN, every_file, shown, sound_lines

FOLDER = "STREAMAPP_RECORD_FOLDER"


def archive(folder: Path, out: BinaryIO) -> int:
    """Write the record as a tar, oldest file first; give how many files are in it.

    Raises:
        OSError: a file cannot be read, or nobody takes what is written.
    """
    count = 0
    with tarfile.open(fileobj=out, mode="w|") as tar:
        for at, path in every_file(folder):
            name = shown(path).relative_to(folder).as_posix()
            # One that is gone was removed for its age, or finished in this moment.
            for place in dict.fromkeys((path, shown(path))):
                with contextlib.suppress(FileNotFoundError):
                    _add(tar, place, name, at)
                    count += 1
                    break
    return count


def _add(tar: tarfile.TarFile, path: Path, name: str, at: float) -> None:
    entry = tarfile.TarInfo(name)
    entry.mtime = int(at)
    if path.name.endswith(OPEN):
        content = gzip.compress(b"".join(sound_lines(path)), mtime=int(at))
        entry.size = len(content)
        tar.addfile(entry, BytesIO(content))
        return
    with path.open("rb") as file:
        entry.size = os.fstat(file.fileno()).st_size
        tar.addfile(entry, file)


def main(environment: Mapping[str, str], out: BinaryIO) -> int:
    """Write it out; give the exit code."""
    folder = environment.get(FOLDER, "")
    if not folder:
        sys.stderr.write(
            f"flight record: this operator keeps none: {FOLDER} names no folder "
            "(set record.enabled in the chart's values, or that variable)\n"
        )
        return 1
    try:
        archive(Path(folder), out)
        out.flush()
    except OSError as error:
        sys.stderr.write(f"flight record: {folder} was not handed out: {error} (see that the volume is there)\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(os.environ, sys.stdout.buffer))
