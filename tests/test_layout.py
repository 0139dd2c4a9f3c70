"""The shape of the repository: what Python itself depends on, and limits for the eyes of a reader."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from lab.settings import REPOSITORY


def test_operator_is_a_source_root_and_no_package() -> None:
    assert not (REPOSITORY / "operator" / "__init__.py").exists()


def test_no_test_folder_shadows_the_standard_library() -> None:
    names = {path.stem for path in (REPOSITORY / "tests").iterdir()}
    names |= {path.stem for path in (REPOSITORY / "operator" / "streamapp").rglob("*.py")}
    assert "operator" not in names


def test_the_standard_librarys_operator_wins_from_the_repository_root() -> None:
    code = "import operator, collections, streamapp; print(operator.itemgetter.__module__)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, "operator"), ran.stderr


LONGEST_FUNCTION = 40
"""Lines with the docstring and without decorators, which hold the tables of tests: what a screen shows."""
LONGEST_FILE = 500
CATALOGUES = {Path("operator/streamapp/core/reasons.py"): 1000}
"""Files of rows one after the other, which a reader searches and does not read through."""
MOST_FILES = 15
"""In one folder, `__init__.py` aside: a reader keeps no longer list in mind."""
LARGE_FOLDERS = {
    "tests/lab": "one lab serves all files, in the order of their numbers",
    "tests/prove": "each file is one part of one simulated world",
}
"""With the reason why a sub-folder would not help."""
PYTHON = [
    path for part in ("operator", "lab", "release", "tests") for path in sorted((REPOSITORY / part).rglob("*.py"))
]
PACKAGES = [path for path in PYTHON if path.name == "__init__.py" and path.is_relative_to(REPOSITORY / "operator")]


def too_long(path: Path, text: str) -> Iterator[str]:
    """Name the file and its functions that are longer than the limits."""
    lines = len(text.splitlines())
    if lines > CATALOGUES.get(path, LONGEST_FILE):
        yield f"{path}: {lines} lines"
    if lines <= LONGEST_FUNCTION:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > LONGEST_FUNCTION:
                yield f"{path}:{node.lineno} {node.name}: {length} lines"


def too_full(files: Iterable[Path]) -> dict[str, int]:
    """Count the files of the folders that have more than the limit."""
    counts = Counter(str(file.parent) for file in files if file.name != "__init__.py")
    return {folder: count for folder, count in counts.items() if count > MOST_FILES}


def test_no_file_and_no_function_is_too_long() -> None:
    offenders = [line for path in PYTHON for line in too_long(path.relative_to(REPOSITORY), path.read_text())]
    assert offenders == []


@pytest.mark.parametrize(
    ("text", "offenders"),
    [
        ("@it\ndef f():\n" + "    pass\n" * 39, []),
        ("@it\ndef f():\n" + "    pass\n" * 40, ["it.py:2 f: 41 lines"]),
        ("class It:\n    async def f():\n" + "        pass\n" * 40, ["it.py:2 f: 41 lines"]),
        ("\n" * 500, []),
        ("\n" * 501, ["it.py: 501 lines"]),
    ],
    ids=["longest function", "function", "method", "longest file", "file"],
)
def test_a_length_is_that_of_all_lines(text: str, offenders: list[str]) -> None:
    assert list(too_long(Path("it.py"), text)) == offenders


def test_no_folder_has_too_many_files_but_those_with_a_reason() -> None:
    assert too_full(path.relative_to(REPOSITORY) for path in PYTHON).keys() == LARGE_FOLDERS.keys()


def test_the_files_of_a_folder_are_counted_without_those_of_its_sub_folders() -> None:
    full = [Path("full", f"{number}.py") for number in range(16)]
    assert too_full([*full[:15], Path("full/__init__.py"), Path("full/deeper/16.py")]) == {}
    assert too_full(full) == {"full": 16}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.parent.relative_to(REPOSITORY / "operator")))
def test_every_package_says_what_it_is_for(package: Path) -> None:
    docstring = ast.get_docstring(ast.parse(package.read_text())) or ""
    assert docstring not in {"", "TODO."}
