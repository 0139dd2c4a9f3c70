"""Stages run side by side; the first that fails ends the others, and nothing of them is left. Real processes."""

import asyncio
import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.parts.plan import Stage
from tests.parts.stages import ENDED, Ran, files_of, lanes, one_by_one, script

SLEEPS = "echo $$ >pid; exec sleep 600"


def wait_for(file: Path) -> None:
    while not file.exists():
        time.sleep(0.02)


def played(folder: Path, *sequences: dict[str, str], stops_at_first: bool = True) -> tuple[bool, dict[str, int]]:
    ran: list[Ran] = []
    stages = [[(name, Stage(commands=(f"cd {folder}; {line}",))) for name, line in lane.items()] for lane in sequences]
    is_well = asyncio.run(lanes(stages, folder, ran, lambda _: None, stops_at_first=stops_at_first))
    return is_well, {one.name: one.code for one in ran}


def test_the_stages_of_a_lane_follow_each_other_and_lanes_meet(tmp_path: Path) -> None:
    waits = "until test -e $OTHER; do sleep 0.02; done"
    first = {"one": "touch one; " + waits.replace("$OTHER", "two"), "three": "test -e one"}
    second = {"two": "touch two; " + waits.replace("$OTHER", "one")}
    assert played(tmp_path, first, second) == (True, {"one": 0, "two": 0, "three": 0})


def test_the_first_failure_ends_all_lanes_and_leaves_no_process(tmp_path: Path) -> None:
    fails = {"fails": "until test -e pid; do sleep 0.02; done; exit 3", "never": "touch never"}
    assert played(tmp_path, fails, {"sleeps": SLEEPS}) == (False, {"fails": 3, "sleeps": ENDED})
    assert not (tmp_path / "never").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_stage_that_yields_runs_behind_all_others(tmp_path: Path) -> None:
    (tmp_path / "stage.sh").write_text(script(Stage(commands=("nice",), yields=True), tmp_path, stops_at_first=True))
    own = ["setsid", "--wait", "bash", "-eu", str(tmp_path / "stage.sh")]  # as a stage: the session's weight is its own
    told = subprocess.run(own, capture_output=True, text=True, check=True).stdout
    assert told.split() == ["$", "nice", "19"]


def test_a_part_goes_on_after_a_failure(tmp_path: Path) -> None:
    lane = {"fails": "exit 1", "next": "touch next"}
    assert played(tmp_path, lane, stops_at_first=False) == (False, {"fails": 1, "next": 0})


def test_the_end_of_time_ends_what_runs(tmp_path: Path) -> None:
    async def cut_off(ran: list[Ran]) -> None:
        stage = Stage(commands=(f"cd {tmp_path}; {SLEEPS}",))
        task = asyncio.create_task(lanes([[("sleeps", stage)]], tmp_path, ran, lambda _: None, stops_at_first=True))
        await asyncio.to_thread(wait_for, tmp_path / "pid")
        task.cancel()
        await asyncio.wait([task])

    ran: list[Ran] = []
    asyncio.run(cut_off(ran))
    assert [(one.name, one.code) for one in ran] == [("sleeps", ENDED)]
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_command_that_fails_ends_its_stage(tmp_path: Path) -> None:
    ran: list[Ran] = []
    stage = Stage(commands=("false | cat", f"touch {tmp_path}/next"))
    assert not asyncio.run(lanes([[("one", stage)]], tmp_path, ran, lambda _: None, stops_at_first=True))
    assert not (tmp_path / "next").exists()


def test_tests_run_in_the_order_of_their_files_and_the_gate_stops_at_the_first_failure() -> None:
    stage = Stage(tests=("tests/parts",), marks=("slow",), workers=2)
    words = script(stage, Path(".gate/it.xml"), stops_at_first=True).splitlines()[-1]
    assert words == (
        "uv run --frozen pytest -p no:randomly --numprocesses 2 --dist worksteal --durations=25 --durations-min=1 "
        "--junit-xml=.gate/it.xml -m slow --maxfail=1 -p no:rerunfailures tests/parts"
    )


def test_the_lab_runs_its_tests_and_a_random_order_is_drawn_by_pytest() -> None:
    lab = Stage(tests=("tests/lab/test_50_*.py",), marks=("lab",), is_in_lab=True)
    assert "-m lab test -p no:randomly" in script(lab, Path("it.xml"), stops_at_first=False)
    assert "no:randomly" not in script(lab.model_copy(update={"is_random": True}), Path(), stops_at_first=False)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match=r"the plan names tests/nowhere\.py, and no such file is there"):
        files_of(Stage(tests=("tests/nowhere.py",)))


def test_each_file_of_the_lab_is_a_stage_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("test_2_two.py", "test_1_one.py"):
        Path(name).touch()
    stage = Stage(commands=("true",), tests=("test_*.py",), is_in_lab=True)
    assert one_by_one("both", stage) == (
        {"both-build": Stage(commands=("true",))},
        {
            "1-one": Stage(tests=("test_1_one.py",), is_in_lab=True),
            "2-two": Stage(tests=("test_2_two.py",), is_in_lab=True),
        },
    )
    elsewhere = Stage(tests=("test_*.py",))
    assert one_by_one("both", elsewhere) == ({}, {"both": elsewhere})
