"""The sources of an earlier release, from the history of this clone."""

import subprocess
from pathlib import Path

import pytest

from lab.build import earlier_release
from lab.build.cache import Cache
from lab.errors import LabError


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit."""
    made = tmp_path / "clone"
    made.mkdir()
    (made / "uv.lock").write_text("then")
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    for words in (("init", "--quiet"), ("add", "."), (*who, "commit", "--quiet", "--message=one")):
        subprocess.run(("git", *words), cwd=made, check=True)
    monkeypatch.setattr(earlier_release, "REPOSITORY", made)
    return made


def test_the_files_are_those_of_the_commit_whatever_lies_in_the_clone_now(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = subprocess.run(("git", "rev-parse", "HEAD"), cwd=clone, check=True, capture_output=True, text=True).stdout
    monkeypatch.setattr(earlier_release, "COMMIT", head.strip())
    (clone / "uv.lock").write_text("now")
    sources = earlier_release.sources_of_commit(Cache(tmp_path / "cache"))
    assert {path.name: path.read_text() for path in sources.iterdir()} == {"uv.lock": "then"}


def test_a_clone_without_the_history_is_told_how_to_get_it(clone: Path, tmp_path: Path) -> None:
    with pytest.raises(LabError) as refused:
        earlier_release.sources_of_commit(Cache(tmp_path / "cache"))
    assert clone.exists()
    assert (refused.value.what, refused.value.next_step) == (
        f"commit {earlier_release.COMMIT[:12]}: its files cannot be read",
        "use a clone with its whole history: git fetch --unshallow",
    )
