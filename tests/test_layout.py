"""The shape of the repository that Python itself depends on."""

import subprocess
import sys

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
