"""The shape of the repository that Python itself depends on."""

import ast
import subprocess
import sys
from collections.abc import Iterator
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


LONGEST_FUNCTION = 45
"""Lines with the docstring and without decorators, which hold the tables of tests: what a screen shows."""
LONGEST_FILE = 420
CATALOGUES = {Path("operator/streamapp/core/reasons.py"): 800}
"""Files of rows one after the other, which a reader searches and does not read through."""
TABLE = 15
"""A test may state a whole expected value, and a file of tests one table more, as long as these further lines."""
PYTHON = [path for part in ("operator", "lab", "tests") for path in sorted((REPOSITORY / part).rglob("*.py"))]


def too_long(path: Path, text: str) -> Iterator[str]:
    """Name the file and its functions that are longer than a reader should have to hold in mind."""
    more = TABLE if path.parts[0] == "tests" else 0
    lines = len(text.splitlines())
    if lines > CATALOGUES.get(path, LONGEST_FILE + 2 * more):
        yield f"{path}: {lines} lines"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > LONGEST_FUNCTION + more:
                yield f"{path}:{node.lineno} {node.name}: {length} lines"


def test_no_file_and_no_function_is_too_long() -> None:
    found = [line for path in PYTHON for line in too_long(path.relative_to(REPOSITORY), path.read_text())]
    assert found == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@it\ndef f():\n" + "    pass\n" * 44, []),
        ("@it\ndef f():\n" + "    pass\n" * 45, ["it.py:2 f: 46 lines"]),
        ("class It:\n    async def f():\n" + "        pass\n" * 45, ["it.py:2 f: 46 lines"]),
        ("\n" * 420, []),
        ("\n" * 421, ["it.py: 421 lines"]),
    ],
    ids=["longest function", "function", "method", "longest file", "file"],
)
def test_a_length_is_that_of_all_lines(text: str, found: list[str]) -> None:
    assert list(too_long(Path("it.py"), text)) == found
