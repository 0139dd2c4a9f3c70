"""The numbered guarantees of the README: each has tests that carry its number, and rights that cannot break it."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from streamapp.kube.objects.rights import RIGHTS

ROOT = Path(__file__).parent.parent
NEEDS_A_CLUSTER = {"lab", "lifecycle"}


def promised() -> list[int]:
    """The numbers in the README."""
    section = (ROOT / "README.md").read_text().split("\n## What it guarantees\n")[1].split("\n## ")[0]
    return [int(number) for number in re.findall(r"^(\d+)\. ", section, re.MULTILINE)]


@cache
def marked() -> frozenset[tuple[int, Path]]:
    """Number and file of every mark."""
    files = [path for path in (ROOT / "tests").rglob("test_*.py") if "mark.guarantee" in path.read_text()]
    return frozenset(
        (ast.literal_eval(mark.args[0]), path.relative_to(ROOT / "tests"))
        for path in files
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        for mark in node.decorator_list
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.guarantee"
    )


def test_the_guarantees_are_numbered_without_a_hole() -> None:
    assert promised() == list(range(1, 9))


def test_each_guarantee_has_tests_and_each_mark_a_guarantee() -> None:
    assert {number for number, _ in marked()} == set(promised())


def test_each_guarantee_has_a_test_that_needs_no_cluster() -> None:
    quick = {number for number, path in marked() if path.parts[0] not in NEEDS_A_CLUSTER}
    assert quick == set(promised())


def verbs(path: str) -> set[str]:
    """What the operator may do with a resource; its roles are generated from this list (tests/chart)."""
    return {verb for right in RIGHTS if right.path == path for verb in right.verbs}


@pytest.mark.guarantee(4)
def test_the_operator_has_no_right_to_delete_a_volume_claim() -> None:
    assert verbs("persistentvolumeclaims") == {"list", "watch", "patch"}


@pytest.mark.guarantee(6)
def test_the_operator_has_no_right_to_write_the_spec_of_a_streamapp_or_its_scale() -> None:
    assert verbs("streamapps") == {"get", "list", "watch"}
    assert verbs("streamapps/scale") == set()
    assert verbs("streamapps/status") == {"patch"}


def test_the_operator_reads_no_secret_that_nobody_has_bound_to_it() -> None:
    assert verbs("secrets") == set()
