"""A part is due when content of its paths is not that of its last green run; a real Git repository."""

import subprocess
from pathlib import Path

import pytest

from lab.settings import REPOSITORY
from tests.parts.plan import Part, Stage
from tests.parts.records import RECORDS, Run, WorkTree, add, due, read

PART = Part(what="it", paths=("code",), stages=(Stage(tests=("tests/test_it.py",)),))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name in ("code/one.py", "tests/test_it.py", "docs/page.md", "pyproject.toml", "uv.lock", "versions.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize(
    ("change", "is_due"),
    [
        ({"docs/page.md": "new"}, False),
        ({"code/one.py": "new"}, True),
        ({"code/two.py": "added, and not known to Git yet"}, True),
        ({"tests/test_it.py": "new"}, True),
        ({"uv.lock": "new"}, True),
    ],
)
def test_a_part_is_due_when_files_of_its_paths_changed(
    repository: Path, change: dict[str, str], *, is_due: bool
) -> None:
    green = Run("it", WorkTree(repository).content_of(PART), "1234567", "2026-11-28", 60, "", "green")
    assert due({"it": PART}, [green], repository) == {}
    for name, text in change.items():
        (repository / name).write_text(text)
    expected = {"it": "its files changed since 1234567"} if is_due else {}
    assert due({"it": PART}, [green], repository) == expected


def test_a_run_that_is_written_down_makes_no_part_due(repository: Path) -> None:
    part = PART.model_copy(update={"paths": ("tests",)})
    before = WorkTree(repository).content_of(part)
    table = repository / RECORDS.relative_to(REPOSITORY)
    table.parent.mkdir()
    table.write_text("a line more")
    assert WorkTree(repository).content_of(part) == before


def test_a_part_that_never_ran_green_is_due(repository: Path) -> None:
    red = Run("it", WorkTree(repository).content_of(PART), "1234567", "2026-11-28", 60, "", "red")
    assert due({"it": PART}, [red], repository) == {"it": "never run"}


def test_a_path_without_a_file_is_named(repository: Path) -> None:
    with pytest.raises(ValueError, match="the plan names nowhere, and no such file is there"):
        WorkTree(repository).content_of(PART.model_copy(update={"paths": ("nowhere",)}))


def test_the_newest_green_and_the_newest_red_run_of_a_part_stay(tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    table.write_text(",".join(Run._fields) + "\n")
    for at, result in enumerate(["green", "red", "green", "red"]):
        add(Run("it", "a", "1234567", f"2026-11-2{at}", at, "", result), table)
    add(Run("another", "a", "1234567", "2026-11-28", 7, "12", "green"), table)
    assert [(one.part, one.seconds, one.result) for one in read(table)] == [
        ("another", 7, "green"), ("it", 2, "green"), ("it", 3, "red"),
    ]  # fmt: skip
