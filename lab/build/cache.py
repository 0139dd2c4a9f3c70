"""Decides whether something has been built already: a folder of entries addressed by the content they were built from.

Every builder of `lab.build` goes through `Cache.entry`. An entry appears whole or not at all: it is built in a
half-built sibling, flushed to disk and renamed, so a build that is killed at any moment costs only its own time. What
is found later is compared with the manifest written at its birth, hence a truncated or tidied-up entry is rebuilt
and never used. The cache never looks into an entry and never decides what belongs into a key: its callers do.

It writes and removes nothing in a folder that it did not make or find empty, whatever the settings name: a folder is
the cache's only with the marker in it.

    <cache>/CACHEDIR.TAG                   the marker; backup programs know it too
    <cache>/<name>/lock                    held while an entry of that name is built or set aside
    <cache>/<name>/log                     what the tools said in the last build of that name
    <cache>/<name>/<key>/manifest.json     names and sizes of all files below content; its age is that of the last use
    <cache>/<name>/<key>/content/          what the caller gets
    <cache>/<name>/<key>.<any>.half-built/ exists only during a build, or after a killed one
    <cache>/<name>/<key>.<any>.removed/    an entry set aside, whose files are being removed
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from lab.errors import LabError
from lab.terminal import progress

MARKER = "CACHEDIR.TAG"
MARK = """Signature: 8a477f597d28d172789f06886806bc55
# Built programs and images of streamapp-operator's lab; safe to delete as a whole.
# The first line tells backup programs (https://bford.info/cachedir/), the second the lab, that this is a cache.
"""
HALF_BUILT = ".half-built"
REMOVED = ".removed"
MANIFEST = "manifest.json"
CONTENT = "content"
LOCK = "lock"
LOG = "log"
KEY_LENGTH = 20
"""Hexadecimal digits of a key: 80 bits, enough for a cache nobody attacks and short enough for a path."""
KEY = re.compile(rf"[0-9a-f]{{{KEY_LENGTH}}}")
REST = re.compile(rf"{KEY.pattern}\..+({re.escape(HALF_BUILT)}|{re.escape(REMOVED)})")
"""What builds and removals work on, and leave when they are killed."""
UNUSED = timedelta(days=7)
"""Nobody runs what was built then from a branch that nobody has returned to since."""


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

        `key` comes from `content_key`. `build` fills the empty folder it is given and may not keep its path: the folder
        is renamed afterwards. What it raises passes through, and nothing of its work is kept. While another process
        builds an entry of the same name, this call waits for it.

        Raises LabError if the folder of the cache holds anything but a cache, or cannot be written.
        """
        home = self.folder / name
        entry = home / key
        if _use(entry) is None:
            return entry / CONTENT
        _claim(self.folder)
        home.mkdir(exist_ok=True)
        with _lock(home):
            _sweep(home)
            misfit = _use(entry)
            if misfit is not None:
                if entry.exists():
                    progress.print(f"[yellow]cache:[/] {name} {key} is built again: {misfit}", soft_wrap=True)
                    _discard(_set_aside(entry))
                _build(entry, build)
        return entry / CONTENT

    def holds(self, name: str) -> bool:
        """Tell whether there is a whole entry of that name, whatever it was built from."""
        home = self.folder / name
        return home.is_dir() and any(_misfit(entry) is None for entry in _entries(home))

    def log(self, name: str) -> Path:
        """Where the tools' output of the last build of that name goes; whoever builds holds the name's lock."""
        return self.folder / name / LOG

    def prune(self, keep: int = 2, unused: timedelta = UNUSED) -> int:
        """Remove what nobody used for that long, but of each name the `keep` entries used last; give the bytes freed.

        A name that another process is building at this moment is left alone, and nobody waits for a removal. Raises
        LabError if the folder holds anything but a cache.
        """
        if not self.folder.exists():
            return 0
        _claim(self.folder)
        freed = 0
        for home in sorted(self.folder.iterdir()):
            if home.is_symlink() or not (home / LOCK).is_file():
                continue
            with _lock(home, wait=False) as held:
                if held:
                    _set_old_aside(home, keep, time.time() - unused.total_seconds())
            freed += sum(_discard(rest) for rest in home.glob(f"*{REMOVED}") if REST.fullmatch(rest.name))
        return freed


def _claim(folder: Path) -> None:
    """Make the folder, or make sure that it is a cache; raise LabError if it is anything else."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # Two processes may be the first ones: the second sees the marker or an empty folder, and nothing between.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not _marked(folder):
                _mark(folder)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise LabError(
            f"cache {folder}: cannot be used",
            str(error),
            "name a folder that you may write by STREAMAPP_LAB_CACHE",
        ) from error


def _marked(folder: Path) -> bool:
    try:
        return (folder / MARKER).read_text().splitlines()[:2] == MARK.splitlines()[:2]
    except (FileNotFoundError, UnicodeDecodeError):
        return False


def _mark(folder: Path) -> None:
    """Mark a folder that is empty, or a cache from before there were markers."""
    new = folder / f"{MARKER}{HALF_BUILT}"
    strange = sorted(path.name for path in folder.iterdir() if path != new and not _is_home(path))
    if strange:
        raise LabError(
            f"cache {folder}: not a folder of the lab",
            f"it holds {strange[0]}{f' and {len(strange) - 1} more' if strange[1:] else ''}, and old entries of a "
            "cache are removed",
            "name an empty or a new folder by STREAMAPP_LAB_CACHE",
        )
    new.write_text(MARK)
    new.rename(folder / MARKER)


def _is_home(path: Path) -> bool:
    """Tell whether this is the folder of a name with nothing in it but ours."""
    if path.is_symlink() or not path.is_dir():
        return False
    names = {child.name for child in path.iterdir()}
    own = {name for name in names if name in {LOCK, LOG} or KEY.fullmatch(name) or REST.fullmatch(name)}
    return own == names and not names.isdisjoint({LOCK, LOG})


@contextmanager
def _lock(home: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock of a name and tell whether it is held; the kernel lets go of it however this process ends.

    One lock per name and not per key: the lock file then never has to be removed, which could not be done safely.
    """
    with (home / LOCK).open("a") as file:
        held = True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held = wait
            if wait:
                progress.print(f"[yellow]cache:[/] another process builds {home.name}; waiting for it", soft_wrap=True)
                fcntl.flock(file, fcntl.LOCK_EX)
        yield held


def _sweep(home: Path) -> None:
    """Remove what killed builds left; whoever calls holds the lock, so nobody is at work on them."""
    for rest in _left(home):
        _discard(rest)


def _left(home: Path) -> list[Path]:
    """List what killed builds left, and say so."""
    leftovers = [path for path in home.glob(f"*{HALF_BUILT}") if REST.fullmatch(path.name)]
    for rest in leftovers:
        progress.print(
            f"[yellow]cache:[/] {home.name} {rest.name}: left by a build that was killed, removed", soft_wrap=True
        )
    return leftovers


def _entries(home: Path) -> list[Path]:
    return [path for path in home.iterdir() if KEY.fullmatch(path.name) and not path.is_symlink()]


def _set_old_aside(home: Path, keep: int, before: float) -> None:
    """Set aside what killed builds left, and of the entries but the `keep` newest those last used before a time."""
    for rest in _left(home):
        _set_aside(rest)
    whole = [path / MANIFEST for path in _entries(home) if (path / MANIFEST).is_file() and (path / CONTENT).is_dir()]
    used_last = sorted(whole, key=_last_use, reverse=True)
    for manifest in used_last[keep:]:
        if _last_use(manifest) < before:
            _set_aside(manifest.parent)


def _last_use(manifest: Path) -> float:
    return manifest.stat().st_mtime


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


def _set_aside(entry: Path) -> Path:
    """Take an entry away in one step, so that a killed removal leaves no half of an entry; give where it is now."""
    aside = Path(tempfile.mkdtemp(prefix=f"{entry.name[:KEY_LENGTH]}.", suffix=REMOVED, dir=entry.parent))
    entry.rename(aside / entry.name)
    return aside


def _discard(rest: Path) -> int:
    """Remove what nobody uses any more and give the bytes freed; somebody else may be removing it too."""
    before = _size(rest)
    shutil.rmtree(rest, ignore_errors=True)
    return before - _size(rest)


def _use(entry: Path) -> str | None:
    """Note that an entry is used now, before `prune` elsewhere looks at it; say why it cannot be, or None."""
    with suppress(OSError):
        os.utime(entry / MANIFEST)
    return _misfit(entry)


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
    if not isinstance(expected, dict):
        return "its manifest is no list of files"
    try:
        inventory = _inventory(entry / CONTENT)
    except OSError as error:
        return f"it changed while it was looked at: {error}"
    if inventory == expected:
        return None
    differing = sorted(name for name in {*inventory, *expected} if inventory.get(name) != expected.get(name))
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
    """Bytes of all files below a folder; what vanishes meanwhile counts as nothing."""
    size = 0
    for _, file in _files_below(folder):
        with suppress(FileNotFoundError):
            size += file.lstat().st_size
    return size
