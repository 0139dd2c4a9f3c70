"""The cache's laws: same content same key, whole or not at all, built once."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.build.cache import HALF_BUILT, MARK, MARKER, REMOVED, Cache, content_key
from lab.errors import LabError
from lab.settings import REPOSITORY

KEY = "0" * 20

inputs = st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=4)


@given(inputs, inputs)
def test_two_sets_of_inputs_have_the_same_key_exactly_if_they_are_equal(
    first: dict[str, str], second: dict[str, str]
) -> None:
    assert (content_key({**first}) == content_key({**second})) == (first == second)


def tree(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_a_folder_counts_by_its_names_and_contents_and_not_by_where_or_when_it_was_written(tmp_path: Path) -> None:
    files = {"a.txt": "1", "sub/b.txt": "2"}
    here, there = tree(tmp_path / "here", files), tree(tmp_path / "there", files)
    os.utime(there / "a.txt", (1, 1))
    assert content_key({"folder": here}) == content_key({"folder": there})


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "a.txt").write_text("2"),
        lambda folder: (folder / "a.txt").chmod(0o755),
        lambda folder: (folder / "a.txt").rename(folder / "c.txt"),
        lambda folder: (folder / "sub" / "b.txt").unlink(),
        lambda folder: (folder / "link").symlink_to("a.txt"),
        lambda folder: (folder / "sub-link").symlink_to("sub"),
    ],
    ids=["content", "executable", "name", "removed", "link to a file", "link to a folder"],
)
def test_every_change_below_a_folder_changes_its_key(tmp_path: Path, change: Callable[[Path], object]) -> None:
    folder = tree(tmp_path / "it", {"a.txt": "1", "sub/b.txt": "2"})
    before = content_key({"folder": folder})
    change(folder)
    assert content_key({"folder": folder}) != before


def test_a_file_and_a_text_with_the_same_content_have_different_keys(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("1")
    assert content_key({"it": tmp_path / "file"}) != content_key({"it": "1"})


def test_an_input_that_is_not_there_is_an_error_and_not_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        content_key({"it": tmp_path / "nothing"})


class Builder:
    """A build that counts how often it ran."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, folder: Path) -> None:
        self.runs += 1
        tree(folder, {"bin/program": "program", "readme": "text"})
        (folder / "bin" / "link").symlink_to("program")


def test_an_entry_is_built_once_and_found_afterwards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build = Builder()
    first = Cache(tmp_path).entry("it", KEY, build)
    second = Cache(tmp_path).entry("it", KEY, build)
    assert (first, build.runs, (second / "bin" / "link").read_text()) == (second, 1, "program")
    assert capsys.readouterr().err == ""


def test_a_failing_build_leaves_nothing_and_its_error_passes_through(tmp_path: Path) -> None:
    def failing(folder: Path) -> None:
        (folder / "begun").touch()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Cache(tmp_path).entry("it", KEY, failing)
    assert sorted(path.name for path in tmp_path.rglob("*")) == [MARKER, "it", "lock"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda content: (content / "readme").unlink(), "first readme"),
        (lambda content: (content / "readme").write_text(""), "first readme"),
        (lambda content: (content / "more").touch(), "first more"),
        (lambda content: (content / "bin" / "link").unlink(), "first bin/link"),
        (lambda content: (content.parent / "manifest.json").unlink(), "no readable manifest"),
        (lambda content: (content.parent / "manifest.json").write_text("{"), "no readable manifest"),
        (lambda content: (content.parent / "manifest.json").write_text("1"), "no list of files"),
        (shutil.rmtree, "first bin/link"),
    ],
    ids=["file gone", "file cut", "file added", "link gone", "manifest gone", "manifest cut", "a number", "all gone"],
)
def test_a_damaged_entry_is_built_again_and_one_line_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Path], object], why: str
) -> None:
    build = Builder()
    content = Cache(tmp_path).entry("it", KEY, build)
    change(content)
    again = Cache(tmp_path).entry("it", KEY, build)
    said = " ".join(capsys.readouterr().err.split())
    assert (build.runs, sorted(path.name for path in again.rglob("*"))) == (2, ["bin", "link", "program", "readme"])
    assert said.startswith(f"cache: it {KEY} is built again: ")
    assert said.endswith(why)


def start(code: str, *arguments: str | Path) -> subprocess.Popen[str]:
    """Start a process that uses the cache in its first argument."""
    prelude = """
        import sys, time
        from pathlib import Path
        from lab.build.cache import Cache
        cache = Cache(Path(sys.argv[1]))
    """
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(prelude) + textwrap.dedent(code), *arguments],
        cwd=REPOSITORY,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.01)


def test_what_a_killed_build_left_is_removed_and_named_and_the_entry_is_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = tmp_path / "begun"
    endless = """
        def build(folder):
            (folder / "half").touch()
            Path(sys.argv[2]).touch()
            time.sleep(60)
        cache.entry("it", "0" * 20, build)
    """
    with start(endless, tmp_path / "cache", begun) as process:
        wait_for(begun)
        process.send_signal(signal.SIGKILL)
    home = tmp_path / "cache" / "it"
    assert [path.suffix for path in home.glob(f"{KEY}*")] == [HALF_BUILT]
    build = Builder()
    Cache(tmp_path / "cache").entry("it", KEY, build)
    assert (build.runs, sorted(path.name for path in home.iterdir())) == (1, [KEY, "lock"])
    assert "left by a build that was killed, removed" in " ".join(capsys.readouterr().err.split())


def test_two_processes_build_an_entry_once_and_the_second_says_that_it_waits(tmp_path: Path) -> None:
    waiting = """
        def build(folder):
            with Path(sys.argv[2]).open("a") as runs:
                runs.write("ran ")
            while not Path(sys.argv[3]).exists():
                time.sleep(0.01)
        cache.entry("it", "0" * 20, build)
    """
    runs, may_end = tmp_path / "runs", tmp_path / "may_end"
    with start(waiting, tmp_path / "cache", runs, may_end) as first:
        wait_for(runs)
        with start(waiting, tmp_path / "cache", runs, may_end) as second:
            said = second.stderr.readline() if second.stderr else ""
            may_end.touch()
    assert (first.returncode, second.returncode, runs.read_text()) == (0, 0, "ran ")
    assert said == "cache: another process builds it; waiting for it\n"


def aged(cache: Cache, name: str, days_by_key: dict[str, float]) -> None:
    """Make whole entries that were last used so many days ago."""
    for key, days in days_by_key.items():
        then = time.time() - 86400 * days
        os.utime(cache.entry(name, key, Builder()).parent / "manifest.json", (then, then))


def test_pruning_removes_what_was_not_used_for_a_week_beyond_the_newest_two(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    newest, newer, middle, old, oldest = (digit * 20 for digit in "abcde")
    aged(cache, "it", {newest: 0, newer: 6.9, middle: 6.9, old: 7.1, oldest: 30})
    aged(cache, "rare", {newest: 8, newer: 9, middle: 10})
    freed = cache.prune()
    left = {name: sorted(path.name for path in (tmp_path / name).iterdir()) for name in ("it", "rare")}
    assert left == {"it": [newest, newer, middle, "lock"], "rare": [newest, newer, "lock"]}
    program, readme = len("program"), len("text")
    manifest = (tmp_path / "it" / newest / "manifest.json").stat().st_size
    assert freed == 3 * (program + readme + len("program") + manifest)


def test_an_old_entry_that_is_used_again_is_a_new_one(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    aged(cache, "it", {"a" * 20: 8, "b" * 20: 9, "c" * 20: 10})
    cache.entry("it", "c" * 20, Builder())
    cache.prune()
    assert sorted(path.name for path in (tmp_path / "it").iterdir()) == ["a" * 20, "c" * 20, "lock"]


def test_pruning_removes_what_killed_builds_and_removals_left(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.entry("it", KEY, Builder())
    for ending in (HALF_BUILT, REMOVED):
        tree(tmp_path / "it" / f"{KEY}.any{ending}", {"content/file": "123"})
    assert (cache.prune(), sorted(path.name for path in (tmp_path / "it").iterdir())) == (6, [KEY, "lock"])


def projects(folder: Path) -> dict[str, str]:
    """Fill a folder with what a person may have there, in places where a cache has its own; give it by name."""
    return contents(
        tree(
            folder,
            {
                "app/lock": "a lock of theirs",
                **{f"app/{digit * 20}/manifest.json": "{}" for digit in "abcd"},
                "app/x/manifest.json": "{}",
                "app/y/manifest.json": "{}",
                "app/z/manifest.json": "{}",
                "app/x.half-built/notes": "text",
            },
        )
    )


def contents(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_that_holds_anything_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    before = projects(tmp_path)
    cache = Cache(tmp_path)
    errors = []
    for use in (lambda: cache.prune(keep=0, unused=timedelta(0)), lambda: cache.entry("app", KEY, Builder())):
        with pytest.raises(LabError) as raised:
            use()
        errors.append(raised.value)
    refused = LabError(
        f"cache {tmp_path}: not a folder of the lab",
        "it holds app, and old entries of a cache are removed",
        "name an empty or a new folder by STREAMAPP_LAB_CACHE",
    )
    assert (errors, contents(tmp_path)) == ([refused, refused], before)


def test_the_marker_of_another_programs_cache_does_not_count(tmp_path: Path) -> None:
    tree(tmp_path, {MARKER: MARK.splitlines()[0] + "\n", "wheels/it": "1"})
    before = contents(tmp_path)
    with pytest.raises(LabError, match=r"it holds CACHEDIR\.TAG and 1 more"):
        Cache(tmp_path).entry("it", KEY, Builder())
    assert contents(tmp_path) == before


def test_what_somebody_puts_into_a_cache_later_is_never_pruned(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    cache.entry("it", KEY, Builder())
    (cache.folder / "it" / "link").symlink_to(tree(tmp_path / "elsewhere", {"manifest.json": "{}"}))
    before = projects(cache.folder)
    cache.prune(keep=0, unused=timedelta(0))
    assert contents(cache.folder) == {name: text for name, text in before.items() if not name.startswith("it/0")}


def test_an_empty_folder_becomes_a_cache_and_so_does_one_from_before_there_were_markers(tmp_path: Path) -> None:
    cache, build = Cache(tmp_path), Builder()
    cache.entry("it", KEY, build)
    (tmp_path / MARKER).unlink()
    tree(tmp_path, {f"it/{KEY}.any{HALF_BUILT}/file": "1", "docker/log": "said"})
    cache.entry("it", "1" * 20, build)
    assert ((tmp_path / MARKER).read_text(), build.runs) == (MARK, 2)


def test_a_cache_that_cannot_be_made_is_told_with_the_way_to_another_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(LabError) as raised:
        Cache(file / "cache").entry("it", KEY, Builder())
    assert raised.value == LabError(
        f"cache {file / 'cache'}: cannot be used",
        f"[Errno 20] Not a directory: '{file / 'cache'}'",
        "name a folder that you may write by STREAMAPP_LAB_CACHE",
    )


def test_an_entry_that_vanishes_while_it_is_looked_at_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cache, build = Cache(tmp_path), Builder()
    content = cache.entry("it", KEY, build)
    walk = os.walk

    def vanishing(folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        listed = list(walk(folder))
        (content / "readme").unlink(missing_ok=True)
        yield from listed

    with monkeypatch.context() as patched:
        patched.setattr(os, "walk", vanishing)
        held = cache.holds("it")
    cache.entry("it", KEY, build)
    assert (held, build.runs) == (False, 2)
    assert "is built again" in capsys.readouterr().err


def test_a_cache_holds_a_name_only_while_an_entry_of_it_is_whole(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    before = cache.holds("it")
    content = cache.entry("it", KEY, Builder())
    whole = cache.holds("it")
    (content / "readme").unlink()
    assert (before, whole, cache.holds("it")) == (False, True, False)


def test_pruning_leaves_a_name_alone_that_another_process_is_building(tmp_path: Path) -> None:
    waiting = """
        def build(folder):
            Path(sys.argv[2]).touch()
            while not Path(sys.argv[3]).exists():
                time.sleep(0.01)
        cache.entry("it", "0" * 20, build)
    """
    begun, may_end = tmp_path / "begun", tmp_path / "may_end"
    with start(waiting, tmp_path / "cache", begun, may_end) as process:
        wait_for(begun)
        freed = Cache(tmp_path / "cache").prune(keep=0, unused=timedelta(0))
        may_end.touch()
    assert (freed, process.returncode, (tmp_path / "cache" / "it" / KEY).is_dir()) == (0, 0, True)


def test_a_cache_that_was_never_used_has_nothing_to_prune_and_is_not_made(tmp_path: Path) -> None:
    assert (Cache(tmp_path / "none").prune(), (tmp_path / "none").exists()) == (0, False)
