"""What can still be read of a damaged file of the record: the whole lines before the damage.

Called by the ingest after Spark failed on a file. The damaged file itself stays as it is.
"""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PIECE: Final = 1 << 20
GZIP: Final = 31
"""As zlib has it: 15 bits of window, with gzip's header."""


def is_whole(path: Path) -> bool:
    """Whether a file can be read to its end."""
    try:
        with gzip.open(path) as file:
            while file.read(PIECE):
                pass
    except (OSError, EOFError, zlib.error):
        return False
    return True


def salvage(path: Path, to: Path) -> int:
    """Write the whole lines before the damage into another file; give how many there are."""
    lines, rest = 0, b""
    with gzip.open(to, "wb", compresslevel=1) as out:
        for piece in _readable(path):
            whole, newline, rest = (rest + piece).rpartition(b"\n")
            out.write(whole + newline)
            lines += whole.count(b"\n") + len(newline)
    return lines


def _readable(path: Path) -> Iterator[bytes]:
    """What comes out of a file before it cannot be read on; a file can have several parts."""
    unpack = zlib.decompressobj(GZIP)
    with path.open("rb") as file:
        while packed := file.read(PIECE):
            while packed:
                try:
                    yield unpack.decompress(packed)
                except zlib.error:
                    return
                packed = unpack.unused_data
                if unpack.eof:
                    unpack = zlib.decompressobj(GZIP)
