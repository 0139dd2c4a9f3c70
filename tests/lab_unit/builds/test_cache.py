"""The cache's laws: same content same key, whole or not at all, built once."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.build.cache import HALF_BUILT, Cache, content_key
from lab.settings import REPOSITORY

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
    first = Cache(tmp_path).entry("it", "key", build)
    second = Cache(tmp_path).entry("it", "key", build)
    assert (first, build.runs, (second / "bin" / "link").read_text()) == (second, 1, "program")
    assert capsys.readouterr().err == ""


def test_a_failing_build_leaves_nothing_and_its_error_passes_through(tmp_path: Path) -> None:
    def failing(folder: Path) -> None:
        (folder / "begun").touch()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Cache(tmp_path).entry("it", "key", failing)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["it", "lock"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda content: (content / "readme").unlink(), "first readme"),
        (lambda content: (content / "readme").write_text(""), "first readme"),
        (lambda content: (content / "more").touch(), "first more"),
        (lambda content: (content / "bin" / "link").unlink(), "first bin/link"),
        (lambda content: (content.parent / "manifest.json").unlink(), "no readable manifest"),
        (lambda content: (content.parent / "manifest.json").write_text("{"), "no readable manifest"),
    ],
    ids=["file gone", "file cut", "file added", "link gone", "manifest gone", "manifest cut"],
)
def test_a_damaged_entry_is_built_again_and_one_line_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Path], object], why: str
) -> None:
    build = Builder()
    content = Cache(tmp_path).entry("it", "key", build)
    change(content)
    again = Cache(tmp_path).entry("it", "key", build)
    said = " ".join(capsys.readouterr().err.split())
    assert (build.runs, sorted(path.name for path in again.rglob("*"))) == (2, ["bin", "link", "program", "readme"])
    assert said.startswith("cache: it key is built again: ")
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
    end = time.monotonic() + 20
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
        cache.entry("it", "key", build)
    """
    with start(endless, tmp_path / "cache", begun) as process:
        wait_for(begun)
        process.send_signal(signal.SIGKILL)
    home = tmp_path / "cache" / "it"
    assert [path.suffix for path in home.glob("key*")] == [HALF_BUILT]
    build = Builder()
    Cache(tmp_path / "cache").entry("it", "key", build)
    assert (build.runs, sorted(path.name for path in home.iterdir())) == (1, ["key", "lock"])
    assert "left by a build that was killed, removed" in " ".join(capsys.readouterr().err.split())


def test_two_processes_build_an_entry_once_and_the_second_says_that_it_waits(tmp_path: Path) -> None:
    waiting = """
        def build(folder):
            with Path(sys.argv[2]).open("a") as runs:
                runs.write("ran ")
            while not Path(sys.argv[3]).exists():
                time.sleep(0.01)
        cache.entry("it", "key", build)
    """
    runs, may_end = tmp_path / "runs", tmp_path / "may_end"
    with start(waiting, tmp_path / "cache", runs, may_end) as first:
        wait_for(runs)
        with start(waiting, tmp_path / "cache", runs, may_end) as second:
            said = second.stderr.readline() if second.stderr else ""
            may_end.touch()
    assert (first.returncode, second.returncode, runs.read_text()) == (0, 0, "ran ")
    assert said == "cache: another process builds it; waiting for it\n"


def test_pruning_keeps_the_entries_used_last_and_gives_the_bytes_freed(tmp_path: Path) -> None:
    cache, build = Cache(tmp_path), Builder()
    for age, key in enumerate(["newest", "middle", "oldest"]):
        content = cache.entry("it", key, build)
        os.utime(content.parent / "manifest.json", (1000 - age, 1000 - age))
    cache.entry("it", "oldest", build)
    cache.entry("other", "key", build)
    before = cache.sizes()
    freed = cache.prune(keep=2)
    after = cache.sizes()
    assert sorted(path.name for path in (tmp_path / "it").iterdir()) == ["lock", "newest", "oldest"]
    assert (before["it"] - after["it"], before["other"]) == (freed, after["other"])
    assert freed > 0


def test_pruning_spares_what_was_used_a_moment_ago(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for key in ("one", "two"):
        cache.entry("it", key, Builder())
    assert (cache.prune(keep=0), cache.prune(keep=0, spare=0) > 0) == (0, True)


def test_pruning_leaves_a_name_alone_that_another_process_is_building(tmp_path: Path) -> None:
    waiting = """
        def build(folder):
            Path(sys.argv[2]).touch()
            while not Path(sys.argv[3]).exists():
                time.sleep(0.01)
        cache.entry("it", "key", build)
    """
    begun, may_end = tmp_path / "begun", tmp_path / "may_end"
    with start(waiting, tmp_path / "cache", begun, may_end) as process:
        wait_for(begun)
        freed = Cache(tmp_path / "cache").prune(keep=0, spare=0)
        may_end.touch()
    assert (freed, process.returncode, (tmp_path / "cache" / "it" / "key").is_dir()) == (0, 0, True)


def test_a_cache_that_was_never_used_has_no_sizes_and_nothing_to_prune(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "none")
    assert (cache.sizes(), cache.prune()) == ({}, 0)
