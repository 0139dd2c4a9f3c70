"""A release is made of a commit, and of nothing that only lies beside it."""

import subprocess
from pathlib import Path

import pytest

from lab.errors import LabError
from release.source import export


def git(repository: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(repository), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made = tmp_path / "clone"
    made.mkdir()
    git(made, "init", "--quiet")
    (made / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (made / ".gitignore").write_text("ignored\n")
    (made / "run").write_text("#!/bin/sh\n")
    (made / "run").chmod(0o755)
    git(made, "add", "--all")
    git(made, "commit", "--quiet", "--message=first", "--date=2026-01-01T00:00:00Z")
    return made


def test_the_files_of_the_commit_are_as_old_as_it_and_none_lies_beside_them(repository: Path, tmp_path: Path) -> None:
    (repository / "ignored").write_text("of this machine alone")
    source = export(repository, tmp_path / "source")
    assert (source.version, source.commit) == ("1.2.3", git(repository, "rev-parse", "HEAD"))
    assert sorted(path.name for path in source.folder.iterdir()) == [".gitignore", "pyproject.toml", "run"]
    assert {int(path.stat().st_mtime) for path in source.folder.iterdir()} == {source.epoch}
    assert oct((source.folder / "run").stat().st_mode) == "0o100755"


@pytest.mark.parametrize("name", ["pyproject.toml", "new"])
def test_a_tree_with_changes_is_refused_and_they_are_named(repository: Path, tmp_path: Path, name: str) -> None:
    with (repository / name).open("a") as file:
        file.write("# changed\n")
    with pytest.raises(LabError) as raised:
        export(repository, tmp_path / "source")
    assert raised.value.what == f"release: {repository} differs from its commit"
    assert raised.value.why == f"1 files are changed or not committed: {name}"
    assert "commit or remove them" in raised.value.next_step


def test_a_folder_without_a_commit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="git status failed"):
        export(tmp_path, tmp_path / "source")
