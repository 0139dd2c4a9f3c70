"""What failed is named last, with the command that repeats it."""

from pathlib import Path

import pytest

from tests.parts import outcome
from tests.parts.plan import Stage
from tests.parts.stages import Ran

REPORT = """<testsuites><testsuite><testcase classname="tests.core.test_it" name="test_good" time="0.1"/>
<testcase classname="tests.core.test_it" name="test_bad[a b]" time="2.25"><failure message="no"/></testcase>
</testsuite></testsuites>"""


def ran(folder: Path, log: str, report: str = "") -> Ran:
    (folder / "unit.log").write_text(log)
    if report:
        (folder / "unit.xml").write_text(report)
    return Ran("unit", 0, 12.5, 1, folder / "unit.log")


def test_a_test_that_failed_is_named_with_its_seconds_and_its_command(tmp_path: Path) -> None:
    failure = outcome.failure_of(ran(tmp_path, "", REPORT), Stage(tests=("tests",), marks=("slow",)))
    assert str(failure) == (
        "stage unit, test tests/core/test_it.py::test_bad[a b], 2.2 s\n"
        "repeat it: uv run --frozen pytest -p no:randomly -m slow 'tests/core/test_it.py::test_bad[a b]'"
    )


def test_a_test_of_the_lab_is_repeated_in_the_lab(tmp_path: Path) -> None:
    failure = outcome.failure_of(ran(tmp_path, "", REPORT), Stage(tests=("tests",), marks=("lab",), is_in_lab=True))
    assert failure.command.startswith("uv run --frozen python -m lab test -p no:randomly -m lab ")


@pytest.mark.parametrize("report", ["", "<testsuites", "<testsuites/>"], ids=["none", "cut off", "empty"])
def test_a_command_that_failed_is_the_last_that_began(tmp_path: Path, report: str) -> None:
    failure = outcome.failure_of(
        ran(tmp_path, "$ one\nfine\n$ two --it\nbad\n", report), Stage(commands=("one", "two"))
    )
    assert str(failure) == "stage unit, 12.5 s\nrepeat it: two --it"


@pytest.mark.parametrize(
    ("class_name", "name", "node_id"),
    [
        ("tests.core.test_it", "test_a[1.5]", "tests/core/test_it.py::test_a[1.5]"),
        ("tests.core.test_it.TestIt", "test_a", "tests/core/test_it.py::TestIt::test_a"),
        ("tests.core.test_it", "", "tests/core/test_it.py"),
    ],
)
def test_a_report_gives_the_id_that_pytest_takes(class_name: str, name: str, node_id: str) -> None:
    assert outcome.node_id(class_name, name) == node_id


def test_seeds_and_closing_lines_are_read_from_a_log(tmp_path: Path) -> None:
    log = ran(
        tmp_path,
        "Using --randomly-seed=123\n==== 3 passed, 1 skipped in 2.10s ====\n"
        "9 s for 3 hours of the worlds' time, seed 77\n== 1 failed, 9 passed in 65.01s (0:01:05) ==\n",
    ).log
    assert (outcome.seeds(log), outcome.tests_run(log)) == ("123 77", "1 failed, 9 passed")


def test_the_table_is_in_the_order_of_beginnings(tmp_path: Path) -> None:
    (tmp_path / "it.log").write_text("== 2 passed in 1.00s ==\n")
    rows = outcome.table([Ran("b", 20, 3, 130, tmp_path / "it.log"), Ran("a", 10, 2.6, 0, tmp_path / "it.log")])
    assert [row[1:] for row in rows] == [("3", "a", "passed", "2 passed"), ("3", "b", "ended early", "2 passed")]


def test_the_machine_is_told_with_units() -> None:
    assert outcome.machine().endswith("GiB of disk free")
