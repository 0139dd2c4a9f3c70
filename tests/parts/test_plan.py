"""No test is lost: each is in the gate or in a part, and the plan names only what is there."""

import re
import tomllib
from collections import Counter

import pytest

from lab.settings import REPOSITORY
from tests.parts.plan import TIERS, Plan, Stage, plan
from tests.parts.records import WorkTree
from tests.parts.stages import files_of

PLAN = plan()
STAGES = {
    **{f"gate {name}": stage for name, stage in PLAN.stages.items()},
    **{f"{name} {at}": stage for name, part in PLAN.parts.items() for at, stage in enumerate(part.stages)},
}
SMALL = """
cap_minutes = 1
part_minutes = 1
phases = [{ lanes = [["one"]] }]
parts = {}
[stages.one]
commands = ["true"]
"""


def test_every_test_is_in_the_gate_or_in_a_part(collected: list[tuple[str, frozenset[str]]]) -> None:
    lost = Counter(file for file, marks in collected if not any(PLAN.homes_of(file, marks)))
    assert lost == {}


def test_the_tiers_are_the_marks_that_unit_tests_leave_out() -> None:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert set(re.findall(r"not (\w+)", settings["addopts"][-1])) == TIERS


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_names_files_that_are_there(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert all((REPOSITORY / file).exists() for file in files_of(STAGES[name]))


def test_no_command_writes_into_the_cache_of_the_lab() -> None:
    """The lab refuses a folder that it did not begin, and which lane comes first on a fresh machine is luck."""
    commands = [command for stage in STAGES.values() for command in stage.commands]
    assert [command for command in commands if ".cache" in command and "/streamapp-lab" in command] == []


def test_a_group_stands_for_all_that_it_names() -> None:
    part = '{ what = "it", paths = ["@both", "four"], stages = [{ commands = ["true"] }] }'
    table = tomllib.loads(
        SMALL.replace("parts = {}", f"groups = {{ both = ['one', 'two'] }}\nparts = {{ it = {part} }}")
    )
    assert Plan.model_validate(table).parts["it"].paths == ("one", "two", "four")


def test_each_part_has_paths_that_are_there() -> None:
    tree = WorkTree()
    assert [name for name, part in PLAN.parts.items() if not re.fullmatch("[0-9a-f]{16}", tree.content_of(part))] == []


@pytest.mark.parametrize(
    ("file", "marks", "homes"),
    [
        ("tests/core/test_traps.py", (), ["gate unit", "order"]),
        ("tests/core/test_traps.py", ("slow",), ["order"]),
        ("tests/prove/test_sweep.py", ("slow",), ["gate sweep"]),
        ("tests/prove/streams/test_streams_mutants.py", ("judge",), ["judges"]),
        ("tests/chart/test_rendering.py", ("chart",), ["gate chart"]),
        ("tests/chart/test_helm_3.py", ("chart",), ["chart"]),
        ("tests/lab/test_61_holds.py", ("proofs",), ["disturbed"]),
        ("tests/analytics/test_standalone.py", ("analytics", "cluster"), ["spark"]),
        ("tests/brokers/test_40_streams_versions.py", ("brokers",), ["versions"]),
        ("tests/nowhere/test_it.py", ("alerts",), []),
    ],
)
def test_a_test_is_found_by_its_file_and_its_marks(file: str, marks: tuple[str, ...], homes: list[str]) -> None:
    assert list(PLAN.homes_of(file, marks)) == homes


def test_a_stage_asks_pytest_for_its_marks_and_without_any_for_unit_tests() -> None:
    assert Stage(tests=("tests",), marks=("slow",), no_marks=("cluster",)).expression == "slow and not cluster"
    assert Stage(tests=("tests",)).expression == " and ".join(f"not {mark}" for mark in sorted(TIERS))
    assert Stage(tests=("tests",), is_in_lab=True).expression == "(lab or proofs)"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (SMALL.replace('[["one"]]', '[["one", "two"]]'), "the lanes must have each stage once"),
        (SMALL.replace("commands", "commnds"), "Extra inputs are not permitted"),
        (SMALL.replace('commands = ["true"]', ""), "a stage needs `commands` or `tests`"),
    ],
)
def test_a_plan_with_a_mistake_is_refused(text: str, why: str) -> None:
    Plan.model_validate(tomllib.loads(SMALL))
    with pytest.raises(ValueError, match=why):
        Plan.model_validate(tomllib.loads(text))
