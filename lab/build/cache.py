"""Decides whether something has been built already: a folder of entries addressed by the content they were built from.

Every builder of `lab.build` goes through `Cache.entry`. An entry appears whole or not at all: it is built in a
half-built sibling, flushed to disk and renamed, so a build that is killed at any moment costs only its own time. What
is found later is compared with the manifest written at its birth, hence a truncated or tidied-up entry is rebuilt
and never used. The cache never looks into an entry and never decides what belongs into a key: its callers do.

    <cache>/<name>/lock                    held while an entry of that name is built or removed
    <cache>/<name>/log                     what the tools said in the last build of that name
    <cache>/<name>/<key>/manifest.json     names and sizes of all files below content
    <cache>/<name>/<key>/content/          what the caller gets
    <cache>/<name>/<key>.<any>.half-built/ exists only during a build or a removal, or after a killed one
"""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.terminal import progress

HALF_BUILT = ".half-built"
MANIFEST = "manifest.json"
CONTENT = "content"
KEY_LENGTH = 20
"""Hexadecimal digits of a key: 80 bits, enough for a cache nobody attacks and short enough for a path."""


def content_key(inputs: Mapping[str, str | Path]) -> str:
    """Hash named inputs into a key: strings by their text, files and folders by what they hold.

    A file counts with its content and whether it is executable; a folder with the relative names and contents of all
    files and links below it. Modification times, owners and the inputs' own paths do not count. The order in which
    the inputs are named does not matter.

    Raises FileNotFoundError for a path that is not there: a builder that names it cannot be right.
    """
    whole = hashlib.sha256()
    for name, value in sorted(inputs.items()):
        content = value if isinstance(value, str) else _hash_path(value)
        whole.update(_framed(name.encode(), content.encode()))
    return whole.hexdigest()[:KEY_LENGTH]


def _hash_path(path: Path) -> str:
    if not path.is_dir():
        return _hash_file(path)
    whole = hashlib.sha256()
    for relative, file in _files_below(path):
        whole.update(_framed(relative.encode(), _hash_file(file).encode()))
    return f"folder {whole.hexdigest()}"


def _hash_file(path: Path) -> str:
    if path.is_symlink():
        return f"link {path.readlink()}"
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{'program' if os.access(path, os.X_OK) else 'file'} {digest}"


def _framed(*parts: bytes) -> bytes:
    """Prefix each part with its length, so that two different lists never hash alike."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def _files_below(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every file and link below `folder` with its relative name, in a fixed order; empty folders do not count."""
    for parent, folders, files in os.walk(folder):
        folders.sort()
        here = Path(parent)
        links = [name for name in folders if (here / name).is_symlink()]
        for name in sorted(files + links):
            yield (here / name).relative_to(folder).as_posix(), here / name


@dataclass(frozen=True)
class Cache:
    """All entries below one folder, shared by every process of this user."""

    folder: Path

    def entry(self, name: str, key: str, build: Callable[[Path], None]) -> Path:
        """Give the folder of the entry `name`/`key`, calling `build(folder)` first if there is none that is whole.

        `build` fills the empty folder it is given and may not keep its path: the folder is renamed afterwards. What it
        raises passes through, and nothing of its work is kept. While another process builds an entry of the same
        name, this call waits for it.
        """
        home = self.folder / name
        entry = home / key
        if _misfit(entry) is None:
            os.utime(entry / MANIFEST)
            return entry / CONTENT
        home.mkdir(parents=True, exist_ok=True)
        with _lock(home):
            _sweep(home)
            misfit = _misfit(entry)
            if misfit is not None:
                if entry.exists():
                    progress.print(f"[yellow]cache:[/] {name} {key} is built again: {misfit}", soft_wrap=True)
                    _remove(entry)
                _build(entry, build)
        return entry / CONTENT

    def log(self, name: str) -> Path:
        """Where the tools' output of the last build of that name goes; whoever builds holds the name's lock."""
        return self.folder / name / "log"

    def prune(self, keep: int = 2, spare: float = 3600.0) -> int:
        """Keep the `keep` entries of each name that were used last; give the bytes freed.

        What was used in the last `spare` seconds stays too, since a lab may be starting from it, and so does a name
        that another process is building at this moment.
        """
        freed = 0
        for home in self._names():
            with _lock(home, wait=False) as held:
                if held:
                    freed += _prune(home, keep, time.time() - spare)
        return freed

    def sizes(self) -> dict[str, int]:
        """Bytes on disk by name, all its entries together, for `lab status`."""
        return {home.name: _size(home) for home in self._names()}

    def _names(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        return sorted(path for path in self.folder.iterdir() if path.is_dir())


@contextmanager
def _lock(home: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock of a name and tell whether it is held; the kernel lets go of it however this process ends.

    One lock per name and not per key: the lock file then never has to be removed, which could not be done safely.
    """
    with (home / "lock").open("w") as file:
        held = True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held = wait
            if wait:
                progress.print(f"[yellow]cache:[/] another process builds {home.name}; waiting for it", soft_wrap=True)
                fcntl.flock(file, fcntl.LOCK_EX)
        yield held


def _sweep(home: Path) -> int:
    """Remove what killed builds left; whoever calls holds the lock, so nobody is at work on them. Give the bytes."""
    freed = 0
    for rest in home.glob(f"*{HALF_BUILT}"):
        progress.print(
            f"[yellow]cache:[/] {home.name} {rest.name}: left by a build that was killed, removed", soft_wrap=True
        )
        freed += _size(rest)
        shutil.rmtree(rest)
    return freed


def _prune(home: Path, keep: int, before: float) -> int:
    freed = _sweep(home)
    used = {manifest.parent: manifest.stat().st_mtime for manifest in home.glob(f"*/{MANIFEST}")}
    for entry in sorted(used, key=lambda entry: used[entry], reverse=True)[keep:]:
        if used[entry] < before:
            freed += _size(entry)
            _remove(entry)
    return freed


def _build(entry: Path, build: Callable[[Path], None]) -> None:
    half = _half_built(entry)
    content = half / CONTENT
    content.mkdir()
    try:
        build(content)
        (half / MANIFEST).write_text(json.dumps(_inventory(content), indent=1))
        for _, file in _files_below(half):
            _flush(file)
        half.rename(entry)
        _flush(entry.parent)
    except BaseException:
        shutil.rmtree(half)
        raise


def _half_built(entry: Path) -> Path:
    """Make a sibling with a name of its own: a killed build's orphans may still be writing into theirs."""
    half = Path(tempfile.mkdtemp(prefix=f"{entry.name}.", suffix=HALF_BUILT, dir=entry.parent))
    half.chmod(0o755)
    return half


def _remove(entry: Path) -> None:
    """Take an entry away in one step and then its files, so that a killed removal leaves no half of an entry."""
    aside = _half_built(entry)
    entry.rename(aside / entry.name)
    shutil.rmtree(aside)


def _inventory(content: Path) -> dict[str, int | str]:
    """Sizes of files, in bytes, and targets of links, by relative name."""
    return {
        relative: str(file.readlink()) if file.is_symlink() else file.stat().st_size
        for relative, file in _files_below(content)
    }


def _misfit(entry: Path) -> str | None:
    """Why an entry cannot be used, or None if it is as it was when it was built."""
    try:
        expected = json.loads((entry / MANIFEST).read_text())
    except (OSError, ValueError):
        return "it has no readable manifest"
    found = _inventory(entry / CONTENT)
    if found == expected:
        return None
    differing = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
    return f"{len(differing)} of its files differ from its manifest, first {differing[0]}"


def _flush(path: Path) -> None:
    """Have the kernel write a file or folder to disk; a link lives in its folder and has nothing of its own."""
    if path.is_symlink():
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _size(folder: Path) -> int:
    return sum(file.lstat().st_size for _, file in _files_below(folder))
